"""Figures 2 to 5 of Ghassemi et al. 2016: policies and screens beside baselines, batch sizes, and slabs."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.linear import LinearLogisticClassifier
from learner.estimators.logistic import PrivateLogisticRegression
from learner.papers.datasets import Sample, load_sample
from learner.papers.experiment import (
    Claim,
    Data,
    Experiment,
    Json,
    Panel,
    PaperFigure,
    PaperSeries,
    PaperTable,
    banded_cells,
    cell,
    shown,
)
from learner.papers.stream_runs import Design, Runs, simulate_streams
from learner.papers.verdicts import above, all_of, apart_from, at_most, jackknife, within

# Chosen on the grid of the step size experiment, as the paper chose them by cross-validation.
STEP, REGULARIZATION = 0.5, 0.1
POLICIES: dict[str, dict[str, Any]] = {
    "FLSW": {"policy": "flsw", "size": 5},
    "FLMB": {"policy": "flmb", "size": 5},
    "immediate": {"policy": "flsw", "size": 1},
}
SCREENS = ("bernoulli", "exponential")
PAPER_DESIGNS = tuple(f"{policy} {screen}" for policy in POLICIES for screen in SCREENS)
LABELS = (50, 100, 200, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000)
TOTAL_EPSILON = 2.0


def paper_design(**changes: Any) -> Design:
    """Return a design at the paper's settings: unit ball, decaying steps, both losses 1."""
    return Design(**({"step": STEP, "regularization": REGULARIZATION} | changes))


def our_design(**changes: Any) -> Design:
    """Return the project's defaults at the same price: batches of 50, constant steps, a wide ball, averaging."""
    settings: dict[str, Any] = {"size": 50, "step": 4.0, "decay": False, "radius": 40.0, "average": True}
    return Design(**(settings | changes))


