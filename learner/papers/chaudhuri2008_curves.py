"""Chaudhuri and Monteleoni 2008: error against the number of points and against epsilon."""

import math
from collections.abc import Sequence

import numpy as np

from learner.papers.chaudhuri2008_methods import (
    DIMENSION,
    SET_TITLES,
    SETS,
    TITLES,
    draw_points,
    fold_errors,
    objective_2008_epsilon,
    our_errors,
)
from learner.papers.experiment import Claim, Data, Experiment, Json, Panel, PaperFigure, banded_cells, cell


class ErrorCurve(Experiment):
    methods = ("sensitivity", "objective_2008", "objective_2011", "amp")

    def __init__(self, *, points: Sequence[int], epsilons: Sequence[float], seeds: int, draws: int) -> None:
        self.settings: Json = {
            "points": list(points),
            "epsilons": list(epsilons),
            "regularization": 0.01,
            "dimension": DIMENSION,
            "test_points": 3_500,
            "draws": draws,
        }
        self.seeds = range(101, 101 + seeds)
        self.runs = seeds

    def run(self, seed: int, data: Data) -> Json:
        part: Json = {}
        ridge, epsilons = self.settings["regularization"], self.settings["epsilons"]
        cells = [(name, epsilon, ridge) for name in self.methods for epsilon in epsilons] + [("plain", 0.0, ridge)]
        for place, name in enumerate(SETS):
            rng = np.random.default_rng([seed, place])
            most, held = max(self.settings["points"]), self.settings["test_points"]
            rows, labels = draw_points(name, most + held, rng)
            test = (rows[most:], labels[most:])
            part[name] = {}
            for n in self.settings["points"]:
                train = (rows[:n], labels[:n])
                errors = fold_errors(train, test, cells, self.settings["draws"], rng)
                for method, at in zip(self.methods, np.reshape(errors[:-1], (len(self.methods), -1)), strict=True):
                    part[name].setdefault(method, []).extend(at.tolist())
                part[name].setdefault("plain", []).extend([errors[-1]] * len(epsilons))
                part[name].setdefault("ours", []).extend(our_errors(train, test, epsilons, ridge, seed))
        return part

    def combine(self, parts: Sequence[Json]) -> Json:
        return {
            name: {
                method: [cell(values) for values in np.array([part[name][method] for part in parts]).T]
                for method in (*self.methods, "ours", "plain")
            }
            for name in SETS
        }

    def gaps(self, result: Json, worse: str, better: str) -> list[float]:
        return [
            left["value"] - right["value"]
            for name in SETS
            for left, right in zip(result[name][worse], result[name][better], strict=True)
        ]

    def claims(self, result: Json) -> list[Claim]:
        gaps = self.gaps(result, "sensitivity", "objective_2008")
        return [
            Claim(
                "The new method errs less than the sensitivity method all along the curve.",
                f"smallest difference {min(gaps):+.4f}, largest {max(gaps):+.4f}",
                min(gaps) > 0,
                "the difference of means is above 0 at every point, on both sets",
            )
        ]

    def ends(self, result: Json, where: str) -> str:
        first = [f"{TITLES[name]} from {result[SETS[0]][name][0]['value']:.2f}" for name in (*self.methods, "ours")]
        last = [f"{result[SETS[0]][name][-1]['value']:.2f}" for name in (*self.methods, "ours")]
        pairs = ", ".join(f"{begin} to {end}" for begin, end in zip(first, last, strict=True))
        return f"Bands are four standard errors. On the left {pairs} {where}."

    def panels(self, result: Json, x: Sequence[float], x_label: str) -> list[Panel]:
        return [
            Panel(
                [banded_cells(TITLES[method], x, result[name][method]) for method in (*self.methods, "ours", "plain")],
                x_label,
                "test error",
                SET_TITLES[name],
                x_log=True,
            )
            for name in SETS
        ]


class LearningCurve(ErrorCurve):
    name = "learning_curve"
    title = "Learning curves"

    def __init__(self, *, small: bool) -> None:
        points = (500, 1_000) if small else (500, 1_000, 2_000, 4_000, 7_000, 14_000)
        super().__init__(points=points, epsilons=[0.1], seeds=3 if small else 20, draws=5)

    def claims(self, result: Json) -> list[Claim]:
        points = self.settings["points"]

        def needed(name: str, method: str) -> float:
            reached = [n for n, at in zip(points, result[name][method], strict=True) if at["value"] <= 0.2]
            return float(reached[0]) if reached else math.inf

        pairs = [(needed(name, "sensitivity"), needed(name, "objective_2008")) for name in SETS]
        return [
            *super().claims(result),
            Claim(
                "The new method needs fewer points for the same error (theorems 4 and 5).",
                "; ".join(f"error .2 from {new:g} points on against {old:g}" for old, new in pairs),
                all(new < old for old, new in pairs),
                "on both sets the first number of points with error at most .2 is smaller",
            ),
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        return [
            PaperFigure(
                "learning_curve",
                "Test error against the number of training points",
                f"At epsilon {self.settings['epsilons'][0]:g} and lambda {self.settings['regularization']:g}. "
                + self.ends(result, "with most points"),
                self.panels(result, self.settings["points"], "training points"),
            )
        ]


class EpsilonCurve(ErrorCurve):
    name = "epsilon_curve"
    title = "Dependence on epsilon"

    def __init__(self, *, small: bool) -> None:
        epsilons = (0.1, 0.5) if small else (0.005, 0.01, 0.02, 0.035, 0.05, 0.1, 0.2, 0.5, 1.0)
        super().__init__(
            points=[1_600 if small else 14_000], epsilons=epsilons, seeds=3 if small else 20, draws=2 if small else 5
        )

    def claims(self, result: Json) -> list[Claim]:
        correction = self.gaps(result, "objective_2011", "objective_2008")
        ours = self.gaps(result, "ours", "objective_2011")
        errors = [point["error"] for name in SETS for point in result[name]["ours"]]
        return [
            *super().claims(result),
            Claim(
                "The 2011 correction costs little accuracy (our expectation).",
                f"largest rise of the error {max(correction):+.4f}",
                max(correction) <= 0.05,
                "the error rises by at most .05 at every epsilon on both sets",
            ),
            Claim(
                "The project's estimator, charged for replaced records, errs no more than the 2011 algorithm.",
                f"largest rise {max(ours):+.4f}",
                all(gap <= 4 * error + 0.001 for gap, error in zip(ours, errors, strict=True)),
                "no rise beyond four standard errors plus .001",
            ),
        ]

    def costs(self, result: Json) -> list[str]:
        epsilons, (n,), ridge = self.settings["epsilons"], self.settings["points"], self.settings["regularization"]
        true = [objective_2008_epsilon(epsilon, ridge, n) for epsilon in epsilons]
        return [
            f"The change of variables adds {true[0] - epsilons[0]:.4f} to the 2008 algorithm at every epsilon: "
            f"{true[0] / epsilons[0] - 1:.0%} at {epsilons[0]:g}, {true[-1] / epsilons[-1] - 1:.1%} at "
            f"{epsilons[-1]:g}.",
            "A change of one rank-one term needs half of that, and neighbours that lack a record instead of replacing "
            "it need half of the tilt: both are what the project's estimator charges by default.",
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        return [
            PaperFigure(
                "epsilon_curve",
                "Test error against epsilon",
                f"With {self.settings['points'][0]:,} points and lambda {self.settings['regularization']:g}. "
                + self.ends(result, "at the largest epsilon"),
                self.panels(result, self.settings["epsilons"], "epsilon"),
            )
        ]
