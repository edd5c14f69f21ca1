"""Audit every mechanism with a classifier that learns what to look for, and each released number for atoms.

A classifier learns on outputs of both sides which are telling [1]_; fresh outputs, reduced to what it says of them,
give the bound of `privacy.evidence.audit`. Each bound holds with probability 0.9999, so a sound mechanism fails here
once in about 2,000 seeds.

.. [1] Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper: black-box discovery of differential privacy violations using
   classifiers", 2021.
"""

import dataclasses
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privacy.accounting.answers import response_odds
from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.events import BernoulliScreenEvent, RandomizedAnswersEvent, TopCEvent
from privacy.accounting.steps import gradient_steps_event
from privacy.accounting.sums import (
    charged_delta,
    running_sums_event,
    sums_event,
    sums_mu,
)
from privacy.evidence import epsilon_lower_bound
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.gate.threshold import GeometricNoise
from privacy.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from privacy.mechanisms.gradient_steps import NoisySteps
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomized_response import RandomizedResponse
from privacy.mechanisms.randomness import RandomSource, SimulationRandom
from privacy.mechanisms.running_sums import release_running_sums
from privacy.mechanisms.screening import coin_probability, flip_two_rate_coins
from privacy.mechanisms.sums import release_sums
from privacy.mechanisms.top_c import select_top_c

pytestmark = [pytest.mark.statistical, pytest.mark.slow, pytest.mark.mutants]
CONFIDENCE, DELTA = 0.9999, 1e-3
ROW = np.full((1, 2), 0.5**0.5 * (1 - 1e-9))
MEMBER = (ROW, np.array([[True, False]]))
NOBODY = (np.zeros((0, 2)), np.zeros((0, 2), dtype=bool))
SHAPE = {"dimension": 2, "n_classes": 2, "norm_bound": 1.0}
# Draws outputs of one side, shape (trials, numbers).
Draw = Callable[[Any, int, RandomSource], np.ndarray]


@dataclass(frozen=True)
class Target:
    """A mechanism with two neighbours and its charge; `broken` is how the twin differs."""

    draw: Draw
    broken: Draw
    data: Any
    neighbour: Any
    epsilon: float
    delta: float = 0.0
    trials: int = 20_000


def one_by_one(release: Callable[[Any, RandomSource], Any]) -> Draw:
    def draw(data: Any, trials: int, rng: RandomSource) -> np.ndarray:
        return np.array([np.ravel(release(data, rng)) for _ in range(trials)], dtype=np.float64)

    return draw


def column(draw: Draw) -> Draw:
    return lambda data, trials, rng: np.asarray(draw(data, trials, rng), dtype=np.float64)[:, None]


def laplace(factor: float) -> Draw:
    return column(lambda count, n, rng: DiscreteLaplace(3 * factor).release(np.full(n, count), rng=rng))


def gaussian(sigma: float, *, bare: float = 0.0) -> Draw:
    """With `bare`, the chance that the noise is left out: an atom at the true value."""

    def draw(count: int, n: int, rng: RandomSource) -> np.ndarray:
        noisy = DiscreteGaussian(sigma).release(np.full(n, count), rng=rng)
        return np.where(rng.generator.random(n) < bare, count, noisy)

    return column(draw)


def euclidean(factor: float) -> Draw:
    return one_by_one(lambda centre, rng: EuclideanNoise(factor).release(centre, grid=2.0**-20, rng=rng))


def screen(shown_with: float) -> Draw:
    high, low = coin_probability(shown_with), coin_probability(0.2)
    return column(lambda told, n, rng: flip_two_rate_coins(np.full(n, told), high=high, low=low, rng=rng))


def picks(factor: float) -> Draw:
    others = np.linspace(0, 0.2, 19)

    def release(score: float, rng: RandomSource) -> np.ndarray:
        chosen = select_top_c(np.append(others, score), picks=3, scale=1.5 * factor, rng=rng)
        return np.isin(np.arange(20), chosen)

    return one_by_one(release)


def responses(times: int) -> Draw:
    mechanism = RandomizedResponse(5, response_odds(1.5))

    def draw(answer: int, n: int, rng: RandomSource) -> np.ndarray:
        kept = np.ones((n, 5), dtype=bool)
        said = [mechanism.release(np.full(n, answer), kept, rng=rng) for _ in range(times)]
        return np.concatenate([np.eye(5)[each] for each in said], axis=1)

    return draw


def sums(factor: float) -> Draw:
    told = sums_event(sums_mu(1.0, DELTA), moment_share=0.5, delta=charged_delta(DELTA), **SHAPE)
    event = dataclasses.replace(told, moment_sigma=factor * told.moment_sigma, class_sigma=factor * told.class_sigma)

    def release(pair: Any, rng: RandomSource) -> np.ndarray:
        noisy = release_sums([pair], event, rng=rng)
        return np.append(noisy.moments[np.triu_indices(2)], noisy.class_sums)

    return one_by_one(release)


def running(factor: float) -> Draw:
    told = running_sums_event(sums_mu(1.0, DELTA), updates=3, moment_share=0.0, delta=charged_delta(DELTA), **SHAPE)
    inner = dataclasses.replace(told.sums, class_sigma=factor * told.sums.class_sigma)
    event = dataclasses.replace(told, sums=inner)

    def release(pair: Any, rng: RandomSource) -> np.ndarray:
        batches = [[pair, NOBODY, NOBODY][:number] for number in (1, 2, 3)]
        return np.concatenate([release_running_sums(each, event, rng=rng).class_sums.ravel() for each in batches])

    return one_by_one(release)


