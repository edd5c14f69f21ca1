"""Screened streams with noisy mini-batch updates, many designs and seeds side by side: simulation only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from learner.papers.datasets import Rows32, Sample
from privacy.arrays import Array

Policy = Literal["flsw", "flmb"]
ScreenName = Literal["bernoulli", "exponential", "all"]
# Coins are drawn for this many steps at once.
BLOCK = 256


@dataclass(frozen=True, slots=True)
class Design:
    policy: Policy = "flmb"
    size: int = 5
    screen: ScreenName = "bernoulli"
    high: float = math.e / (1 + math.e)
    low: float = 1 / (1 + math.e)
    reach: float = 0.2
    screen_epsilon: float = 1.0
    shrinking: bool = False
    step: float = 1.0
    decay: bool = True
    regularization: float = 0.0
    radius: float = 1.0
    epsilon: float = 1.0
    average: bool = False


@dataclass(frozen=True, slots=True)
class Runs:
    """Test errors and labels bought at each checkpoint, shape (designs, runs, checkpoints)."""

    iterations: NDArray[np.int64]
    errors: Array
    labels: Array

    def errors_at(self, labels: Sequence[float]) -> Array:
        """Return errors at numbers of labels, piecewise linear as in the paper, shape (designs, runs, labels)."""
        designs, runs, _ = self.errors.shape
        found = [
            np.interp(labels, self.labels[design, run], self.errors[design, run])
            for design in range(designs)
            for run in range(runs)
        ]
        return np.array(found).reshape(designs, runs, len(labels))


def simulate_streams(
    sample: Sample, designs: Sequence[Design], orders: NDArray[np.intp], checkpoints: Sequence[int], *, seed: int
) -> Runs:
    state = _StreamState(sample.X.shape[1], designs, len(orders), np.random.default_rng(seed))
    errors, labels = [], []
    wanted = set(checkpoints)
    for start in range(0, max(checkpoints), BLOCK):
        steps = range(start, min(start + BLOCK, max(checkpoints)))
        coins = state.rng.random((len(steps), len(designs), len(orders)), dtype=np.float32)
        for step, coin in zip(steps, coins, strict=True):
            rows = orders[:, step]
            state.advance(sample.X[rows], sample.signs[rows], coin, step + 1)
            if step + 1 in wanted:
                errors.append(state.test(sample))
                labels.append(state.labels.copy())
    return Runs(np.asarray(checkpoints), np.stack(errors, axis=2), np.stack(labels, axis=2))


class _StreamState:
    """Weights, open batches and counts of all runs, shape (designs, runs, ...)."""

    def __init__(self, dimension: int, designs: Sequence[Design], runs: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.designs = list(designs)
        shape = (len(designs), runs)
        self.weights, self.open, self.total = (np.zeros((*shape, dimension), dtype=np.float32) for _ in range(3))
        self.norms = np.zeros(shape, dtype=np.float32)
        self.waiting, self.updates, self.labels = (np.zeros(shape) for _ in range(3))

        def column(values: list[float]) -> NDArray[np.float32]:
            return np.array(values, dtype=np.float32)[:, None]

        self.windowed = np.array([design.policy == "flsw" for design in designs])
        self.size = column([design.size for design in designs])
        self.high, self.low = (column([getattr(design, name) for design in designs]) for name in ("high", "low"))
        self.reach = column([design.reach for design in designs])
        self.shrinking = column([design.shrinking for design in designs]) > 0
        self.exponential = np.flatnonzero([design.screen == "exponential" for design in designs])
        self.rate = column([design.screen_epsilon / (1 - design.reach) for design in designs])[self.exponential]
        self.everybody = np.flatnonzero([design.screen == "all" for design in designs])
        self.step = column([design.step for design in designs])
        self.decay = column([design.decay for design in designs]) > 0
        self.regularization = column([design.regularization for design in designs])
        self.radius = column([design.radius for design in designs])
        self.noise_scale = column([2 / design.epsilon for design in designs])
        self.averaged = np.flatnonzero([design.average for design in designs])

    def advance(self, X: Rows32, signs: NDArray[np.float32], coins: NDArray[np.float32], step: int) -> None:
        values = np.einsum("asd,sd->as", self.weights, X)
        distances = np.abs(values) / np.where(self.norms > 0, self.norms, 1)
        selected = coins < self._probabilities(distances)
        active = selected & (values * signs < 1)
        places = np.nonzero(active)
        self.open[places] += X[places[1]] * signs[places[1], None]
        self.waiting += selected
        self.labels += selected
        complete = np.where(
            self.windowed[:, None], (step % self.size == 0) & (self.waiting > 0), self.waiting >= self.size
        )
        if complete.any():
            self._update(np.nonzero(complete))

    def _probabilities(self, distances: NDArray[np.float32]) -> NDArray[np.float32]:
        reach = np.where(self.shrinking, 1 / np.maximum(self.updates, 1), self.reach)
        probabilities: NDArray[np.float32] = np.where(distances <= reach, self.high, self.low)
        if self.exponential.size:
            part = self.exponential
            probabilities[part] = np.exp(-np.maximum(distances[part], self.reach[part]) * self.rate)
        probabilities[self.everybody] = 2
        return probabilities

    def _update(self, places: tuple[NDArray[np.intp], ...]) -> None:
        design = places[0]
        self.updates[places] += 1
        step = self.step[design, 0] / np.where(self.decay[design, 0], self.updates[places], 1)
        weights = self.weights[places]
        sums = self.open[places]
        noise = self.rng.standard_normal(weights.shape, dtype=np.float32)
        lengths = self.rng.gamma(weights.shape[1], size=len(weights)) * self.noise_scale[design, 0]
        sums += noise * (lengths / np.linalg.norm(noise, axis=1))[:, None].astype(np.float32)
        weights *= (1 - step * self.regularization[design, 0])[:, None].astype(np.float32)
        weights += sums * (step / self.waiting[places])[:, None].astype(np.float32)
        norms = np.linalg.norm(weights, axis=1)
        shrink = np.minimum(1, self.radius[design, 0] / np.maximum(norms, 1e-30))
        weights *= shrink[:, None]
        self.weights[places] = weights
        self.norms[places] = norms * shrink
        self.total[places] += weights
        self.open[places] = 0
        self.waiting[places] = 0

    def test(self, sample: Sample) -> Array:
        weights = self.weights.copy()
        weights[self.averaged] = self.total[self.averaged]
        scores = weights.reshape(-1, weights.shape[2]) @ (sample.test_rows * sample.test_signs[:, None]).T
        # No classifier yet is a coin.
        wrong = (scores < 0).mean(axis=1) + (scores == 0).mean(axis=1) / 2
        errors: Array = wrong.reshape(self.labels.shape)
        return errors
