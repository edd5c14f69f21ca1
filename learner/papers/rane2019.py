"""Rane and Brito 2019: pool-based active learning in the plane, with coins down a ranked list and a noisy machine."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from learner.papers.experiment import (
    Claim,
    Data,
    Experiment,
    Json,
    Panel,
    Paper,
    PaperFigure,
    PaperSeries,
    PaperTable,
    cell,
    shown,
)
from learner.papers.plane_learners import (
    GAPS,
    POINTS,
    Constellation,
    Learned,
    coin,
    constellation,
    draw_starts,
    laplace_accuracy,
    learn_until_separated,
    published_scale,
    true_scale,
)
from learner.papers.rane2019_version_space import SettledVersionSpace, ShrinkingArc
from privacy.accounting.screens import rank_bernoulli_epsilon

# Selection of the source: no coin, and epsilon_p of 1 and .1; random order for comparison.
SELECTIONS = ("closest", "epsilon_p 1", "epsilon_p 0.1", "random")
NOISES = ("published", "true sensitivity", "true composition")
LONGEST = 15


def learn(points: Constellation, settings: Json, runs: int, selection: str, seed: int) -> Learned:
    """Run one way to select until all points are separated; the same seed gives every way the same starts."""
    starts = draw_starts(points.signs, runs, np.random.default_rng(seed))
    probability = coin(float(selection.split()[1])) if selection.startswith("epsilon_p") else 1.0
    return learn_until_separated(
        points,
        starts,
        probability=probability,
        order="random" if selection == "random" else "ranked",
        cost=settings["cost"],
        most_queries=settings["most_queries"],
        rng=np.random.default_rng([seed, SELECTIONS.index(selection)]),
    )


def released_accuracy(
    points: Constellation, learned: Learned, noise: str, epsilon: float, cost: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the accuracy of the last release of every run, under one reading of what the noise must cover."""
    if noise == "published":
        scale = published_scale(learned.queries + 2, epsilon, cost)
    elif noise == "true sensitivity":
        scale = np.full(len(learned.queries), true_scale(epsilon, cost, points.norm_bound))
    else:
        # Every query is followed by a release of all labels so far, and they share the epsilon.
        scale = true_scale(epsilon, cost, points.norm_bound) * np.maximum(1, learned.queries)
    return laplace_accuracy(points, learned.weights, scale, rng)


