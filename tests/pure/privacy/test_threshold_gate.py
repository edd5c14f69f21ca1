import math
from fractions import Fraction

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.events import event_from_json
from privacy.accounting.gate_events import weighted_gaussian_delta
from privacy.gate.kanonymity import ThresholdGate
from privacy.gate.threshold import STEPS, GaussianNoise, GeometricNoise, _weighed, exact_coins, threshold_gate_at
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom

RECORD_NOISES = ("discrete_laplace", "truncated_geometric", "weighted_gaussian")


def batch_of(records):
    return pa.RecordBatch.from_pydict(
        {"text": [text for text, _ in records], "contributor": [person for _, person in records]}
    )


def as_dict(table):
    return dict(zip(table["text"].to_pylist(), table["noisy_count"].to_pylist(), strict=True))


@pytest.mark.parametrize("noise", RECORD_NOISES)
def test_frequent_texts_come_out_close_to_their_counts(noise):
    records = [("Play jazz!", "ann")] * 400 + [("play jazz", "bob")] * 100 + [("stop", "ann")] * 300 + [("rare", "x")]
    gate = ThresholdGate(1.0, 1e-9, noise=noise)
    released = as_dict(gate.release([batch_of(records[:450]), batch_of(records[450:])]))
    assert set(released) == {"play jazz", "stop"}
    assert abs(released["play jazz"] - 500) < 60
    assert abs(released["stop"] - 300) < 60


def test_contributors_count_once_and_weigh_less_the_more_they_say():
    """Of 400 people 200 say one text and 200 two: 200 + 200/sqrt(2) on the shared one; a chatterer weighs one."""
    records = [("stop", f"p{i}") for i in range(400)] + [("more", f"p{i}") for i in range(200)]
    records += [("stop", "p399")] * 1000
    gate = ThresholdGate(2.0, 1e-6, "contributor", 2)
    released = as_dict(gate.release([batch_of(records)]))
    assert released["stop"] == pytest.approx(200 + 200 / math.sqrt(2), abs=40)
    assert released["more"] == pytest.approx(200 / math.sqrt(2), abs=40)


@given(
    records=st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz")), max_size=80),
    memory=st.sampled_from([100, 2**27]),
    seed=st.integers(0, 9),
)
def test_noise_is_added_to_the_exact_counts(records, memory, seed):
    """With next to no noise the output is the exact count of records, from the threshold on."""
    gate = ThresholdGate(60.0, 0.4, noise="truncated_geometric", floor=3)
    released = gate.release([batch_of(records)], rng=SimulationRandom(seed), memory_bytes=memory)
    counts = {text: sum(text == other for other, _ in records) for text, _ in records}
    assert as_dict(released) == {text: count for text, count in counts.items() if count >= gate.event().threshold}


@pytest.mark.parametrize("noise", RECORD_NOISES)
def test_nothing_under_the_floor(noise):
    records = [(f"text {i}", f"p{j}") for i in range(300) for j in range(i % 8)]
    gate = ThresholdGate(0.3, 0.3, noise=noise, floor=5)
    for seed in range(20):
        released = gate.release([batch_of(records)], rng=SimulationRandom(seed), memory_bytes=2000)
        assert all(int(text.split()[1]) % 8 >= 5 for text in released["text"].to_pylist())
        assert min(released["noisy_count"].to_pylist()) >= gate.event().threshold
        assert released["text"].to_pylist() == sorted(released["text"].to_pylist())


@pytest.mark.parametrize(
    ("noise", "unit", "cap", "copies"),
    [
        ("discrete_laplace", "record", None, 1),
        ("truncated_geometric", "record", None, 1),
        ("truncated_geometric", "contributor", 4, 4),
        ("weighted_gaussian", "contributor", 4, 1),
        (None, "record", None, 1),
        (None, "contributor", 3, 1),
    ],
)
@pytest.mark.parametrize("floor", [1, 10])
def test_event_costs_what_was_asked_for(noise, unit, cap, copies, floor):
    event = ThresholdGate(0.7, 1e-6, unit, cap, noise=noise, floor=floor).event()
    cost = event.cost()
    assert cost.epsilon == pytest.approx(0.7 * copies, rel=1e-12)
    assert cost.delta == pytest.approx(1e-6 * copies, rel=1e-12)
    assert event_from_json(event.to_json()) == event


def test_grid_of_the_gaussian_is_paid_for():
    """The noise reaches a delta a little under the declared one; what the grid may add fits in between."""
    event = ThresholdGate(0.7, 1e-6, "contributor", 3).event()
    reached = weighted_gaussian_delta(0.7, event.noise_scale, event.threshold, 3)
    assert reached <= 1e-6 * (1 - 0.99e-9)
    assert event.cost().delta == 1e-6


