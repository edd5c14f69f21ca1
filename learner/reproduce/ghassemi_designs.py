"""Figures 4 and 5 of Ghassemi et al. 2016, the choice of step sizes, and PCA beside a public projection."""

import math
from collections.abc import Sequence

import numpy as np

from learner.reproduce.datasets import load_sample
from learner.reproduce.experiment import (
    Claim,
    Data,
    Experiment,
    Json,
    Panel,
    PaperFigure,
    PaperTable,
    Series,
    cell,
    shown,
)
from learner.reproduce.ghassemi_curves import (
    REGULARIZATION,
    STEP,
    curves_of,
    merged,
    our_design,
    paper_design,
    run_seeds,
    spaced,
    stream_orders,
)
from learner.reproduce.stream_runs import Design, Runs, simulate_streams

LOW_RATE = 1 / (1 + math.e)


def sublinearity(iterations: Sequence[int], labels: Sequence[float]) -> float:
    """Return the slope of log labels against log iterations over the second half of a stream: 1 is linear."""
    half = [place for place, step in enumerate(iterations) if step >= iterations[-1] / 2]
    return float(np.polyfit(np.log([iterations[i] for i in half]), np.log([labels[i] for i in half]), 1)[0])


class BatchSizes(Experiment):
    """Error after a fixed number of labels for batches and windows of 1 to 20."""

    name = "batch_sizes"
    title = "Batch sizes (figure 4)"

    def __init__(self, *, small: bool) -> None:
        self.needs_data = not small
        self.settings: Json = {
            "labels": {"generated": 100} if small else {"kdd": 200, "mnist_pca": 100},
            "sizes": [1, 2, 5, 10, 20],
            "runs_per_seed": 5 if small else 10,
            "step_size": STEP,
            "regularization": REGULARIZATION,
        }
        self.seeds = range(11, 13 if small else 16)
        self.runs = len(self.seeds) * self.settings["runs_per_seed"]

    def run(self, seed: int, data: Data) -> Json:
        part: Json = {}
        for name, target in self.settings["labels"].items():
            sample = load_sample(name, data.folder)
            # Outside the slab a record is asked about with the lower rate, so this many records are enough.
            steps = int(1.6 * target / LOW_RATE)
            orders = stream_orders(sample, run_seeds(seed, self.settings["runs_per_seed"]), steps)
            designs = [
                paper_design(policy=policy, size=size) for policy in ("flmb", "flsw") for size in self.settings["sizes"]
            ]
            runs = simulate_streams(sample, designs, orders, range(10, steps + 1, 10), seed=seed)
            part[name] = runs.errors_at([target])[:, :, 0].reshape(2, len(self.settings["sizes"]), -1).tolist()
        return part

    def combine(self, parts: Sequence[Json]) -> Json:
        result: Json = {}
        for name in self.settings["labels"]:
            errors = np.concatenate([part[name] for part in parts], axis=2)
            result[name] = {
                policy: [cell(errors[place, index]) for index in range(len(self.settings["sizes"]))]
                for place, policy in enumerate(("FLMB", "FLSW"))
            }
        return result

    def claims(self, result: Json) -> list[Claim]:
        claims = []
        for name, target in self.settings["labels"].items():
            first, *_, last = result[name]["FLMB"]
            claims.append(
                Claim(
                    f"Mini-batching reduces the variance ({name}, after {target} labels).",
                    f"standard deviation of a run {first['spread']:.3f} with batches of 1, {last['spread']:.3f} with "
                    f"20; mean error {first['value']:.3f} and {last['value']:.3f}",
                    last["spread"] < 0.8 * first["spread"],
                    "the standard deviation with FLMB batches of 20 is below .8 of that with batches of 1",
                )
            )
        return claims

    def charts(self, result: Json) -> list[PaperFigure]:
        sizes = self.settings["sizes"]
        panels = [
            Panel(
                [
                    Series(
                        policy,
                        list(range(len(sizes))),
                        [point["value"] for point in result[name][policy]],
                        [point["spread"] for point in result[name][policy]],
                        style="bars",
                    )
                    for policy in ("FLMB", "FLSW")
                ],
                "batch or window size",
                f"test error after {target} labels",
                {"kdd": "KDD Cup 1999", "mnist_pca": "MNIST 0 and 9"}.get(name, name),
                x_names=[str(size) for size in sizes],
            )
            for name, target in self.settings["labels"].items()
        ]
        words = "; ".join(
            f"{name}, FLMB: "
            + ", ".join(
                f"{size}: {point['value']:.2f}" for size, point in zip(sizes, result[name]["FLMB"], strict=True)
            )
            for name in self.settings["labels"]
        )
        return [
            PaperFigure(
                "batch_sizes", "Test error by batch size", f"{words}. Bars of one standard deviation of a run.", panels
            )
        ]


