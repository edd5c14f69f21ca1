"""Canary audits of noise, coins, picks and the gate: under the charge for ours, above it for planted broken twins.

Every bound holds with probability 0.9999, so a sound mechanism fails one of these tests once in 10,000 seeds.
"""

import hashlib
import math
import os

import numpy as np
import pyarrow as pa
import pytest

from privacy.accounting.events import BernoulliScreenEvent, TopCEvent
from privacy.evidence import epsilon_lower_bound, one_by_one
from privacy.gate.kanonymity import KAnonymityGate
from privacy.mechanisms.discrete import DiscreteLaplace
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.screening import coin_probability, flip_two_rate_coins
from privacy.mechanisms.top_c import select_top_c

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
pytestmark = pytest.mark.statistical


def found(mechanism, data, neighbour, *, trials, delta=0.0, rng=None, confidence=0.9999):
    return epsilon_lower_bound(
        mechanism,
        data,
        neighbour,
        trials=trials * MORE,
        confidence=confidence,
        delta=delta,
        rng=rng or SimulationRandom(20_250_201),
    )


@pytest.mark.parametrize(("factor", "sound"), [(1.0, True), (0.8, False)])
def test_discrete_laplace(factor, sound):
    """The exact sampler, not seeded. False alarm: < 1e-10; a twin whose noise is 20 % too small escapes less often."""
    epsilon, sensitivity = 1.0, 3

    def mechanism(count, trials, rng):
        return DiscreteLaplace(sensitivity / epsilon * factor).release(np.full(trials, count), rng=rng)

    bound = found(mechanism, 10, 10 + sensitivity, trials=60_000, rng=SecureRandom(), confidence=1 - 1e-6)
    assert (0.8 * epsilon < bound <= epsilon) if sound else bound > epsilon


@pytest.mark.slow
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("dimension", "factor", "trials", "sound"),
    [(1, 1.0, 12_000, True), (1, 0.8, 12_000, False), (3, 1.0, 4_000, True), (3, 0.5, 4_000, False)],
)
def test_euclidean_noise(dimension, factor, trials, sound):
    """The difference of distances to both centres is the loss of an output; the twins' noise is too short."""
    epsilon, grid = 1.0, 2.0**-20
    shift = np.zeros(dimension)
    shift[-1] = 1.0
    noise = EuclideanNoise(factor / epsilon)

    def loss(centre, rng):
        output = noise.release(centre, grid=grid, rng=rng)
        return float(np.linalg.norm(output - shift) - np.linalg.norm(output))

    bound = found(one_by_one(loss), np.zeros(dimension), shift, trials=trials)
    assert (0 < bound <= epsilon) if sound else bound > epsilon


def test_laplace_in_each_coordinate_where_the_length_is_bounded():
    """The broken twin of Euclidean noise: a shift of length 1 along the diagonal costs sqrt(d) epsilon."""
    epsilon, dimension = 1.0, 4
    shift = np.full(dimension, 1 / math.sqrt(dimension))

    def losses(centre, trials, rng):
        outputs = centre + rng.generator.laplace(scale=1 / epsilon, size=(trials, dimension))
        return np.abs(outputs - shift).sum(axis=1) - np.abs(outputs).sum(axis=1)

    assert found(losses, np.zeros(dimension), shift, trials=20_000) > epsilon


@pytest.mark.parametrize(("shown_with", "sound"), [(0.8, True), (0.9, False)])
def test_bernoulli_screen(shown_with, sound):
    """An informative record against one that is not; the twin shows more often than the event says."""
    low = coin_probability(0.2)
    charge = BernoulliScreenEvent(float(coin_probability(0.8)), float(low)).cost().epsilon

    def mechanism(informative, trials, rng):
        return flip_two_rate_coins(np.full(trials, informative), high=coin_probability(shown_with), low=low, rng=rng)

    bound = found(mechanism, True, False, trials=50_000)
    assert (0.9 * charge < bound <= charge) if sound else bound > charge


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("factor", "sound"), [(1.0, True), (1.4, False)])
def test_top_c(factor, sound):
    """A record at the top of the scores against one at the bottom; the twin's weights are 40 % too steep."""
    pool_size, picks, scale = 40, 3, 1.5
    charge = TopCEvent(pool_size, picks, scale).cost().epsilon
    others = np.linspace(0, 0.2, pool_size - 1)

    def picked(score, rng):
        scores = np.append(others, score)
        return float((select_top_c(scores, picks=picks, scale=scale * factor, rng=rng) == pool_size - 1).any())

    bound = found(one_by_one(picked), 1.0, 0.0, trials=12_000)
    assert (0.6 * charge < bound <= charge) if sound else bound > charge


def test_rank_bernoulli_costs_more_than_its_source_says():
    """Coins flipped down a ranked list: moving from first to last place is charged ln(p/(1-p)) and costs far more."""
    p, pool_size = 0.6, 6
    published = math.log(p / (1 - p))

    def picked_first_record(rank, trials, rng):
        stops = np.minimum(rng.generator.geometric(p, size=trials) - 1, pool_size - 1)
        return stops == rank

    assert found(picked_first_record, 0, pool_size - 1, trials=20_000) > published


def gate_counts(copies, trials, gate, key):
    """Counts shown for `trials` texts of `copies` records each, 0 for a text that is not shown."""
    texts = pa.array([f"text {number}" for number in range(trials)])
    batch = pa.RecordBatch.from_arrays([texts], names=["text"])
    released = gate.release([batch] * copies, key=key)
    counts = np.zeros(trials)
    counts[: released.num_rows] = released["sample_count"].to_numpy()
    return counts


def full_data_counts(copies, trials, gate, key):
    """The broken twin: distinct texts are sampled, and counted on the full data."""
    kept = np.random.default_rng(int.from_bytes(key[:8])).random(trials) < gate.sampling_rate
    return np.where(kept & (copies >= gate.k), float(copies), 0.0)


@pytest.mark.parametrize(("counts", "sound"), [(gate_counts, True), (full_data_counts, False)])
@pytest.mark.parametrize("copies", [5, 9])
def test_gate(counts, sound, copies):
    """The counts of a text with and without one record, at the threshold and above it."""
    gate = KAnonymityGate(5, 0.4)
    epsilon = 1.0
    charge = gate.event(epsilon).cost(adjacency="add_remove")

    def mechanism(count, trials, rng):
        key = hashlib.sha256(rng.words(4).tobytes()).digest()
        return counts(count, trials, gate, key)

    bound = found(mechanism, copies, copies - 1, trials=20_000, delta=charge.delta)
    assert charge.epsilon == epsilon
    assert bound <= epsilon if sound else bound > epsilon
