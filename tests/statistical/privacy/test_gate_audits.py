"""Audits of the threshold gate and of the cap; the planted twins, two common shortcuts among them, do not pass."""

import dataclasses
import hashlib
import math

import numpy as np
import pyarrow as pa
import pytest

from privacy.evidence import epsilon_lower_bound
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.gate.threshold import GeometricNoise
from privacy.mechanisms.randomness import SimulationRandom

EPSILON, DELTA = 1.0, 0.01
SEED = 20_250_311
CAPPED_GATE = KAnonymityGate(4, 0.5, unit="contributor", texts_per_contributor=1)
pytestmark = pytest.mark.statistical


def noisy_counts(event, copies, trials, rng, *, least=1):
    """Noisy counts of `trials` texts of `copies` records each, 0 for a text that is not shown."""
    counts = np.full(trials, copies, dtype=np.int64)
    bound = event.truncation if event.noise == "truncated_geometric" else None
    threshold = math.ceil(event.threshold)
    passed, noisy = GeometricNoise(event.noise_scale, bound).release(counts, threshold, rng=rng)
    shown = np.zeros(trials)
    shown[passed] = noisy
    return shown if copies >= least else np.zeros(trials)


def sound(noise, floor):
    event = ThresholdGate(EPSILON, DELTA, noise=noise, floor=floor).event()
    return lambda copies, trials, rng: noisy_counts(event, copies, trials, rng, least=floor)


def quiet(noise, floor):
    """Four fifths of the noise, at the same threshold."""
    event = ThresholdGate(EPSILON, DELTA, noise=noise, floor=floor).event()
    quieter = dataclasses.replace(event, noise_scale=0.8 * event.noise_scale)
    return lambda copies, trials, rng: noisy_counts(quieter, copies, trials, rng, least=floor)


def floor_on_top(noise, floor):
    """A floor beside a threshold that was not raised for it: a second gate, without noise."""
    event = ThresholdGate(EPSILON, DELTA, noise=noise).event()
    return lambda copies, trials, rng: noisy_counts(event, copies, trials, rng, least=floor)


@pytest.mark.parametrize("noise", ["discrete_laplace", "truncated_geometric"])
@pytest.mark.parametrize(
    ("make", "floor", "copies", "passes"),
    [(sound, 1, 1, True), (sound, 1, 9, True), (sound, 8, 8, True), (quiet, 1, 9, False), (floor_on_top, 8, 8, False)],
)
def test_threshold_gate(noise, make, floor, copies, passes):
    """One record more or fewer; a lower bound at 99.99 % confidence that only the twins exceed the charge with."""
    charge = ThresholdGate(EPSILON, DELTA, noise=noise, floor=floor).event().cost(adjacency="add_remove")
    bound = epsilon_lower_bound(
        make(noise, floor),
        copies,
        copies - 1,
        trials=60_000,
        confidence=0.9999,
        delta=charge.delta,
        rng=SimulationRandom(SEED),
    )
    assert (bound <= EPSILON) == passes


def capped_count(people, key, *, filter_first):
    """The sample count of "stop" where everybody says "stop" and "rare", and keeps one of the two."""
    texts = ["stop", "rare"]
    if filter_first and people < 30:
        texts = ["stop"]
    batch = pa.RecordBatch.from_pydict(
        {
            "text": [text for _ in range(people) for text in texts],
            "contributor": [f"person {number}" for number in range(people) for _ in texts],
        }
    )
    released = CAPPED_GATE.release([batch], key=key)
    shown = dict(zip(released["text"].to_pylist(), released["sample_count"].to_pylist(), strict=True))
    return shown.get("stop", 0)


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("filter_first", "passes"), [(False, True), (True, False)])
def test_a_filter_ahead_of_the_cap_is_found_out(filter_first, passes):
    """The thirtieth person lifts "rare" over a filter, and everybody else's cap lets go of "stop"."""

    def mechanism(people, trials, rng):
        keys = (hashlib.sha256(rng.words(4).tobytes()).digest() for _ in range(trials))
        return np.array([capped_count(people, key, filter_first=filter_first) for key in keys], dtype=np.float64)

    charge = CAPPED_GATE.event(2.0).cost()
    bound = epsilon_lower_bound(
        mechanism, 30, 29, trials=1000, confidence=0.9999, delta=charge.delta, rng=SimulationRandom(SEED)
    )
    assert (bound <= charge.epsilon) == passes