def steps(factor: float) -> Draw:
    told = gradient_steps_event(1.0, DELTA, steps=4, residual_bound=0.3, center_share=0.2, **SHAPE)
    event = dataclasses.replace(told, sigma=factor * told.sigma, count_sigma=factor * told.count_sigma)

    def release(rows: np.ndarray, rng: RandomSource) -> np.ndarray:
        noisy = NoisySteps(rows, event, rng=rng)
        moved = np.repeat([[1.0, -1.0]], len(rows), axis=0)
        told = [noisy.release(moved).ravel() for _step in range(event.steps)]
        return np.concatenate([[noisy.count], noisy.row_sum, *told])

    return one_by_one(release)


def sampled(copies: int, trials: int, rng: RandomSource) -> np.ndarray:
    gate = KAnonymityGate(5, 0.4)
    batch = pa.RecordBatch.from_arrays([pa.array([f"text {number}" for number in range(trials)])], names=["text"])
    released = gate.release([batch] * copies, key=hashlib.sha256(rng.words(4).tobytes()).digest())
    counts = np.zeros(trials)
    counts[: released.num_rows] = released["sample_count"].to_numpy()
    return counts


def counted_in_full(copies: int, trials: int, rng: RandomSource) -> np.ndarray:
    """Sample distinct texts, and count them on all the data."""
    return np.where((rng.generator.random(trials) < 0.4) & (copies >= 5), float(copies), 0.0)


def noisy_counts(factor: float) -> Draw:
    event = ThresholdGate(1.0, 0.01, noise="discrete_laplace").event()

    def draw(copies: int, trials: int, rng: RandomSource) -> np.ndarray:
        counts = np.full(trials, copies, dtype=np.int64)
        noise = GeometricNoise(factor * event.noise_scale, None)
        passed, noisy = noise.release(counts, math.ceil(event.threshold), rng=rng)
        shown = np.zeros(trials)
        shown[passed] = noisy
        return shown

    return column(draw)


GATE = KAnonymityGate(5, 0.4).event(1.0).cost()
TARGETS = {
    "discrete Laplace": Target(laplace(1.0), laplace(0.8), 10, 13, 1.0, trials=60_000),
    "discrete Gaussian": Target(gaussian(30.0), gaussian(12.0), 100, 130, gaussian_epsilon(1.0, DELTA), DELTA),
    "Euclidean noise": Target(euclidean(1.0), euclidean(0.4), np.zeros(3), np.eye(3)[0], 1.0, trials=2_000),
    "noise left out once in fifty": Target(
        gaussian(150.0), gaussian(150.0, bare=0.02), 100, 130, gaussian_epsilon(0.2, DELTA), DELTA
    ),
    "Bernoulli screen": Target(screen(0.8), screen(0.9), True, False, BernoulliScreenEvent(0.8, 0.2).cost().epsilon),
    "top-c": Target(picks(1.0), picks(1.6), 1.0, 0.0, TopCEvent(20, 3, 1.5).cost().epsilon, trials=12_000),
    "randomised response": Target(responses(1), responses(2), 0, 1, RandomizedAnswersEvent(1.5, 5).cost().epsilon),
    "sums": Target(sums(1.0), sums(0.3), MEMBER, NOBODY, 1.0, DELTA),
    "running sums": Target(running(1.0), running(0.3), MEMBER, NOBODY, 1.0, DELTA, trials=6_000),
    "gradient steps": Target(steps(1.0), steps(0.3), ROW, np.zeros((0, 2)), 1.0, DELTA, trials=6_000),
    "k-anonymity gate": Target(column(sampled), column(counted_in_full), 5, 4, GATE.epsilon, GATE.delta),
    "threshold gate": Target(noisy_counts(1.0), noisy_counts(0.75), 9, 8, 1.0, 0.01, trials=60_000),
}


def learned(draw: Draw, target: Target, rng: RandomSource) -> Callable[[np.ndarray], np.ndarray]:
    """Return how telling an output is, by the classifier that says it best on outputs it has not seen."""
    half = target.trials // 2
    seen, judged = (
        np.concatenate([draw(side, half, rng) for side in (target.data, target.neighbour)]) for _ in range(2)
    )
    sides = np.repeat([1, 0], half)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    models = [model.fit(seen, sides) for model in (linear, HistGradientBoostingClassifier(random_state=0))]
    best = min(models, key=lambda model: log_loss(sides, model.predict_proba(judged)))
    return lambda outputs: np.asarray(best.predict_proba(outputs)[:, 1])


def most_found(draw: Draw, target: Target, *, seed: int) -> float:
    """Return the largest bound of the learned look and of a look at each released number by itself."""
    rng = SimulationRandom(seed)
    telling = learned(draw, target, rng)
    outputs = [draw(side, target.trials, rng) for side in (target.data, target.neighbour)]
    looks = [[telling(side) for side in outputs]]
    looks += [[side[:, place] for side in outputs] for place in range(outputs[0].shape[1])]
    share = (1 - CONFIDENCE) / len(looks)
    return max(
        epsilon_lower_bound(
            lambda side, _trials, _rng, look=look: look[side],
            0,
            1,
            trials=target.trials,
            confidence=1 - share,
            delta=target.delta,
            rng=rng,
        )
        for look in looks
    )


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_it_finds_the_twin_and_nothing_in_the_mechanism(target: Target):
    """False alarm: at most 1e-4 for each mechanism."""
    assert most_found(target.draw, target, seed=20_251_129) <= target.epsilon
    assert most_found(target.broken, target, seed=20_251_130) > target.epsilon
