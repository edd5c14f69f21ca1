import math
from typing import Any

import numpy as np
import pytest

from learner.papers.datasets import Sample, load_sample
from learner.papers.ghassemi_curves import sublinearity
from learner.papers.stream_runs import Design, simulate_streams


def sample() -> Sample:
    return load_sample("generated", None)


def orders(runs: int, steps: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    return np.stack([np.random.default_rng(seed).permutation(20_000)[:steps] for seed in range(runs)])


def plain_loop(data: Sample, order: np.ndarray[Any, np.dtype[np.intp]], design: Design) -> float:
    """Follow the paper's algorithms 3 and 4 with every record selected and no noise; return the test error."""
    weights, batch, updates = np.zeros(data.X.shape[1]), [], 0
    for step, row in enumerate(order, start=1):
        batch.append(row)
        due = step % design.size == 0 if design.policy == "flsw" else len(batch) == design.size
        if not due:
            continue
        updates += 1
        rate = design.step / updates if design.decay else design.step
        signed = data.X[batch].astype(np.float64) * data.signs[batch, None]
        sums = signed[signed @ weights < 1].sum(axis=0)
        weights = weights - rate * (design.regularization * weights - sums / len(batch))
        weights *= min(1.0, design.radius / max(float(np.linalg.norm(weights)), 1e-30))
        batch = []
    return float(((data.test_rows @ weights) * data.test_signs < 0).mean())


@pytest.mark.parametrize(
    "design",
    [
        Design("flmb", 5, "all", epsilon=math.inf, regularization=0.1),
        Design("flsw", 7, "all", epsilon=math.inf, step=2.0, decay=False, radius=3.0),
        Design("flsw", 1, "all", epsilon=math.inf),
    ],
)
def test_without_coins_and_noise_all_runs_are_the_loop(design: Design) -> None:
    streams = orders(3, 60)
    other = Design("flmb", 3, "bernoulli")
    runs = simulate_streams(sample(), [other, design], streams, [60], seed=1)
    expected = [plain_loop(sample(), order, design) for order in streams]
    assert runs.errors[1, :, 0] == pytest.approx(expected, abs=2e-3)
    assert (runs.labels[1] == 60).all()


@pytest.mark.statistical
@pytest.mark.parametrize(("reach", "shrinking", "rate"), [(10.0, False, 0.7), (-1.0, False, 0.2), (10.0, True, 0.2)])
def test_the_slab_decides_the_rate_of_labels(reach: float, shrinking: bool, rate: float) -> None:
    """20,000 seeded coins, 4.5 sigma (false alarm 1 in 100,000); a shrinking slab ends with the lower rate."""
    design = Design("flmb", 5, high=0.7, low=0.2, reach=reach, shrinking=shrinking)
    runs = simulate_streams(sample(), [design], orders(20, 2_000), [1_000, 2_000], seed=2)
    late = runs.labels[0, :, 1] - runs.labels[0, :, 0]
    slack = 0.02 if shrinking else 4.5 * math.sqrt(rate * (1 - rate) / 20_000)
    assert abs(late.mean() / 1_000 - rate) <= slack


@pytest.mark.statistical
def test_the_exponential_screen_selects_within_its_extremes() -> None:
    """No classifier yet: every record is asked about with the largest probability, 4.5 sigma of 10,000 coins."""
    design = Design("flmb", 10_000, "exponential", reach=0.2)
    runs = simulate_streams(sample(), [design], orders(10, 1_000), [1_000], seed=3)
    high = math.exp(-0.25)
    assert abs(runs.labels.mean() / 1_000 - high) <= 4.5 * math.sqrt(high * (1 - high) / 10_000)


def test_the_slope_tells_a_line_from_a_root() -> None:
    steps = list(range(100, 2_001, 100))
    assert sublinearity(steps, [0.3 * step for step in steps]) == pytest.approx(1.0)
    assert sublinearity(steps, [math.sqrt(step) for step in steps]) == pytest.approx(0.5)
