"""PCA of the private pool, as Ghassemi et al. 2016 use it, beside a projection that reads no record."""

import math
from collections.abc import Sequence

from learner.papers.datasets import load_sample
from learner.papers.experiment import Claim, Data, Experiment, Json, Panel, PaperFigure, cell, shown
from learner.papers.ghassemi_curves import (
    REGULARIZATION,
    STEP,
    banded,
    curves_of,
    merged,
    our_design,
    paper_design,
    run_seeds,
    spaced,
    stream_orders,
)
from learner.papers.stream_runs import Runs, simulate_streams
from learner.papers.verdicts import at_most


class Projections(Experiment):
    """PCA of the private pool beside public random signs, both to 50 columns."""

    name = "projections"
    title = "PCA on the pool beside a public random projection (MNIST)"
    samples = ("mnist_pca", "mnist_random")

    def __init__(self, *, small: bool) -> None:
        self.needs_data = True
        self.settings: Json = {
            "steps": 400 if small else 10_000,
            "columns": 50,
            "runs_per_seed": 3 if small else 10,
            "step_size": STEP,
            "regularization": REGULARIZATION,
        }
        self.seeds = range(401, 403 if small else 421)
        self.runs = len(self.seeds) * self.settings["runs_per_seed"]

    def run(self, seed: int, data: Data) -> Json:
        designs = {"FLMB": paper_design(), "FLMB without noise": paper_design(epsilon=math.inf), "ours": our_design()}
        steps = self.settings["steps"]
        part: Json = {}
        for name in self.samples:
            sample = load_sample(name, data.folder)
            orders = stream_orders(sample, run_seeds(seed, self.settings["runs_per_seed"]), steps)
            runs: Runs = simulate_streams(sample, list(designs.values()), orders, spaced(steps), seed=seed)
            part[name] = curves_of(runs, list(designs))
        return part

    def combine(self, parts: Sequence[Json]) -> Json:
        iterations = spaced(self.settings["steps"])
        names = list(parts[0][self.samples[0]])
        both = {name: merged([part[name] for part in parts], names, iterations) for name in self.samples}
        pca, public = (both[name][1].errors[:, :, -1] for name in self.samples)
        return {
            "iterations": iterations,
            # The same records in the same order under both projections.
            "rise": dict(zip(names, map(cell, public - pca), strict=True)),
        } | {name: curves for name, (curves, _) in both.items()}

    def claims(self, result: Json) -> list[Claim]:
        return [
            Claim(
                "A public random projection can take the place of PCA on the pool (our expectation).",
                ", ".join(f"{name} {shown(gap)}" for name, gap in result["rise"].items()) + " more",
                at_most(result["rise"]["ours"], 0.05),
                "with the project's own steps the final error rises by at most .05",
            )
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        curves = [
            banded(f"{design}, {'PCA' if name == 'mnist_pca' else 'public signs'}", result["iterations"], curve)
            for name in self.samples
            for design, curve in result[name].items()
        ]
        ends = ", ".join(f"{curve.label} {curve.y[-1]:.3f}" for curve in curves)
        panel = Panel(curves, "records seen", "test error", x_log=True)
        return [
            PaperFigure(
                "projections",
                "PCA of the pool and public random signs",
                f"Final errors: {ends}. Bands are four standard errors.",
                [panel],
            )
        ]

    def costs(self, result: Json) -> list[str]:
        rise = result["rise"]
        return [
            f"A projection that reads no record costs no epsilon; with it the final error changes by "
            f"{shown(rise['FLMB'])} at the paper's settings and by {shown(rise['ours'])} at the project's.",
        ]
