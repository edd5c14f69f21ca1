"""Feyisetan et al. 2019: k-anonymity after sampling in front of a crowd, on a drawn log of real texts.

Unsound here: sampling distinct queries and counting on the full data, and deciding by a sketch. The grids run the
project's gate, which samples records and counts the sample exactly.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from learner.reproduce.crowd_learning import Crowd
from learner.reproduce.experiment import (
    Claim,
    Data,
    Experiment,
    Json,
    Panel,
    Paper,
    PaperFigure,
    PaperTable,
    Series,
    cell,
    shown,
)
from learner.reproduce.feyisetan2019_gate import ContributorGate, EpsilonDelta, epsilon_at
from learner.reproduce.feyisetan2019_sketches import SketchCounts
from learner.reproduce.query_log import QueryLog, clinc_texts, draw_query_log, made_texts, shown_on

RATES, KS, DELTA = (0.1, 0.3, 0.6, 0.9), (20, 100, 200, 500), 1e-6
LOG: Json = {
    "text_exponent": 1.8,
    "largest_count": 50_000,
    "people": 100_000,
    "people_exponent": 0.8,
    "habits": 100,
    "test_share": 0.2,
    "golden": 50,
}
SMALL_LOG: Json = LOG | {"largest_count": 2_000, "people": 1_000, "habits": 10}
LEARNING: Json = {"features": 512, "regularization": 0.3, "right": 0.95, "right_spread": 0.03}


def simulated_log(settings: Json, data: Data, seed: int) -> QueryLog:
    """Return the log of a seed; without real texts where the settings say so."""
    texts = made_texts() if settings["texts"] == "made up" else clinc_texts(data)
    return draw_query_log(texts, settings, np.random.default_rng([seed, 1]))


def simulated_key(seed: int, *places: int) -> bytes:
    """Return a gate's key: a simulation's, so that results come again."""
    return np.random.default_rng([seed, 2, *places]).bytes(32)


class LogExperiment(Experiment):
    """An experiment on the drawn log."""

    def __init__(self, *, small: bool) -> None:
        self.settings: Json = (SMALL_LOG | {"texts": "made up"}) if small else (LOG | {"texts": "CLINC150"})
        self.settings |= LEARNING
        self.needs_data = not small

    def crowd(self, data: Data, seed: int) -> Crowd:
        """Return the simulated project of a seed."""
        return Crowd(simulated_log(self.settings, data, seed), self.settings, np.random.default_rng([seed, 3]))


class LogShape(LogExperiment):
    """Figure 1: confidence, uncertainty and frequency."""

    name = "log_shape"
    title = "The log: confidence, uncertainty, frequencies"
    seeds = (1,)

    def __init__(self, *, small: bool) -> None:
        super().__init__(small=small)
        self.settings |= {"dropout_draws": 20}

    def run(self, seed: int, data: Data) -> Json:
        crowd = self.crowd(data, seed)
        counts, said = crowd.log.counts, crowd.log.said
        confidence, entropy = crowd.dropout(self.settings["dropout_draws"], np.random.default_rng([seed, 4]))
        ranks = np.unique(np.geomspace(1, len(counts), 60).astype(int))
        frequency = np.bincount(np.minimum(counts, 20), minlength=21)[1:]
        return {
            "lines": len(said),
            "texts": len(counts),
            "once": float((counts == 1).mean()),
            "once_of_lines": float((counts == 1).sum() / len(said)),
            "people": len(np.unique(crowd.log.people)),
            "positive": float(crowd.log.pool.positive.mean()),
            "ranks": ranks.tolist(),
            "count_at_rank": np.sort(counts)[::-1][ranks - 1].tolist(),
            "frequency": frequency.tolist(),
            "confidence": np.histogram(confidence, bins=20, range=(0.5, 1))[0].tolist(),
            "entropy": np.histogram(entropy, bins=20, range=(0, np.log(2)))[0].tolist(),
            "bootstrap_accuracy": crowd.accuracy(np.empty(0, dtype=np.intp)),
        }

    def claims(self, result: Json) -> list[Claim]:
        logs = np.log(result["ranks"]), np.log(result["count_at_rank"])
        line = np.polyfit(logs[0][result["count_at_rank"] > np.array(1)], logs[1][logs[1] > 0], 1)[0]
        return [
            Claim(
                "Most distinct queries were seen just once (figure 1c).",
                f"{result['once']:.0%} of {result['texts']:,} texts, {result['once_of_lines']:.1%} of "
                f"{result['lines']:,} lines",
                result["once"] > 0.5,
                "more than half of the texts; drawn so",
            ),
            Claim(
                "Frequencies fall like a power of the rank (figure 1d).",
                f"log count falls by {-line:.2f} for each unit of log rank",
                bool(0.8 <= -line <= 2),
                "slope between .8 and 2; drawn so",
            ),
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        confidence, entropy = np.linspace(0.5, 1, 21)[:-1] + 0.0125, np.linspace(0, np.log(2), 21)[:-1] + 0.0173
        return [
            PaperFigure(
                "log_shape",
                "Confidence, uncertainty and frequency of unique queries",
                f"{shown_on(self.settings)} Confidence and entropy are of the mean over "
                f"{self.settings['dropout_draws']} dropout "
                f"draws of a model that saw {self.settings['golden']} golden texts: most texts are doubtful "
                "to it. Most texts occur "
                "once (20: and more).",
                [
                    Panel(
                        [Series("texts", confidence.tolist(), result["confidence"], style="bars")],
                        "confidence",
                        "texts",
                    ),
                    Panel(
                        [Series("texts", entropy.tolist(), result["entropy"], style="bars")], "entropy, nats", "texts"
                    ),
                    Panel(
                        [Series("texts", list(range(1, 21)), result["frequency"], style="bars")], "times said", "texts"
                    ),
                    Panel(
                        [Series("count", result["ranks"], result["count_at_rank"])],
                        "rank",
                        "times said",
                        x_log=True,
                        y_log=True,
                    ),
                ],
            )
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            f"{result['people']:,} people; {result['positive']:.0%} of the texts are about money, so a model "
            "that always "
            f"says no is right {1 - result['positive']:.0%} of the time; with the golden set alone it is "
            f"{result['bootstrap_accuracy']:.3f}.",
            "Figure 1 shows counts of the full data: published, that would cost as well.",
        ]


class GateGrid(LogExperiment):
    """Figures 2, 3 and 4: accuracy and annotation budget over the sampling rate and k."""

    name = "gate_grid"
    title = "Accuracy and annotation budget over beta and k"

    def __init__(self, *, small: bool) -> None:
        super().__init__(small=small)
        self.settings |= {
            "rates": [0.1, 0.9] if small else list(RATES),
            "ks": [5, 50] if small else list(KS),
            "budgets": [20, 40] if small else [25, 50, 100, 200, 400, 800],
        }
        self.seeds = range(1, 3 if small else 21)
        self.runs = len(self.seeds)

    def run(self, seed: int, data: Data) -> Json:
        crowd = self.crowd(data, seed)
        grid = [[self.at(crowd, k, rate, seed) for k in self.settings["ks"]] for rate in self.settings["rates"]]
        passed = crowd.passed(self.settings["ks"][0], self.settings["rates"][-1], simulated_key(seed, 99))
        budgets = [budget for budget in self.settings["budgets"] if budget < len(passed)] + [len(passed)]
        curves = {
            name: crowd.ranked(passed, budgets, uncertain=name == "uncertainty", seed=seed)
            for name in ("uncertainty", "random")
        }
        everything = crowd.accuracy(np.arange(len(crowd.pool)))
        return {"grid": grid, "curves": curves, "everything": everything, "texts": len(crowd.pool)}

    def at(self, crowd: Crowd, k: int, rate: float, seed: int) -> list[float]:
        """Return how many texts pass one gate, and the accuracy with all of them labelled."""
        passed = crowd.passed(k, rate, simulated_key(seed, k, round(100 * rate)))
        return [float(len(passed)), crowd.accuracy(passed)]

    def combine(self, parts: Sequence[Json]) -> Json:
        grids = np.array([part["grid"] for part in parts])
        length = len(self.settings["budgets"])
        return {
            "passed": [[cell(grids[:, i, j, 0]) for j in range(grids.shape[2])] for i in range(grids.shape[1])],
            "accuracy": [[cell(grids[:, i, j, 1]) for j in range(grids.shape[2])] for i in range(grids.shape[1])],
            "curves": {
                name: [cell(column) for column in np.array([part["curves"][name][:length] for part in parts]).T]
                for name in ("uncertainty", "random")
            }
            | {f"all {name}": cell([part["curves"][name][-1] for part in parts]) for name in ("uncertainty", "random")},
            "everything": cell([part["everything"] for part in parts]),
            "texts": parts[0]["texts"],
        }

    def points(self, result: Json) -> list[tuple[float, int, float, Json]]:
        """Return rate, k, mean number of texts that pass, and accuracy of all gates."""
        return [
            (rate, k, result["passed"][i][j]["value"], result["accuracy"][i][j])
            for i, rate in enumerate(self.settings["rates"])
            for j, k in enumerate(self.settings["ks"])
        ]

    def claims(self, result: Json) -> list[Claim]:
        values = np.array([[at["value"] for at in row] for row in result["accuracy"]])
        by_k, by_rate = values.mean(axis=0), values.mean(axis=1)
        points = sorted(self.points(result), key=lambda point: point[2])
        pairs = [(a, b) for a, b in pairwise(points) if a[:2] != b[:2] and b[2] <= 1.2 * a[2]]
        apart = max((abs(a[3]["value"] - b[3]["value"]) for a, b in pairs), default=0.0)
        curve = [at["value"] for at in result["curves"]["uncertainty"]]
        early, late = curve[2 % len(curve)] - curve[0], curve[-1] - curve[-2]
        gains = [
            a["value"] - b["value"]
            for a, b in zip(*(result["curves"][n] for n in ("uncertainty", "random")), strict=True)
        ]
        best, everything = max(points, key=lambda point: point[3]["value"]), result["everything"]["value"]
        found = [
            Claim(
                "A smaller k gives a better model (figure 2).",
                ", ".join(f"{value:.3f}" for value in by_k) + f" for k of {self.settings['ks']}",
                all(a > b for a, b in pairwise(by_k.tolist())),
                "accuracies, averaged over the rates, fall strictly with k",
            ),
            Claim(
                "Sampling harms the model (figure 2).",
                ", ".join(f"{value:.3f}" for value in by_rate) + f" for beta of {self.settings['rates']}",
                all(a < b for a, b in pairwise(by_rate.tolist())),
                "accuracies, averaged over k, rise strictly with the rate",
            ),
            Claim(
                "Different gates with the same budget give the same accuracy (figures 2 and 3).",
                f"{len(pairs)} neighbouring pairs within 20 % of a budget, accuracies at most {apart:.3f} apart",
                bool(pairs) and apart <= 0.02,
                "at most .02 apart",
            ),
            Claim(
                "More budget helps fast at first and hardly later (figure 4).",
                f"{early:+.3f} from {self.settings['budgets'][0]} to "
                f"{self.settings['budgets'][2 % len(curve)]} labels, "
                f"{late:+.3f} with the last doubling",
                bool(late < early / 2),
                "the last doubling gains less than half of the first two",
            ),
            Claim(
                "A small performance hit buys a smaller budget and privacy.",
                f"{best[3]['value']:.3f} at best with {best[2]:.0f} labels against {everything:.3f} with all "
                f"{result['texts']:,} texts",
                everything - best[3]["value"] <= 0.03,
                "the best gate loses at most .03",
            ),
            Claim(
                "Uncertainty helps by .02 at small budgets and by nothing near the number passing (a trial of ours).",
                ", ".join(f"{gain:+.3f}" for gain in gains) + f" at {self.settings['budgets'][: len(gains)]} labels",
                0.01 <= max(gains) <= 0.03 and abs(gains[-1]) <= 0.01,
                "the largest gain within [.01, .03], the last within .01",
            ),
        ]
        return found + self.trial(result)

    def trial(self, result: Json) -> list[Claim]:
        """Return the comparison of two gates at equal privacy, where the grid holds both."""
        named = {(rate, k): (passed, accuracy) for rate, k, passed, accuracy in self.points(result)}
        if (0.1, 20) not in named or (0.6, 500) not in named:
            return []
        low, high = named[0.1, 20], named[0.6, 500]
        epsilons = epsilon_at(20, 0.1, DELTA), epsilon_at(500, 0.6, DELTA)
        return [
            Claim(
                "Low beta with low k wins at about equal epsilon: .898 against .870 for (.1, 20) and (.6, "
                "500) (a trial "
                "of ours).",
                f"{shown(low[1])} with {low[0]:.0f} texts at epsilon {epsilons[0]:.2f}, {shown(high[1])} with "
                f"{high[0]:.0f} at {epsilons[1]:.2f}, delta {DELTA:g}",
                low[1]["value"] > high[1]["value"] and epsilons[0] <= epsilons[1],
                "the first is more accurate and its exact epsilon is not larger",
            )
        ]

    def tables(self, result: Json) -> list[PaperTable]:
        rows = [
            [
                f"{rate:g}",
                str(k),
                f"{passed:.0f}",
                shown(accuracy),
                _epsilon(epsilon_at(k, rate, DELTA)),
                f"{k / rate:.0f}",
            ]
            for rate, k, passed, accuracy in self.points(result)
        ]
        rows.append(["1", "1", f"{result['texts']}", shown(result["everything"]), "unbounded", "1"])
        header = ("beta", "k", "texts that pass", "accuracy", f"exact epsilon at delta {DELTA:g}", "k / beta")
        return [PaperTable("All texts that pass are labelled", header, rows)]

    def charts(self, result: Json) -> list[PaperFigure]:
        ks, budgets = self.settings["ks"], self.settings["budgets"]
        accuracy = [
            Series(f"beta {rate:g}", ks, [at["value"] for at in row], [at["error"] for at in row])
            for rate, row in zip(self.settings["rates"], result["accuracy"], strict=True)
        ]
        passed = [
            Series(f"beta {rate:g}", ks, [max(at["value"], 0.5) for at in row], [at["error"] for at in row])
            for rate, row in zip(self.settings["rates"], result["passed"], strict=True)
        ]
        points = self.points(result)
        curves = [
            Series(name, budgets[: len(result["curves"][name])], [at["value"] for at in result["curves"][name]],
                   [at["error"] for at in result["curves"][name]])
            for name in ("uncertainty", "random")
        ]  # fmt: skip
        gates = [
            Series(f"k {k}, all that pass", [max(p[2], 0.5) for p in points if p[1] == k],
                   [p[3]["value"] for p in points if p[1] == k],
                   [p[3]["error"] for p in points if p[1] == k], style="points")
            for k in ks
        ]  # fmt: skip
        private = []
        for rate in self.settings["rates"]:
            priced = [(epsilon_at(k, at, DELTA), accuracy["value"]) for at, k, _, accuracy in points if at == rate]
            known = [(epsilon, value) for epsilon, value in priced if math.isfinite(epsilon)]
            if known:
                places, heights = zip(*known, strict=True)
                private.append(Series(f"beta {rate:g}", places, heights, style="points"))
        return [
            PaperFigure(
                "gate_grid",
                "Accuracy and budget over beta and k",
                f"{shown_on(self.settings)} Both fall with k and rise with beta. Bands are one standard error.",
                [
                    Panel(accuracy, "k", "accuracy", x_log=True),
                    Panel(passed, "k", "texts that pass, labels asked for", x_log=True, y_log=True),
                ],
            ),
            PaperFigure(
                "budget",
                "Budget against accuracy, and accuracy against epsilon",
                f"{shown_on(self.settings)} Accuracy follows the number of labels, whatever gate let them "
                "out. Asking the most uncertain first, of what passes the widest gate, against asking at "
                "random. Right: each gate at its "
                "exact epsilon.",
                [
                    Panel([*curves, *gates], "labels", "accuracy", x_log=True),
                    Panel(private, f"epsilon at delta {DELTA:g}", "accuracy", x_log=True),
                ],
            ),
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            "Each gate costs its epsilon and delta once for a record; ranking, crowd labels and the "
            "classifier read only "
            "what came out and cost the records nothing. A project names k, beta and the price before any "
            "record is read.",
            f"Crowd answers are right with probability {self.settings['right']:g} on average (spread "
            f"{self.settings['right_spread']:g}), drawn for each text once.",
        ]


def _epsilon(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "none"


def paper(*, small: bool) -> Paper:
    """Return the paper's experiments."""
    shape, contributors = LogShape(small=small), ContributorGate(simulated_log, small=small)
    contributors.settings = {**shape.settings, **contributors.settings}
    sketches = SketchCounts(simulated_log, small=small)
    sketches.settings = {**shape.settings, **sketches.settings}
    return Paper(
        "feyisetan2019",
        "Feyisetan et al.: Privacy-preserving active learning on sensitive data for user intent classification (2019)",
        (
            "Sampling distinct queries and counting them on the full data: delta is at least beta.",
            "Deciding by a count-mean-min sketch, which may count too many.",
        ),
        (shape, GateGrid(small=small), EpsilonDelta(small=small), sketches, contributors),
    )