@given(texts=st.integers(1, 3000))
def test_weights_of_a_contributor_have_a_norm_of_at_most_one(texts):
    pairs = pa.table(
        {
            "text": pa.array([f"{i}" for i in range(texts)]).dictionary_encode(),
            "contributor": pa.array([b"ann"] * texts, pa.large_binary()).dictionary_encode(),
        }
    )
    weights = _weighed(pairs)["weight"].to_pylist()
    assert sum(weight**2 for weight in weights) <= STEPS**2
    assert sum(weight**2 for weight in weights) > (STEPS * (1 - 1e-4)) ** 2


@given(scale=st.floats(0.05, 200), distance=st.integers(1, 60), bound=st.none() | st.integers(0, 60))
def test_tail_chances_are_certain_bounds(scale, distance, bound):
    """Against a sum of the masses with 80 digits."""
    low, high = GeometricNoise(scale, bound)._tail(distance, 64)
    with mpmath.workdps(80):
        q = mpmath.exp(-1 / mpmath.mpf(scale))
        if bound is None:
            chance = q**distance / (1 + q)
        else:
            masses = {z: q ** abs(z) for z in range(-bound, bound + 1)}
            chance = mpmath.fsum(mass for z, mass in masses.items() if z >= distance) / mpmath.fsum(masses.values())
        assert low <= chance * 2**64 <= high
    assert high - low <= 3


class Scripted(SimulationRandom):
    def __init__(self, words):
        super().__init__(0)
        self.script = list(words)

    def words(self, count):
        drawn = [self.script.pop(0) for _ in range(count)]
        return np.array(drawn, dtype=np.uint64)


@pytest.mark.parametrize(
    ("chance", "words", "shown"),
    [
        (Fraction(1, 4), [2**62 - 1], True),
        (Fraction(1, 4), [2**62], False),
        (Fraction(1, 3), [2**64 // 3, 0], True),
        (Fraction(1, 3), [2**64 // 3, 2**64 - 1], False),
        (Fraction(1, 3), [2**64 // 3, 2**64 // 3, 2**64 // 3, 5], True),
        (Fraction(1), [2**64 - 1, 3], True),
        (Fraction(0), [0, 0], False),
    ],
)
def test_a_coin_is_settled_with_as_many_bits_as_it_needs(chance, words, shown):
    """The word is compared with the chance itself, however close the two are."""

    def bounds(bits):
        exact = chance * 2**bits
        return math.floor(exact), math.ceil(exact)

    assert exact_coins(bounds, 1, Scripted(words)).tolist() == [shown]


@pytest.mark.parametrize("bound", [None, 4])
def test_noise_on_both_paths_stays_in_its_range(bound):
    """Counts above and under the threshold, with the secure source."""
    counts = np.arange(0, 40, dtype=np.int64).repeat(50)
    passed, noisy = GeometricNoise(2.0, bound).release(counts, 20, rng=SecureRandom())
    assert (noisy >= 20).all()
    assert len(noisy) == passed.sum()
    if bound is not None:
        assert np.abs(noisy - counts[passed]).max() <= bound
        assert passed[counts >= 24].all()
        assert not passed[counts < 16].any()


def test_coarse_gaussian_grid_is_refused():
    with pytest.raises(ValueError, match="got 1000"):
        GaussianNoise(1000.0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"unit": "household"},
        {"unit": "contributor"},
        {"texts_per_contributor": 2},
        {"noise": "laplace"},
        {"floor": 0},
        {"normalizer": "L9"},
    ],
)
def test_parameters_are_checked(arguments):
    with pytest.raises(ValueError):
        ThresholdGate(**{"epsilon": 1.0, "delta": 1e-6, **arguments})


@pytest.mark.parametrize("floor", [1, 2, 5])
@pytest.mark.parametrize(
    ("cap", "noise"), [(1, "truncated_geometric"), (2, "truncated_geometric"), (5, "weighted_gaussian")]
)
def test_the_noise_that_fewest_people_must_speak_up_against_at_one_whole_price(cap, noise, floor):
    gate = threshold_gate_at(1.0, 7.8e-6, "contributor", cap, floor=floor)
    assert (gate.noise, gate.texts_per_contributor, gate.floor) == (noise, cap, floor)
    cost = gate.event().cost()
    assert 1 - 1e-9 < cost.epsilon <= 1.0
    assert 7.7e-6 < cost.delta <= 7.8e-6
    rival = ThresholdGate(1.0, 7.8e-6, "contributor", cap, "weighted_gaussian", floor)
    # A contributor of so many texts counts one for each, or less under Gaussian noise.
    needed = gate.event().threshold * (math.sqrt(cap) if noise == "weighted_gaussian" else 1)
    assert needed <= rival.event().threshold * math.sqrt(cap)
