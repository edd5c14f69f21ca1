"""Rane and Brito 2019, proposition 2: how many labels coins down a ranked list take, against the coin.

Unsound here: the list is ranked by the clean model, as in the source.
"""

from collections.abc import Sequence

import numpy as np

from learner.papers.experiment import Claim, Data, Experiment, Json, Panel, PaperFigure, banded_cells, cell
from learner.papers.plane_learners import draw_starts, learn_until_separated
from learner.papers.plane_points import GAPS, POINTS, constellation


class CoinCurve(Experiment):
    """Label complexity of the ranked learner against the coin."""

    name = "coin_curve"
    title = "Label complexity against p: coins down the ranked list"

    def __init__(self, *, small: bool) -> None:
        self.settings: Json = POINTS | {
            "gaps": {"wide": GAPS["wide"]} if small else GAPS,
            "probabilities": [0.1, 0.5, 1.0] if small else [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
            "runs_a_seed": 200 if small else 1_000,
        }
        self.seeds = range(11, 12 if small else 13)
        self.runs = len(self.seeds) * self.settings["runs_a_seed"]

    def run(self, seed: int, data: Data) -> Json:
        part: Json = {}
        for name, gap in self.settings["gaps"].items():
            points = constellation(self.settings, gap)
            starts = draw_starts(points.signs, self.settings["runs_a_seed"], np.random.default_rng(seed))
            part[name] = [
                learn_until_separated(
                    points,
                    starts,
                    probability=probability,
                    cost=self.settings["cost"],
                    most_queries=self.settings["most_queries"],
                    rng=np.random.default_rng([seed, place]),
                ).queries.tolist()
                for place, probability in enumerate(self.settings["probabilities"])
            ]
        return part

    def combine(self, parts: Sequence[Json]) -> Json:
        return {
            name: [cell(values) for values in np.concatenate([np.array(part[name]) for part in parts], axis=1)]
            for name in self.settings["gaps"]
        }

    def claims(self, result: Json) -> list[Claim]:
        half = self.settings["probabilities"].index(0.5)
        ratios = [row[half]["value"] / row[-1]["value"] for row in result.values()]
        return [
            Claim(
                "Proposition 2: the label complexity grows by no more than 1/p.",
                f"at p = .5: {', '.join(f'{ratio:.2f}' for ratio in ratios)} times that at p = 1",
                max(ratios) <= 2,
                "the ratio at p = .5 is at most 2 on every data set",
            )
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        series = [banded_cells(name, self.settings["probabilities"], row) for name, row in result.items()]
        panel = Panel(series, "p, chance of asking at each rank", "labels until all points are right", x_log=True)
        return [
            PaperFigure(
                "coin_curve",
                "Label complexity against p",
                "Flat down to p = .5: a coin of one half moves the rank by one on average. It rises only below. Bands "
                "are four standard errors.",
                [panel],
            )
        ]