def stream_orders(sample: Sample, seeds: Sequence[int], steps: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return a random order of the pool for each seed, cut after `steps` records."""
    return np.stack([np.random.default_rng(seed).permutation(len(sample.X))[:steps] for seed in seeds])


def run_seeds(seed: int, runs: int) -> list[int]:
    return [1_000 * seed + place for place in range(runs)]


def spaced(steps: int) -> list[int]:
    """Return increasing checkpoints up to `steps`, close together at the start."""
    return sorted({int(step) for step in np.geomspace(max(10, steps // 200), steps, 30).round()} | {steps // 4})


def curves_of(runs: Runs, names: Sequence[str]) -> Json:
    return {
        name: {"errors": runs.errors[place].round(5).tolist(), "labels": runs.labels[place].tolist()}
        for place, name in enumerate(names)
    }


def merged(parts: Sequence[Json], names: Sequence[str], iterations: Sequence[int]) -> tuple[Json, Runs]:
    errors = np.stack([np.concatenate([part[name]["errors"] for part in parts]) for name in names])
    labels = np.stack([np.concatenate([part[name]["labels"] for part in parts]) for name in names])
    curves = {
        name: {
            "errors": errors[place].mean(axis=0).round(5).tolist(),
            "standard_errors": (errors[place].std(axis=0, ddof=1) / math.sqrt(errors.shape[1])).round(5).tolist(),
            "labels": labels[place].mean(axis=0).round(2).tolist(),
            "label_errors": (labels[place].std(axis=0, ddof=1) / math.sqrt(labels.shape[1])).round(3).tolist(),
            "final": cell(errors[place][:, -1]),
        }
        for place, name in enumerate(names)
    }
    return curves, Runs(np.asarray(iterations), errors, labels)


def banded(name: str, x: Sequence[float], curve: Json, what: str = "errors") -> PaperSeries:
    errors = curve[{"errors": "standard_errors", "labels": "label_errors"}[what]]
    return PaperSeries(name, x, curve[what], [4 * error for error in errors])


# Numbers of labels that the page tabulates; the chart and the JSON have all.
TABLED_LABELS = frozenset({100, 500, 2000})


class Curves(Experiment):
    sample: ClassVar[str]

    def __init__(self, *, small: bool) -> None:
        steps = 400 if small else 4_000 if self.sample == "generated" else 10_000
        self.needs_data = self.sample != "generated"
        self.settings: Json = {
            "sample": self.sample,
            "steps": steps,
            "runs_per_seed": 3 if small else 10,
            "baseline_runs_per_seed": 1 if small else 2,
            "step_size": STEP,
            "regularization": REGULARIZATION,
            "epsilon_screen": 1.0,
            "epsilon_update": 1.0,
            "half_width": 0.2,
            "window_and_batch": 5,
            "baseline_epsilon": TOTAL_EPSILON,
            "dperm_regularization": 1.0,
        }
        self.seeds = range(1, 3 if small else 21)
        self.runs = len(self.seeds) * self.settings["runs_per_seed"]

    @property
    def designs(self) -> dict[str, Design]:
        paper = {
            f"{policy} {screen}": paper_design(screen=screen, **options)
            for policy, options in POLICIES.items()
            for screen in SCREENS
        }
        return paper | {
            "all labels": paper_design(policy="flsw", size=1, screen="all", epsilon=TOTAL_EPSILON),
            "FLMB without noise": paper_design(epsilon=math.inf),
            "ours": our_design(),
        }

    def run(self, seed: int, data: Data) -> Json:
        sample = load_sample(self.sample, data.folder)
        steps, seeds = self.settings["steps"], run_seeds(seed, self.settings["runs_per_seed"])
        orders = stream_orders(sample, seeds, steps)
        runs = simulate_streams(sample, list(self.designs.values()), orders, spaced(steps), seed=seed)
        count = self.settings["baseline_runs_per_seed"]
        batches = [
            self._batch_errors(sample, order, place) for place, order in zip(seeds, orders[:count], strict=False)
        ]
        return curves_of(runs, list(self.designs)) | {
            "dperm": [pair[0] for pair in batches],
            "non-private batch": [pair[1] for pair in batches],
            "majority": min(float((sample.test_signs > 0).mean()), float((sample.test_signs < 0).mean())),
        }

    def _batch_errors(
        self, sample: Sample, order: np.ndarray[Any, np.dtype[np.intp]], seed: int
    ) -> tuple[float, float]:
        ridge = self.settings["dperm_regularization"]
        private = PrivateHuberSVM(
            self.settings["baseline_epsilon"],
            ridge,
            classes=[-1.0, 1.0],
            fit_intercept=False,
            adjacency="replace",
            random_state=np.random.default_rng(seed),
        )
        plain = HuberSVMBaseline(ridge, classes=[-1.0, 1.0], fit_intercept=False)
        rows, signs = sample.X[order], sample.signs[order]
        first, second = (
            float((model.fit(rows, signs).predict(sample.test_rows) != sample.test_signs).mean())
            for model in (private, plain)
        )
        return first, second

    def combine(self, parts: Sequence[Json]) -> Json:
        names = list(self.designs)
        iterations = spaced(self.settings["steps"])
        curves, runs = merged(parts, names, iterations)
        least = runs.labels[: len(PAPER_DESIGNS), :, -1].min()
        grid = [labels for labels in LABELS if labels <= least]
        at_labels = dict(zip(names, runs.errors_at(grid), strict=True))
        for name, errors in at_labels.items():
            curves[name]["at_labels"] = [cell(column) for column in errors.T]
        quarter = iterations.index(self.settings["steps"] // 4)
        errors = dict(zip(names, runs.errors, strict=True))
        return {
            "iterations": iterations,
            "labels": grid,
            "curves": curves,
            # Differences of the same run, whose streams the designs share, are surer than those of means.
            "after_quarter": {name: cell(errors[name][:, quarter] - errors[name][:, -1]) for name in PAPER_DESIGNS},
            "screens": {
                policy: cell(errors[f"{policy} bernoulli"][:, -1] - errors[f"{policy} exponential"][:, -1])
                for policy in POLICIES
            },
            "flsw_over_flmb": {
                screen: [cell(column) for column in (at_labels[f"FLSW {screen}"] - at_labels[f"FLMB {screen}"]).T]
                for screen in SCREENS
            },
            "majority": parts[0]["majority"],
            **{
                name: cell([error for part in parts for error in part[name]]) for name in ("dperm", "non-private batch")
            },
        }

    def claims(self, result: Json) -> list[Claim]:
        curves, plain = result["curves"], result["non-private batch"]
        later = [result["after_quarter"][name] for name in PAPER_DESIGNS]
        gaps = [apart_from(curves[name]["final"], plain) for name in PAPER_DESIGNS]
        apart = max((result["screens"][policy] for policy in POLICIES), key=lambda gap: abs(gap["value"]))
        return [
            Claim(
                "All methods converge fast to a limit near the non-private batch error.",
                f"after the first quarter the error still falls by up to {_largest(later)}; final gaps "
                f"{min(gap['value'] for gap in gaps):.3f} to {_largest(gaps)}",
                all_of([*(at_most(fall, 0.02) for fall in later), *(at_most(gap, 0.05) for gap in gaps)]),
                "for all six designs at most .02 after a quarter of the stream, and a final gap of at most .05",
            ),
            self._per_label(result, result["labels"], "FLMB errs less than FLSW for the same number of labels."),
            Claim(
                "The difference between Bernoulli and exponential selection is negligible.",
                f"final errors of the same runs differ by at most {abs(apart['value']):.3f} ± {apart['error']:.3f}",
                all_of(within(result["screens"][policy], -0.02, 0.02) for policy in POLICIES),
                "at most .02 for FLSW, FLMB and immediate updates",
            ),
            Claim(
                "The private classifiers are better than the majority class (taken for granted).",
                f"FLMB {shown(curves['FLMB bernoulli']['final'])}, majority {result['majority']:.3f}",
                at_most(curves["FLMB bernoulli"]["final"], result["majority"]),
                "the final error of FLMB with Bernoulli selection is below the majority's",
            ),
        ]

    def _per_label(self, result: Json, labels: Sequence[int], text: str) -> Claim:
        places = [result["labels"].index(count) for count in labels]
        gaps = [result["flsw_over_flmb"][screen][place] for screen in SCREENS for place in places]
        answers = [above(gap, 0.0) for gap in gaps]
        return Claim(
            text,
            f"surely less at {answers.count(True)} of {len(gaps)} points, surely more at {answers.count(False)}; less "
            f"by {min(gap['value'] for gap in gaps):+.3f} to {max(gap['value'] for gap in gaps):+.3f}, "
            f"± {max(gap['error'] for gap in gaps):.3f} at most",
            all_of(answers),
            f"less in the same runs at every one of {', '.join(map(str, labels))} labels with both screens",
        )

    def tables(self, result: Json) -> list[PaperTable]:
        places = [place for place, labels in enumerate(result["labels"]) if labels in TABLED_LABELS]
        rows = [
            [
                name,
                *(shown(curve["at_labels"][place]) for place in places),
                shown(curve["final"]),
                f"{curve['labels'][-1]:.0f}",
            ]
            for name, curve in result["curves"].items()
        ]
        empty = [""] * len(places)
        rows += [
            [name, *empty, shown(result[name]), str(self.settings["steps"])] for name in ("dperm", "non-private batch")
        ]
        rows.append(["majority class", *empty, f"{result['majority']:.3f}", "0"])
        header = [
            "design",
            *(f"{result['labels'][place]} labels" for place in places),
            "end of stream",
            "labels bought",
        ]
        return [PaperTable("Test error, mean and standard error of the mean", header, rows)]

    def charts(self, result: Json) -> list[PaperFigure]:
        shown_designs = [*PAPER_DESIGNS, "all labels", "ours"]
        level, batch_error = (result["non-private batch"][key] for key in ("value", "error"))
        steps = result["iterations"]
        panels = [
            Panel(
                [
                    *(banded(name, steps, result["curves"][name]) for name in shown_designs),
                    PaperSeries(
                        "non-private batch", [steps[0], steps[-1]], [level] * 2, [4 * batch_error] * 2, "dashed"
                    ),
                ],
                "records seen",
                "test error",
                x_log=True,
            ),
            Panel(
                [
                    banded_cells(name, result["labels"], result["curves"][name]["at_labels"])
                    for name in [*PAPER_DESIGNS, "ours"]
                ],
                "labels bought",
                "test error",
                x_log=True,
            ),
        ]
        ends = ", ".join(f"{name} {result['curves'][name]['final']['value']:.3f}" for name in shown_designs)
        return [
            PaperFigure(
                self.name,
                f"{self.title}: test error against records and labels",
                f"Final errors: {ends}, non-private batch {level:.3f}. Bands are four standard errors.",
                panels,
            )
        ]

    def costs(self, result: Json) -> list[str]:
        curves = result["curves"]
        return [
            f"The noise on a batch of 5 is about {2 * self._dimension:,} long where its sum is at most 5: without "
            f"noise the same design ends at {shown(curves['FLMB without noise']['final'])}, with it at "
            f"{shown(curves['FLMB bernoulli']['final'])}.",
            f"The project's default (batches of 50, constant steps, radius 40, averaged) at the same price ends at "
            f"{shown(curves['ours']['final'])} and needs no choice of steps; objective perturbation with all labels "
            f"gives {shown(result['dperm'])}.",
        ]

    @property
    def _dimension(self) -> int:
        return {"kdd": 120, "mnist_pca": 50, "generated": 10}[self.sample]


def _largest(gaps: Sequence[Json]) -> str:
    return shown(max(gaps, key=lambda gap: float(gap["value"])))


class KddCurves(Curves):
    name = "curves_kdd"
    title = "KDD Cup 1999 (figures 2b and 3b)"
    sample = "kdd"


class MnistCurves(Curves):
    name = "curves_mnist"
    title = "MNIST 0 and 9 (figures 2a and 3a)"
    sample = "mnist_pca"


class GeneratedCurves(Curves):
    """Two overlapping classes on a sphere: needs no files."""

    name = "curves_generated"
    title = "Generated data in ten dimensions (not in the paper)"
    sample = "generated"


# Below this the rounding of a slope, divided by the width of the bend, would exceed what the certificate allows it.
LEAST_SMOOTHING = 0.125
LARGEST_SMOOTHING = 8


class HuberLoss:
    """The hinge with a quadratic bend from margin 1 - h to 1 + h, h in [1/8, 8]."""

    def __init__(self, smoothing: float) -> None:
        if not LEAST_SMOOTHING <= smoothing <= LARGEST_SMOOTHING:
            raise ValueError(
                f"smoothing must lie in [{LEAST_SMOOTHING}, {LARGEST_SMOOTHING:g}], got {smoothing}: "
                "the plain hinge has no curvature bound"
            )
        self.smoothing = float(smoothing)
        self.slope_bound = 1.0
        self.curvature_bound = 1 / (2 * self.smoothing)

    def slope(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative at each margin: -1 before the bend, 0 after it, linear between."""
        return np.clip((margins - (1 + self.smoothing)) / (2 * self.smoothing), -1.0, 0.0)

    def curvature(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.abs(margins - 1) < self.smoothing, self.curvature_bound, 0.0)


class _HuberClassifier(LinearLogisticClassifier):
    """Prices and solves with the Huber loss; probabilities are the logistic function of decision values."""

    smoothing: float

    @property
    def _loss(self) -> HuberLoss:
        return HuberLoss(float(self.smoothing))


@dataclass(eq=False, repr=False)
class PrivateHuberSVM(_HuberClassifier, PrivateLogisticRegression):
    r"""Release :math:`\arg\min_w \sum_i \ell_h(y_i \langle x_i, w\rangle) + \frac{\Lambda}{2}\|w\|^2` privately.

    The loss is 0 beyond margin 1 + h, 1 - z below 1 - h, and :math:`(1 + h - z)^2 / (4h)` between. Method, price,
    noise and certificate are those of `PrivateLogisticRegression` with gradient bound 1 and curvature
    bound 1/(2h) in place of 1/4: at small :math:`\Lambda` a wide bend leaves more of epsilon to the tilt.
    Probabilities are a fixed function of the released decision values, hence post-processing.

    Parameters
    ----------
    epsilon, regularization, method, classes, delta, norm_bound, fit_intercept, intercept_scaling, adjacency, \
    gradient_tolerance, output_epsilon_share, grid, prior, random_state
        As in `PrivateLogisticRegression`.
    smoothing : float
        Half width h of the bend, in [1/8, 8].

    Notes
    -----
    The loss lacks a second derivative at two margins. From the minimiser back to the tilt leads a map that
    is Lipschitz both ways, since the objective is strongly convex with a Lipschitz gradient, so the change of
    variables holds almost everywhere and its factor is bounded as if the loss were smooth.

    References
    ----------
    .. [1] Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization", 2011, equation 7
       and Corollary 13.
    """

    _: KW_ONLY
    smoothing: float = 0.5


@dataclass(eq=False, repr=False)
class HuberSVMBaseline(_HuberClassifier, LogisticRegressionBaseline):
    """Minimise the objective of `PrivateHuberSVM` with no noise: for comparison, never for release."""

    _: KW_ONLY
    smoothing: float = 0.5


def spread_ratio(errors: NDArray[np.float64]) -> float:
    """Return the standard deviation of a run with the largest batch over that with the smallest, FLMB."""
    smallest, *_, largest = errors[0].std(axis=-1, ddof=1)
    return float(largest / smallest)


class BatchSizes(Experiment):
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
        self.seeds = range(101, 103 if small else 121)
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
            # Both sizes see the same streams, so that leaving out a seed leaves it out of both.
            result[name]["ratio"] = jackknife([part[name] for part in parts], spread_ratio)
        return result

    def claims(self, result: Json) -> list[Claim]:
        claims = []
        for name, target in self.settings["labels"].items():
            first, *_, last = result[name]["FLMB"]
            ratio = result[name]["ratio"]
            claims.append(
                Claim(
                    f"Mini-batching reduces the variance ({name}, after {target} labels).",
                    f"standard deviation of a run {first['spread']:.3f} with batches of 1, {last['spread']:.3f} with "
                    f"20, a ratio of {shown(ratio, 2)}; mean error {first['value']:.3f} and {last['value']:.3f}",
                    at_most(ratio, 0.8),
                    "the standard deviation with FLMB batches of 20 is at most .8 of that with batches of 1",
                )
            )
        return claims

    def charts(self, result: Json) -> list[PaperFigure]:
        sizes = self.settings["sizes"]
        panels = [
            Panel(
                [
                    PaperSeries(
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