class Slabs(Experiment):
    """A fixed slab beside one that shrinks with every update."""

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
        self.seeds = range(21, 23 if small else 26)
        self.runs = len(self.seeds) * self.settings["runs_per_seed"]

    @property
    def designs(self) -> dict[str, Design]:
        """Both policies with both slabs."""
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
        curves, runs = merged(parts, list(self.designs), self.iterations)
        grid = np.linspace(0, runs.labels[:, :, -1].min(), 21)[1:].round().tolist()
        errors = runs.errors_at(grid)
        for place, curve in enumerate(curves.values()):
            curve["at_labels"] = [cell(errors[place, :, index]) for index in range(len(grid))]
            at = curve["labels"]
            quarter = len(at) // 4
            curve["late_rate"] = (at[-1] - at[-1 - quarter]) / (self.iterations[-1] - self.iterations[-1 - quarter])
            curve["slope"] = sublinearity(self.iterations, at)
        return {"iterations": self.iterations, "labels": grid, "curves": curves}

    def claims(self, result: Json) -> list[Claim]:
        curves = result["curves"]
        shrinking = [curves[f"{policy} shrinking"] for policy in ("FLMB", "FLSW")]
        gaps = {
            policy: curves[f"{policy} shrinking"]["at_labels"][-1]["value"]
            - curves[f"{policy} fixed"]["at_labels"][-1]["value"]
            for policy in ("FLMB", "FLSW")
        }
        saved = [1 - curves[f"{name} shrinking"]["labels"][-1] / curves[f"{name} fixed"]["labels"][-1] for name in gaps]
        return [
            Claim(
                "A slab that shrinks as 1/t asks about considerably fewer records.",
                f"{saved[0]:.0%} fewer labels with FLMB, {saved[1]:.0%} with FLSW",
                min(saved) >= 0.2,
                "at least 20% fewer at the end of the stream for both",
            ),
            Claim(
                "Its number of labels is sublinear in the length of the stream.",
                f"slopes of log labels against log records {shrinking[0]['slope']:.3f} and {shrinking[1]['slope']:.3f}",
                max(curve["slope"] for curve in shrinking) <= 0.9,
                "slope over the second half of the stream at most .9 for both",
            ),
            Claim(
                "It falls to the linear floor p = .269, the rate outside the slab (an earlier trial).",
                f"late rates {shrinking[0]['late_rate']:.4f} and {shrinking[1]['late_rate']:.4f}",
                all(abs(curve["late_rate"] - LOW_RATE) <= 0.02 for curve in shrinking),
                "labels per record over the last quarter within .02 of it",
            ),
            Claim(
                "FLMB loses nothing by it for the same number of labels.",
                f"error {gaps['FLMB']:+.4f}",
                gaps["FLMB"] <= 0.02,
                "at most .02 more error at the largest common number of labels",
            ),
            Claim(
                "FLSW is considerably worse with it.",
                f"error {gaps['FLSW']:+.4f}",
                gaps["FLSW"] >= 0.02,
                "at least .02 more error at the largest common number of labels",
            ),
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        curves = result["curves"]
        panels = [
            Panel(
                [
                    *(Series(name, result["iterations"], curve["labels"]) for name, curve in curves.items()),
                    Series(
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
                [
                    Series(
                        name,
                        result["labels"],
                        [point["value"] for point in curve["at_labels"]],
                        [point["error"] for point in curve["at_labels"]],
                    )
                    for name, curve in curves.items()
                ],
                "labels bought",
                "test error",
            ),
        ]
        ends = ", ".join(f"{name} {curve['labels'][-1]:.0f}" for name, curve in curves.items())
        return [
            PaperFigure(
                "slabs", "Labels and error with fixed and shrinking slabs", f"Labels at the end: {ends}.", panels
            )
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            "A randomised screen cannot do without the lower rate: a rate of 0 outside the slab would cost an infinite "
            "epsilon, so labels grow linearly in any private version. Fewer labels at the same ratio of rates, hence "
            "the same cost of a selection, come from making both rates small.",
        ]


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
        self.seeds = range(31, 33 if small else 35)
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
        return {
            name: [cell(row) for row in np.concatenate([part[name] for part in parts], axis=1)]
            for name in self.settings["steps"]
        }

    def claims(self, result: Json) -> list[Claim]:
        place = self.grid.index((STEP, REGULARIZATION))
        claims = []
        for name, points in result.items():
            best = min(range(len(points)), key=lambda index: points[index]["value"])
            claims.append(
                Claim(
                    f"The step size and regularisation used for the paper's designs are a good choice ({name}).",
                    f"{shown(points[place])} against {shown(points[best])} at the best pair, step "
                    f"{self.grid[best][0]:g} and lambda {self.grid[best][1]:g}",
                    points[place]["value"] - points[best]["value"] <= 0.02,
                    "at most .02 above the best pair of the grid",
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
            for name, points in result.items()
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            f"Each of the {len(self.grid)} looks would have to be charged, or the steps set beforehand as the "
            "project's estimator does.",
        ]


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
        self.seeds = range(41, 43 if small else 44)
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
        return {"iterations": iterations} | {
            name: merged([part[name] for part in parts], list(parts[0][name]), iterations)[0] for name in self.samples
        }

    def claims(self, result: Json) -> list[Claim]:
        gaps = {
            name: result["mnist_random"][name]["final"]["value"] - result["mnist_pca"][name]["final"]["value"]
            for name in result["mnist_pca"]
        }
        return [
            Claim(
                "A public random projection can take the place of PCA on the pool (our expectation).",
                ", ".join(f"{name} {gap:+.3f}" for name, gap in gaps.items()),
                gaps["ours"] <= 0.05,
                "with the project's own steps the final error rises by at most .05",
            )
        ]

    def charts(self, result: Json) -> list[PaperFigure]:
        curves = [
            Series(
                f"{design}, {'PCA' if name == 'mnist_pca' else 'public signs'}", result["iterations"], curve["errors"]
            )
            for name in self.samples
            for design, curve in result[name].items()
        ]
        ends = ", ".join(f"{curve.label} {curve.y[-1]:.3f}" for curve in curves)
        panel = Panel(curves, "records seen", "test error", x_log=True)
        return [
            PaperFigure("projections", "PCA of the pool and public random signs", f"Final errors: {ends}.", [panel])
        ]

    def costs(self, result: Json) -> list[str]:
        rise = {
            name: result["mnist_random"][name]["final"]["value"] - result["mnist_pca"][name]["final"]["value"]
            for name in ("FLMB", "ours")
        }
        return [
            f"A projection that reads no record costs no epsilon; with it the final error changes by "
            f"{rise['FLMB']:+.3f} at the paper's settings and by {rise['ours']:+.3f} at the project's.",
        ]
