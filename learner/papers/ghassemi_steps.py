"""The choice of step size and regularisation for the designs of Ghassemi et al. 2016."""

from collections.abc import Sequence

import numpy as np

from learner.papers.datasets import load_sample
from learner.papers.experiment import Claim, Data, Experiment, Json, PaperTable, cell, shown
from learner.papers.ghassemi_curves import REGULARIZATION, STEP, paper_design, run_seeds, stream_orders
from learner.papers.stream_runs import simulate_streams
from learner.papers.verdicts import all_of, at_most


class StepSizes(Experiment):
    """The grid on which step size and regularisation were chosen, on streams of their own."""

    name = "step_sizes"
    title = "Choice of step size and regularisation"

    def __init__(self, *, small: bool) -> None:
        self.needs_data = not small
        self.settings: Json = {
            "steps": {"generated": 400} if small else {"kdd": 10_000, "mnist_pca": 10_000},
            "step_sizes": [0.1, 0.5, 2.0] if small else [0.02, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0],
            "regularizations": [0.0, 0.1] if small else [0.0, 0.01, 0.1, 1.0],
            "runs_per_seed": 3 if small else 5,
            "chosen": [STEP, REGULARIZATION],
        }
        self.seeds = range(301, 303 if small else 321)
        self.runs = len(self.seeds) * self.settings["runs_per_seed"]

    @property
    def grid(self) -> list[tuple[float, float]]:
        """All pairs of step size and regularisation."""
        return [(step, ridge) for step in self.settings["step_sizes"] for ridge in self.settings["regularizations"]]

    def run(self, seed: int, data: Data) -> Json:
        part: Json = {}
        designs = [paper_design(step=step, regularization=ridge) for step, ridge in self.grid]
        for name, steps in self.settings["steps"].items():
            sample = load_sample(name, data.folder)
            orders = stream_orders(sample, run_seeds(seed, self.settings["runs_per_seed"]), steps)
            part[name] = simulate_streams(sample, designs, orders, [steps], seed=seed).errors[:, :, -1].tolist()
        return part

    def combine(self, parts: Sequence[Json]) -> Json:
        place = self.grid.index((STEP, REGULARIZATION))
        errors = {name: np.concatenate([part[name] for part in parts], axis=1) for name in self.settings["steps"]}
        return {
            "errors": {name: [cell(row) for row in rows] for name, rows in errors.items()},
            # Of the same runs: all pairs see the same streams.
            "above": {name: [cell(rows[place] - row) for row in rows] for name, rows in errors.items()},
        }

    def claims(self, result: Json) -> list[Claim]:
        place = self.grid.index((STEP, REGULARIZATION))
        claims = []
        for name, points in result["errors"].items():
            best = min(range(len(points)), key=lambda index: points[index]["value"])
            claims.append(
                Claim(
                    f"The step size and regularisation used for the paper's designs are a good choice ({name}).",
                    f"{shown(points[place])} against {shown(points[best])} at the best pair, step "
                    f"{self.grid[best][0]:g} and lambda {self.grid[best][1]:g}: "
                    f"{shown(result['above'][name][best])} more",
                    all_of(at_most(gap, 0.02) for gap in result["above"][name]),
                    "at most .02 above every pair of the grid in the same runs",
                )
            )
        return claims

    def tables(self, result: Json) -> list[PaperTable]:
        ridges = self.settings["regularizations"]
        return [
            PaperTable(
                f"Final error of FLMB with Bernoulli selection, {name}",
                ["step size", *(f"lambda {ridge:g}" for ridge in ridges)],
                [
                    [f"{step:g}", *(shown(points[self.grid.index((step, ridge))]) for ridge in ridges)]
                    for step in self.settings["step_sizes"]
                ],
            )
            for name, points in result["errors"].items()
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            f"Each of the {len(self.grid)} looks would have to be charged, or the steps set beforehand as the "
            "project's estimator does.",
        ]
