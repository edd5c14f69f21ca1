"""Figures 2, 3 and 4 of Feyisetan et al. 2019: accuracy, annotation budget and privacy over a grid of gates."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from learner.papers.crowd_learning import Crowd
from learner.papers.experiment import Claim, Data, Json, Panel, PaperFigure, PaperTable, banded_cells, cell, shown
from learner.papers.feyisetan2019_gate import epsilon_at
from learner.papers.feyisetan2019_log import LogExperiment, simulated_key
from learner.papers.query_log import shown_on
from learner.papers.verdicts import above, all_of, any_of, at_most, within
from privacy.arrays import Array

RATES, KS, DELTA = (0.1, 0.3, 0.6, 0.9), (20, 100, 200, 500), 1e-6


class GateGrid(LogExperiment):
    name = "gate_grid"
    title = "Accuracy and annotation budget over beta and k"
    version = 2

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
        passed = crowd.passed(k, rate, simulated_key(seed, k, round(100 * rate)))
        return [float(len(passed)), crowd.accuracy(passed)]

    def combine(self, parts: Sequence[Json]) -> Json:
        grids = np.array([part["grid"] for part in parts])
        passed, accuracy = grids[..., 0], grids[..., 1]
        length = len(self.settings["budgets"])
        curves = {
            name: np.array([part["curves"][name][:length] for part in parts]) for name in ("uncertainty", "random")
        }
        everything = np.array([part["everything"] for part in parts])
        third, uncertain = min(2, length - 1), curves["uncertainty"]
        last = uncertain[:, -1] - uncertain[:, -2]
        return {
            "passed": _cells(passed),
            "accuracy": _cells(accuracy),
            "curves": {name: _cells(found) for name, found in curves.items()}
            | {f"all {name}": cell([part["curves"][name][-1] for part in parts]) for name in ("uncertainty", "random")},
            "everything": cell(everything),
            "texts": parts[0]["texts"],
            # Differences of the same log, which all gates of a seed see, are surer than those of means.
            "lost_with_k": _cells(-np.diff(accuracy.mean(axis=1), axis=1)),
            "gained_with_rate": _cells(np.diff(accuracy.mean(axis=2), axis=1)),
            "neighbours": _cells(self.neighbours(passed, accuracy)),
            "first_gain": cell(uncertain[:, third] - uncertain[:, 0]),
            "last_gain": cell(last),
            "last_beyond_half": cell(last - (uncertain[:, third] - uncertain[:, 0]) / 2),
            "gains": _cells(uncertain - curves["random"]),
            "lost_by_gate": _cells(everything[:, None, None] - accuracy),
        }

    def neighbours(self, passed: Array, accuracy: Array) -> Array:
        """Return differences of accuracy between gates that follow each other and let about as many texts pass."""
        seeds = len(passed)
        flat, budgets = accuracy.reshape(seeds, -1), passed.mean(axis=0).ravel()
        order = np.argsort(budgets)
        near = [(a, b) for a, b in pairwise(order) if budgets[b] <= 1.2 * budgets[a]]
        return np.stack([flat[:, b] - flat[:, a] for a, b in near], axis=1) if near else np.empty((seeds, 0))

    def points(self, result: Json) -> list[tuple[float, int, float, Json]]:
        return [
            (rate, k, result["passed"][i][j]["value"], result["accuracy"][i][j])
            for i, rate in enumerate(self.settings["rates"])
            for j, k in enumerate(self.settings["ks"])
        ]

    def claims(self, result: Json) -> list[Claim]:
        values = np.array([[at["value"] for at in row] for row in result["accuracy"]])
        by_k, by_rate = values.mean(axis=0), values.mean(axis=1)
        apart = [abs(gap["value"]) for gap in result["neighbours"]]
        early, late, gains = result["first_gain"], result["last_gain"], result["gains"]
        best = max(self.points(result), key=lambda point: float(point[3]["value"]))
        least = min((gap for row in result["lost_by_gate"] for gap in row), key=lambda gap: float(gap["value"]))
        return [
            Claim(
                "A smaller k gives a better model (figure 2).",
                ", ".join(f"{value:.3f}" for value in by_k) + f" for k of {self.settings['ks']}",
                all_of(above(fall, 0.0) for fall in result["lost_with_k"]),
                "accuracies of the same log, averaged over the rates, fall with every step of k",
            ),
            Claim(
                "Sampling harms the model (figure 2).",
                ", ".join(f"{value:.3f}" for value in by_rate) + f" for beta of {self.settings['rates']}",
                all_of(above(rise, 0.0) for rise in result["gained_with_rate"]),
                "accuracies of the same log, averaged over k, rise with every step of the rate",
            ),
            Claim(
                "Different gates with the same budget give the same accuracy (figures 2 and 3).",
                f"{len(apart)} neighbouring pairs within 20 % of a budget, mean accuracies at most "
                f"{max(apart, default=0.0):.3f} apart",
                all_of(within(gap, -0.02, 0.02) for gap in result["neighbours"]) if apart else None,
                "at most .02 apart",
            ),
            Claim(
                "More budget helps fast at first and hardly later (figure 4).",
                f"{shown(early)} from {self.settings['budgets'][0]} to "
                f"{self.settings['budgets'][min(2, len(gains) - 1)]} labels, {shown(late)} with the last doubling",
                at_most(result["last_beyond_half"], 0.0),
                "the last doubling gains at most half of the first two in the same log",
            ),
            Claim(
                "A small performance hit buys a smaller budget and privacy.",
                f"{best[3]['value']:.3f} at best with {best[2]:.0f} labels against "
                f"{result['everything']['value']:.3f} with all {result['texts']:,} texts: {shown(least)} lost",
                any_of(at_most(gap, 0.03) for row in result["lost_by_gate"] for gap in row),
                "a gate at least loses at most .03",
            ),
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
            banded_cells(f"beta {rate:g}", ks, row)
            for rate, row in zip(self.settings["rates"], result["accuracy"], strict=True)
        ]
        passed = [
            banded_cells(f"beta {rate:g}", ks, row)
            for rate, row in zip(self.settings["rates"], result["passed"], strict=True)
        ]
        points = self.points(result)
        curves = [banded_cells(name, budgets, result["curves"][name]) for name in ("uncertainty", "random")]
        gates = [
            banded_cells(
                f"k {k}, all that pass",
                [point[2] for point in points if point[1] == k],
                [point[3] for point in points if point[1] == k],
                "points",
            )
            for k in ks
        ]
        private = []
        for rate in self.settings["rates"]:
            priced = [(epsilon_at(k, at, DELTA), accuracy) for at, k, _, accuracy in points if at == rate]
            known = [(epsilon, accuracy) for epsilon, accuracy in priced if math.isfinite(epsilon)]
            if known:
                places, heights = zip(*known, strict=True)
                private.append(banded_cells(f"beta {rate:g}", places, heights, "points"))
        return [
            PaperFigure(
                "gate_grid",
                "Accuracy and budget over beta and k",
                f"{shown_on(self.settings)} Both fall with k and rise with beta. Bands are four standard errors.",
                [
                    Panel(accuracy, "k", "accuracy", x_log=True),
                    Panel(passed, "k", "texts that pass, labels asked for", x_log=True, y_log=True),
                ],
            ),
            PaperFigure(
                "budget",
                "Budget against accuracy, and accuracy against epsilon",
                f"{shown_on(self.settings)} Accuracy follows the number of labels, whatever gate let them out. Asking "
                "the most uncertain first, of what passes the widest gate, against asking at random. Right: each gate "
                "at its exact epsilon. Bands and bars are four standard errors.",
                [
                    Panel([*curves, *gates], "labels", "accuracy", x_log=True),
                    Panel(private, f"epsilon at delta {DELTA:g}", "accuracy", x_log=True),
                ],
            ),
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            "Each gate costs its epsilon and delta once for a record; ranking, crowd labels and the classifier read "
            "only what came out and cost the records nothing. A project names k, beta and the price before any record "
            "is read.",
            f"Crowd answers are right with probability {self.settings['right']:g} on average (spread "
            f"{self.settings['right_spread']:g}), drawn for each text once.",
        ]


def _cells(values: Array) -> list[Any]:
    return [cell(column) if column.ndim == 1 else _cells(column) for column in np.moveaxis(values, 1, 0)]


def _epsilon(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "none"
