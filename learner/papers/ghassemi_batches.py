"""Figure 4 of Ghassemi et al. 2016: what batches and windows of 1 to 20 do to the error and its spread."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from learner.papers.datasets import load_sample
from learner.papers.experiment import Claim, Data, Experiment, Json, Panel, PaperFigure, PaperSeries, cell, shown
from learner.papers.ghassemi_curves import REGULARIZATION, STEP, paper_design, run_seeds, stream_orders
from learner.papers.ghassemi_slabs import LOW_RATE
from learner.papers.stream_runs import simulate_streams
from learner.papers.verdicts import at_most, jackknife


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
