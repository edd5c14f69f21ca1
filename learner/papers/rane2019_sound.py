"""The same 120 points with what a project may choose: top-c by a public model, one release, its true sensitivity."""

from collections.abc import Sequence

import numpy as np

from learner.papers.experiment import (
    Claim,
    Data,
    Experiment,
    Json,
    Panel,
    PaperFigure,
    PaperTable,
    banded_cells,
    cell,
    shown,
)
from learner.papers.plane_learners import draw_starts
from learner.papers.plane_points import GAPS, POINTS, constellation
from learner.papers.plane_releases import ask_top_c, gamma_accuracy, train_on
from privacy.accounting.screens import top_c_epsilon
from privacy.accounting.training import erm_sensitivity

WAYS = ("top-c", "random")


class SoundReleases(Experiment):
    name = "sound"
    title = "The sound version: our top-c and one release"

    def __init__(self, *, small: bool) -> None:
        self.settings: Json = POINTS | {
            "gap": GAPS["wide"] if small else GAPS["narrow"],
            "costs": [1.0, 0.01],
            "labels": [4, 16] if small else [2, 4, 8, 16, 32, 100],
            "epsilons": [0.2, 1.1, 2.0] if small else [0.2, 0.6, 1.1, 2.0, 11.0],
            "selection_share": 0.25,
            "runs_a_seed": 100 if small else 500,
        }
        self.seeds = range(51, 53 if small else 55)
        self.runs = len(self.seeds) * self.settings["runs_a_seed"]

    def run(self, seed: int, data: Data) -> Json:
        return {
            f"{way} {labels} {epsilon:g}": self.releases(way, labels, epsilon, seed, self.settings["runs_a_seed"])
            for way in WAYS
            for labels in self.settings["labels"]
            for epsilon in self.settings["epsilons"]
        }

    def releases(self, way: str, labels: int, epsilon: float, seed: int, runs: int) -> list[list[float]]:
        """Return the accuracies of every run, one list for each cost C, at one total epsilon."""
        points = constellation(self.settings, self.settings["gap"])
        starts = draw_starts(points.signs, runs, np.random.default_rng(seed))
        rng = np.random.default_rng([seed, labels, round(1_000 * epsilon), WAYS.index(way)])
        scale, training = self.split(labels, epsilon) if way == "top-c" else (0.0, epsilon)
        reach, first = self.settings["radius"], self.settings["cost"]
        asked = ask_top_c(points, starts, picks=labels, scale=scale, reach=reach, cost=first, rng=rng)
        found = []
        for cost in self.settings["costs"]:
            weights = train_on(points, np.hstack([starts, asked]), cost=cost)
            # The disc is declared, so its radius and not the largest norm found bounds the rows.
            sensitivity = erm_sensitivity(0, 1 / cost, self.settings["radius"], form="sum", adjacency="null")
            found.append(gamma_accuracy(points, weights, sensitivity / training, rng).round(4).tolist())
        return found

    def split(self, labels: int, epsilon: float) -> tuple[float, float]:
        """Return top-c's exponent at its share of epsilon, and what is left for training."""
        pool, share = self.settings["points"] - 2, self.settings["selection_share"] * epsilon
        low, high = 0.0, share
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if top_c_epsilon(pool, labels, middle) <= share else (low, middle)
        return low, epsilon - top_c_epsilon(pool, labels, low)

    def combine(self, parts: Sequence[Json]) -> Json:
        result: Json = {}
        for key in parts[0]:
            runs = np.concatenate([np.array(part[key]) for part in parts], axis=1)
            result[key] = {f"{cost:g}": cell(row) for cost, row in zip(self.settings["costs"], runs, strict=True)}
        return result

    def at(self, result: Json, way: str, labels: int, epsilon: float, cost: float) -> Json:
        found: Json = result[f"{way} {labels} {epsilon:g}"][f"{cost:g}"]
        return found

    def claims(self, result: Json) -> list[Claim]:
        first, last = self.settings["costs"][0], self.settings["costs"][-1]
        few, many = self.settings["labels"][1], self.settings["labels"][-1]
        as_published, best = self.at(result, "top-c", few, 1.1, first), self.at(result, "random", many, 1.1, last)
        gains = [
            self.at(result, "top-c", labels, epsilon, last)["value"]
            - self.at(result, "random", labels, epsilon, last)["value"]
            for labels in self.settings["labels"]
            for epsilon in self.settings["epsilons"]
        ]
        return [
            Claim(
                "Active learning in few labels gives an accurate private machine, at C = 1 as published.",
                f"{shown(as_published)} with {few} labels by top-c at epsilon 1.1 in all",
                as_published["value"] >= 0.8,
                "accuracy at least .8, as in our figures with the published noise",
            ),
            Claim(
                "More labels and a smaller C, not better chosen labels, make the private machine accurate (ours).",
                f"{shown(best)} with {many} random labels at C = {last:g}, epsilon 1.1",
                best["value"] >= as_published["value"] + 0.1,
                "better by .1 at the same epsilon",
            ),
            Claim(
                "Paid selection beats random choice at equal epsilon (what the paper hopes for).",
                f"gain of top-c over random at C = {last:g}: {min(gains):+.3f} to {max(gains):+.3f}, mean "
                f"{sum(gains) / len(gains):+.3f}",
                sum(gains) / len(gains) >= 0.01,
                "mean gain over all numbers of labels and epsilons at least .01",
            ),
        ]

    def tables(self, result: Json) -> list[PaperTable]:
        header = ["C", "labels", *(f"{way}, {epsilon:g}" for epsilon in self.settings["epsilons"] for way in WAYS)]
        rows = [
            [f"{cost:g}", str(labels)]
            + [
                shown(self.at(result, way, labels, epsilon, cost))
                for epsilon in self.settings["epsilons"]
                for way in WAYS
            ]
            for cost in self.settings["costs"]
            for labels in self.settings["labels"]
        ]
        return [PaperTable("Accuracy by total epsilon", header, rows)]

    def charts(self, result: Json) -> list[PaperFigure]:
        labels = self.settings["labels"]
        panels = [
            Panel(
                [
                    banded_cells(
                        f"{way}, C = {cost:g}", labels, [self.at(result, way, count, epsilon, cost) for count in labels]
                    )
                    for cost in self.settings["costs"]
                    for way in WAYS
                ],
                "labels",
                "accuracy of the one release",
                f"epsilon {epsilon:g} in all",
                x_log=True,
            )
            for epsilon in self.settings["epsilons"][:3]
        ]
        return [
            PaperFigure(
                "sound",
                "Accuracy of one sound release",
                "Accuracy rises with the labels and with a smaller C, whose noise is smaller; top-c and random choice "
                "lie close together. Bands are four standard errors.",
                panels,
            )
        ]

    def costs(self, result: Json) -> list[str]:
        few = self.settings["labels"][1]
        scale, training = self.split(few, 1.1)
        return [
            f"At epsilon 1.1 in all, {few} picks by top-c cost {1.1 - training:.3f} (exponent {scale:.3f}) and the "
            f"release {training:.3f}, under neighbours that lack a record; nothing else is published."
        ]