class Separation(Experiment):
    name = "separation"
    title = "120 points: label complexity, and accuracy of the private machine"

    def __init__(self, *, small: bool) -> None:
        self.settings: Json = POINTS | {
            "gaps": {"wide": GAPS["wide"]} if small else GAPS,
            "epsilons_m": [0.1, 0.5, 1.0, 10.0],
            "runs_a_seed": 200 if small else 1_000,
        }
        self.seeds = range(1, 3 if small else 6)
        self.runs = len(self.seeds) * self.settings["runs_a_seed"]

    def run(self, seed: int, data: Data) -> Json:
        return {
            name: {way: self.way(name, way, seed, self.settings["runs_a_seed"]) for way in SELECTIONS}
            for name in self.settings["gaps"]
        }

    def way(self, name: str, way: str, seed: int, runs: int) -> Json:
        points = constellation(self.settings, self.settings["gaps"][name])
        learned = learn(points, self.settings, runs, way, seed)
        rng = np.random.default_rng([seed, 99])
        released = {
            noise: [
                released_accuracy(points, learned, noise, epsilon, self.settings["cost"], rng).round(4).tolist()
                for epsilon in self.settings["epsilons_m"]
            ]
            for noise in NOISES
        }
        return {
            "queries": learned.queries.tolist(),
            "finished": learned.finished.tolist(),
            "norms": np.linalg.norm(learned.weights, axis=1).round(4).tolist(),
            "accuracy": released,
        }

    def combine(self, parts: Sequence[Json]) -> Json:
        result: Json = {}
        for name in self.settings["gaps"]:
            joined = {way: _joined([part[name][way] for part in parts]) for way in SELECTIONS}
            base = joined["closest"]["queries"]
            result[name] = {}
            for way, found in joined.items():
                queries, done = found["queries"], found["finished"].astype(bool)
                result[name][way] = {
                    "queries": cell(queries[done]),
                    "unfinished": float(1 - done.mean()),
                    "norm": cell(found["norms"]),
                    "histogram": np.bincount(np.minimum(queries[done], 60), minlength=61).tolist(),
                    "fewer": float((queries < base).mean()),
                    "more": float((queries > base).mean()),
                    "accuracy": {
                        noise: [cell(row) for row in found["accuracy"][place]] for place, noise in enumerate(NOISES)
                    },
                    "by_queries": {
                        noise: [
                            [float(row[queries == count].mean()) if (queries == count).sum() >= 20 else None
                             for count in range(LONGEST + 1)]
                            for row in found["accuracy"][place]
                        ]
                        for place, noise in enumerate(NOISES)
                    },
                }  # fmt: skip
        return result

    def accuracy(self, result: Json, name: str, noise: str, epsilon: float, way: str = "epsilon_p 1") -> Json:
        found: Json = result[name][way]["accuracy"][noise][self.settings["epsilons_m"].index(epsilon)]
        return found

    def claims(self, result: Json) -> list[Claim]:
        names = list(self.settings["gaps"])
        means = {name: [result[name][way]["queries"]["value"] for way in SELECTIONS] for name in names}
        moved = {name: max(abs(row[1] / row[0] - 1), abs(row[2] / row[0] - 1)) for name, row in means.items()}
        paired = [(result[name]["epsilon_p 0.1"]["fewer"], result[name]["epsilon_p 0.1"]["more"]) for name in names]
        rows = [
            [self.accuracy(result, name, "published", epsilon)["value"] for epsilon in self.settings["epsilons_m"]]
            for name in names
        ]
        few_many = [self.few_and_many(result, name) for name in names]
        last = names[-1]
        published, true, shared = (self.accuracy(result, last, noise, 1.0) for noise in NOISES)
        return [
            Claim(
                "The label complexity is not significantly affected by epsilon_p (figure 3).",
                "; ".join(f"{name}: {row[0]:.1f}, {row[1]:.1f}, {row[2]:.1f}" for name, row in means.items())
                + " for closest, epsilon_p 1, epsilon_p .1",
                max(moved.values()) <= 0.1,
                "on every data set both means lie within 10 % of that without coins",
            ),
            Claim(
                "Coins are sometimes faster, sometimes slower than the closest record.",
                "; ".join(f"{less:.0%} fewer, {more:.0%} more" for less, more in paired) + " at epsilon_p .1",
                all(less > 0.05 and more > 0.05 for less, more in paired),
                "with equal starts either happens in more than 5 % of the runs, on every data set",
            ),
            Claim(
                "Accuracy falls with epsilon_m (figure 3).",
                "; ".join(" < ".join(f"{value:.2f}" for value in row) for row in rows),
                all(a < b for row in rows for a, b in pairwise(row)),
                "means rise strictly over epsilon_m .1, .5, 1, 10 on every data set",
            ),
            Claim(
                "Learners with more labels are more accurate, as their noise is smaller (figure 3).",
                "; ".join(f"{few:.2f} with few, {many:.2f} with many" for few, many in few_many) + " at epsilon_m 1",
                all(many > few for few, many in few_many),
                "runs above the median label complexity have the higher mean, on every data set",
            ),
            Claim(
                "The noise scale of equation 5 gives epsilon_m.",
                f"accuracy at epsilon_m 1, {last}: {shown(published)} as published, {shown(true)} with the true "
                "sensitivity",
                abs(published["value"] - true["value"]) <= 0.02,
                "accuracies within .02 of each other: then the published scale would be enough",
            ),
            Claim(
                "Theorem 1: all releases together cost epsilon_p + epsilon_m.",
                f"{result[last]['epsilon_p 1']['queries']['value']:.1f} releases sharing epsilon_m 1: accuracy "
                f"{shown(shared)}",
                abs(published["value"] - shared["value"]) <= 0.02,
                "accuracy within .02 of the published one when releases share epsilon_m, as they must",
            ),
        ]

    def few_and_many(self, result: Json, name: str) -> tuple[float, float]:
        """Return mean accuracy at epsilon_m 1 of runs up to and above the median label complexity."""
        way = result[name]["epsilon_p 1"]
        counts = np.array(way["histogram"][: LONGEST + 1], dtype=float)
        row = way["by_queries"]["published"][self.settings["epsilons_m"].index(1.0)]
        known = np.array([value is not None for value in row])
        values, counts = np.array([0.0 if value is None else value for value in row]), counts * known
        median = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
        above = counts[median + 1 :].sum()
        many = (values * counts)[median + 1 :].sum() / above if above else 0.0
        return float((values * counts)[: median + 1].sum() / counts[: median + 1].sum()), float(many)

    def tables(self, result: Json) -> list[PaperTable]:
        labels = [
            [name, way, shown(found["queries"], 2), f"{found['unfinished']:.1%}", f"{found['norm']['value']:.2f}"]
            for name in self.settings["gaps"]
            for way, found in result[name].items()
        ]
        accuracies = [
            [name, noise, *(shown(self.accuracy(result, name, noise, eps)) for eps in self.settings["epsilons_m"])]
            for name in self.settings["gaps"]
            for noise in NOISES
        ]
        header = ["data", "noise", *(f"epsilon_m {epsilon:g}" for epsilon in self.settings["epsilons_m"])]
        return [
            PaperTable(
                "Labels until the clean machine separates all points, of the runs that do",
                ("data", "selection", "labels", "never", "norm of w"),
                labels,
            ),
            PaperTable(
                "Accuracy of the last release, epsilon_p 1; the same runs serve every column", header, accuracies
            ),
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        return [
            self._data_chart(),
            self._histograms(result),
            self._by_queries(
                result, "published", "accuracy_published", "With the published noise accuracy rises with the labels."
            ),
            self._by_queries(
                result,
                "true sensitivity",
                "accuracy_true",
                "With noise for the true sensitivity it rises with epsilon_m alone, and stays near one half up to 1.",
            ),
        ]

    def _data_chart(self) -> PaperFigure:
        panels = []
        for name, gap in self.settings["gaps"].items():
            points = constellation(self.settings, gap)
            along = np.array([points.direction[1], -points.direction[0]]) * self.settings["radius"]
            sides = [points.X[points.signs == side] for side in (1.0, -1.0)]
            panels.append(
                Panel(
                    [
                        PaperSeries("class +1", sides[0][:, 0].tolist(), sides[0][:, 1].tolist(), style="points"),
                        PaperSeries("class -1", sides[1][:, 0].tolist(), sides[1][:, 1].tolist(), style="points"),
                        PaperSeries("separator", [-along[0], along[0]], [-along[1], along[1]]),
                    ],
                    "first coordinate",
                    "second coordinate",
                    f"{name}: no point within {gap:g}",
                    equal=True,
                )
            )
        return PaperFigure(
            "data",
            "The points",
            "Two classes of 60 points on a disc of radius 4, with an empty strip along a line through the origin.",
            panels,
        )

    def _histograms(self, result: Json) -> PaperFigure:
        panels = [
            Panel(
                [
                    PaperSeries(way, list(range(21)), [*result[name][way]["histogram"][:20],
                           sum(result[name][way]["histogram"][20:])], style="bars")
                    for way in SELECTIONS[:3]
                ],
                "labels asked for (20: and more)",
                "runs",
                name,
            )
            for name in self.settings["gaps"]
        ]  # fmt: skip
        return PaperFigure(
            "label_complexity",
            "Label complexity",
            "The three histograms of a data set lie nearly on each other: coins hardly move the rank that is asked.",
            panels,
        )

    def _by_queries(self, result: Json, noise: str, name: str, words: str) -> PaperFigure:
        panels = []
        for data in self.settings["gaps"]:
            rows = result[data]["epsilon_p 1"]["by_queries"][noise]
            known = [[(count, value) for count, value in enumerate(row) if value is not None] for row in rows]
            series = [
                PaperSeries(f"epsilon_m {epsilon:g}", [count for count, _ in row], [value for _, value in row])
                for epsilon, row in zip(self.settings["epsilons_m"], known, strict=True)
            ]
            panels.append(Panel(series, "labels asked for", "accuracy of the release", data))
        return PaperFigure(
            name,
            f"Accuracy of the release by label complexity, {noise}",
            f"At epsilon_p 1. {words} Counts reached by fewer than 20 runs are left out.",
            panels,
        )

    def costs(self, result: Json) -> list[str]:
        name = list(self.settings["gaps"])[-1]
        norm_bound = constellation(self.settings, self.settings["gaps"][name]).norm_bound
        queries = result[name]["epsilon_p 1"]["queries"]["value"]
        ranks = self.settings["points"] - 3
        once = rank_bernoulli_epsilon(coin(1.0), ranks)
        ratio = true_scale(1.0, 1.0, norm_bound) / float(published_scale(np.array([8]), 1.0, 1.0)[0])
        return [
            f"A record may move from the first to the last of {ranks + 1} ranks, so one query by coins at epsilon_p 1 "
            f"costs up to {once:.0f}, and {queries:.1f} queries {queries * once:.0f}, where 1 is claimed.",
            f"The machine's sensitivity is 2 C times the largest norm ({norm_bound:.2f}), whatever the labels: "
            f"with 8 labels the published scale is {ratio:.0f} times too small.",
            "The first two labels are public, as in the source; neighbours differ in one record of the pool.",
        ]


def _joined(parts: Sequence[Json]) -> dict[str, NDArray[np.float64]]:
    joined = {
        key: np.concatenate([np.asarray(part[key]) for part in parts]) for key in ("queries", "finished", "norms")
    }
    stacked = [np.array([part["accuracy"][noise] for noise in NOISES]) for part in parts]
    return joined | {"accuracy": np.concatenate(stacked, axis=2)}


def paper(*, small: bool) -> Paper:
    return Paper(
        "rane2019",
        "Rane, Brito: A version space perspective on differentially private pool-based active learning (2019)",
        (
            "Coins down a list ranked by the clean machine: one record may move from the first rank to the last.",
            "The version space of the clean model, and dropping records that do not cross it: a drop tells on a record "
            "with certainty.",
            "Noise of scale 4 L C kappa sqrt(d) / (epsilon_m n): the machine with an unscaled C does not get less "
            "sensitive with n, and kappa is the largest norm, not 1.",
            "Theorem 1 counts one release; every release after a record's label is a further one.",
        ),
        (
            Separation(small=small),
            ShrinkingArc(small=small),
            SettledVersionSpace(small=small),
        ),
    )
