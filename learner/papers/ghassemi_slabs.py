"""Figure 5 of Ghassemi et al. 2016: a fixed slab beside one that shrinks with every update."""

import math
from collections.abc import Sequence

import numpy as np

from learner.papers.datasets import load_sample
from learner.papers.experiment import (
    Claim,
    Data,
    Experiment,
    Json,
    Panel,
    PaperFigure,
    PaperSeries,
    banded_cells,
    cell,
    shown,
)
from learner.papers.ghassemi_curves import (
    REGULARIZATION,
    STEP,
    banded,
    curves_of,
    merged,
    paper_design,
    run_seeds,
    stream_orders,
)
from learner.papers.stream_runs import Design, simulate_streams
from learner.papers.verdicts import above, all_of, at_most

LOW_RATE = 1 / (1 + math.e)


def sublinearity(iterations: Sequence[int], labels: Sequence[float]) -> float:
    """Return the slope of log labels against log iterations over the second half of a stream: 1 is linear."""
    half = [place for place, step in enumerate(iterations) if step >= iterations[-1] / 2]
    return float(np.polyfit(np.log([iterations[i] for i in half]), np.log([labels[i] for i in half]), 1)[0])


class Slabs(Experiment):
    name = "slabs"
    title = "Fixed and shrinking slabs (figure 5)"

    def __init__(self, *, small: bool) -> None:
        self.needs_data = not small
        self.settings: Json = {
            "sample": "generated" if small else "kdd",
            "steps": 600 if small else 20_000,
            "runs_per_seed": 4 if small else 10,
            "step_size": STEP,
            "regularization": REGULARIZATION,
            "window_and_batch": 5,
            "half_width": 0.2,
        }
        self.seeds = range(201, 203 if small else 221)
        self.runs = len(self.seeds) * self.settings["runs_per_seed"]

    @property
    def designs(self) -> dict[str, Design]:
        return {
            f"{policy} {slab}": paper_design(policy=policy.lower(), shrinking=slab == "shrinking")
            for policy in ("FLMB", "FLSW")
            for slab in ("fixed", "shrinking")
        }

    @property
    def iterations(self) -> list[int]:
        """Evenly spaced, because the claim is about the shape of a line."""
        steps = self.settings["steps"]
        return list(range(steps // 40, steps + 1, steps // 40))

    def run(self, seed: int, data: Data) -> Json:
        sample = load_sample(self.settings["sample"], data.folder)
        orders = stream_orders(sample, run_seeds(seed, self.settings["runs_per_seed"]), self.settings["steps"])
        runs = simulate_streams(sample, list(self.designs.values()), orders, self.iterations, seed=seed)
        return curves_of(runs, list(self.designs))

    def combine(self, parts: Sequence[Json]) -> Json:
        names = list(self.designs)
        curves, runs = merged(parts, names, self.iterations)
        grid = np.linspace(0, runs.labels[:, :, -1].min(), 21)[1:].round().tolist()
        errors = dict(zip(names, runs.errors_at(grid), strict=True))
        labels = dict(zip(names, runs.labels, strict=True))
        for name, curve in curves.items():
            curve["at_labels"] = [cell(column) for column in errors[name].T]
            curve["slope"] = cell([sublinearity(self.iterations, run) for run in labels[name]])
        pairs = {policy: (f"{policy} shrinking", f"{policy} fixed") for policy in ("FLMB", "FLSW")}
        return {
            "iterations": self.iterations,
            "labels": grid,
            "curves": curves,
            # Of the same run, whose stream both slabs see.
            "saved": {name: cell(1 - labels[one][:, -1] / labels[two][:, -1]) for name, (one, two) in pairs.items()},
            "lost": {name: cell(errors[one][:, -1] - errors[two][:, -1]) for name, (one, two) in pairs.items()},
        }

    def claims(self, result: Json) -> list[Claim]:
        curves, lost = result["curves"], result["lost"]
        shrinking = [curves[f"{policy} shrinking"] for policy in ("FLMB", "FLSW")]
        saved = [result["saved"][policy] for policy in ("FLMB", "FLSW")]
        slopes = [curve["slope"] for curve in shrinking]
        return [
            Claim(
                "A slab that shrinks as 1/t asks about considerably fewer records.",
                f"{saved[0]['value']:.1%} ± {saved[0]['error']:.1%} fewer labels with FLMB, "
                f"{saved[1]['value']:.1%} ± {saved[1]['error']:.1%} with FLSW",
                all_of(above(share, 0.2) for share in saved),
                "at least 20% fewer at the end of the stream for both",
            ),
            Claim(
                "Its number of labels is sublinear in the length of the stream.",
                f"slopes of log labels against log records {shown(slopes[0])} and {shown(slopes[1])}",
                all_of(at_most(slope, 0.9) for slope in slopes),
                "slope over the second half of the stream at most .9 for both",
            ),
            Claim(
                "FLMB loses nothing by it for the same number of labels.",
                f"error {shown(lost['FLMB'], 4)} more",
                at_most(lost["FLMB"], 0.02),
                "at most .02 more error at the largest common number of labels",
            ),
            Claim(
                "FLSW is considerably worse with it.",
                f"error {shown(lost['FLSW'], 4)} more",
                above(lost["FLSW"], 0.02),
                "at least .02 more error at the largest common number of labels",
            ),
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        curves = result["curves"]
        panels = [
            Panel(
                [
                    *(banded(name, result["iterations"], curve, "labels") for name, curve in curves.items()),
                    PaperSeries(
                        "p = .269 a record",
                        [0, result["iterations"][-1]],
                        [0, LOW_RATE * result["iterations"][-1]],
                        style="dashed",
                    ),
                ],
                "records seen",
                "labels bought",
            ),
            Panel(
                [banded_cells(name, result["labels"], curve["at_labels"]) for name, curve in curves.items()],
                "labels bought",
                "test error",
            ),
        ]
        ends = ", ".join(f"{name} {curve['labels'][-1]:.0f}" for name, curve in curves.items())
        return [
            PaperFigure(
                "slabs",
                "Labels and error with fixed and shrinking slabs",
                f"Labels at the end: {ends}. Bands are four standard errors.",
                panels,
            )
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            "A randomised screen cannot do without the lower rate: a rate of 0 outside the slab would cost an infinite "
            "epsilon, so labels grow linearly in any private version. Fewer labels at the same ratio of rates, hence "
            "the same cost of a selection, come from making both rates small."
        ]
