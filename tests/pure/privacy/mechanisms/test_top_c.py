import decimal
import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.screens import top_c_epsilon
from privacy.mechanisms import top_c
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.top_c import select_top_c


def set_probabilities(scores, picks, scale):
    weights = np.exp(scale * np.asarray(scores))
    result = {}
    for order in itertools.permutations(range(len(scores)), picks):
        left, probability = weights.sum(), 1.0
        for i in order:
            probability *= weights[i] / left
            left -= weights[i]
        key = tuple(sorted(order))
        result[key] = result.get(key, 0.0) + probability
    return result


def test_sets_appear_with_their_exact_probabilities():
    """Chi-square over 10 sets, 9 degrees of freedom; 40.8 is passed by a right sampler once in 200,000 seeds."""
    scores, picks, scale, trials = np.array([0.0, 0.3, 0.5, 0.9, 1.0]), 2, 2.0, 20_000
    rng = SimulationRandom(11)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(trials):
        chosen = tuple(select_top_c(scores, picks=picks, scale=scale, rng=rng).tolist())
        seen[chosen] = seen.get(chosen, 0) + 1

    def statistic(expected):
        return sum((seen.get(key, 0) - trials * p) ** 2 / (trials * p) for key, p in expected.items())

    assert statistic(set_probabilities(scores, picks, scale)) < 40.8
    assert statistic(set_probabilities(scores, picks, scale * 1.1)) > 40.8


@given(
    scores=st.lists(st.floats(0, 1), min_size=2, max_size=5),
    moved=st.floats(0, 1),
    scale=st.floats(0.05, 4),
    data=st.data(),
)
def test_sets_of_neighbours_are_within_the_charge(scores, moved, scale, data):
    """The exact worst log ratio over all sets, when one record takes any other score."""
    picks = data.draw(st.integers(1, len(scores)))
    before = set_probabilities(scores, picks, scale)
    after = set_probabilities([moved, *scores[1:]], picks, scale)
    worst = max(abs(math.log(before[key] / after[key])) for key in before)
    assert worst <= top_c_epsilon(len(scores), picks, scale) + 1e-9


def test_the_charge_is_reached_by_the_best_against_the_worst():
    """One pick from a pool whose other records score zero: the likelier the record, the closer to the scale."""
    before = set_probabilities([1.0] + [0.0] * 99, 1, 1.0)
    after = set_probabilities([0.0] * 100, 1, 1.0)
    assert 0.97 < math.log(before[(0,)] / after[(0,)]) <= top_c_epsilon(100, 1, 1.0)


def test_blocks_and_one_array_choose_alike(monkeypatch):
    monkeypatch.setattr(top_c, "BLOCK_ROWS", 100)
    scores = np.random.default_rng(0).random(5_000).astype(np.float32)
    whole = select_top_c(scores, picks=40, scale=3.0, rng=SimulationRandom(5))
    parts = select_top_c(np.split(scores, 50), picks=40, scale=3.0, rng=SimulationRandom(5))
    assert whole.tolist() == parts.tolist()
    assert len(set(whole.tolist())) == 40


def test_no_contender_is_lost_to_the_streaming_filter(monkeypatch):
    """The same words, with and without the filter, name the same records."""
    scores = np.random.default_rng(1).random(4_000)
    monkeypatch.setattr(top_c, "BLOCK_ROWS", 64)
    filtered = select_top_c(scores, picks=25, scale=6.0, rng=SimulationRandom(9))
    monkeypatch.setattr(top_c, "_largest_word", lambda _: np.uint64(2**64 - 1))
    assert filtered.tolist() == select_top_c(scores, picks=25, scale=6.0, rng=SimulationRandom(9)).tolist()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_float_and_exact_settlement_agree(monkeypatch, scale):
    """A margin so wide that every race goes to the decimal path must not change who wins."""
    scores = np.random.default_rng(2).random(200)
    usual = [select_top_c(scores, picks=7, scale=scale, rng=SimulationRandom(seed)).tolist() for seed in range(20)]
    monkeypatch.setattr(top_c, "FLOAT_MARGIN", 0.5)
    assert usual == [
        select_top_c(scores, picks=7, scale=scale, rng=SimulationRandom(seed)).tolist() for seed in range(20)
    ]


class EqualWords(SimulationRandom):
    def words(self, count):
        return np.full(count, 2**40, dtype=np.uint64) if count > 1 else super().words(count)


def test_ties_in_the_first_64_bits_are_broken_evenly():
    """Six-sigma bound: a fair coin fails once in 500 million seeds."""
    rng = EqualWords(3)
    first = sum(int(select_top_c(np.full(2, 0.5), picks=1, scale=1.0, rng=rng)[0]) for _ in range(2_000))
    assert abs(first - 1_000) < 6 * math.sqrt(2_000 / 4)


@pytest.mark.parametrize("bits", [64, 128, 192])
def test_key_intervals_enclose_the_real_key_and_are_as_narrow_as_the_bits_allow(bits):
    rng = np.random.default_rng(0)
    edge = [1, 2, 2**40, 2**bits - 3, 2**bits - 2]
    for digits in [*edge, *(int(word) << (bits - 64) for word in rng.integers(2**62, 2**63, size=20))]:
        for score, scale in ((0.0, 1.0), (0.1, 8.0), (1.0, 0.3)):
            low, high = top_c._key_interval(digits, bits, score, scale)
            with mpmath.workdps(120):
                for end in (digits, digits + 1):
                    key = mpmath.log(-mpmath.log1p(-mpmath.mpf(end) / 2**bits)) - mpmath.mpf(scale) * mpmath.mpf(score)
                    assert mpmath.mpf(str(low)) < key < mpmath.mpf(str(high))
            if digits not in edge:
                assert high - low < 32 * decimal.Decimal(2) ** -bits + decimal.Decimal(10) ** -(bits // 3 + 7)


def test_ends_of_the_unit_interval_are_unbounded():
    assert top_c._key_interval(0, 64, 0.5, 1.0)[0] == decimal.Decimal("-Infinity")
    assert top_c._key_interval(2**64 - 1, 64, 0.5, 1.0)[1] == decimal.Decimal("Infinity")


def test_taking_every_record_returns_all():
    assert select_top_c(np.zeros(5), picks=5, scale=1.0, rng=SecureRandom()).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("scores", "picks", "scale"),
    [([0.5], 0, 1.0), ([0.5], 2, 1.0), ([0.5], 1, 0.0), ([0.5], 1, math.inf), ([1.5], 1, 1.0), ([math.nan], 1, 1.0)],
)
def test_refuses_what_has_no_proof(scores, picks, scale):
    with pytest.raises(ValueError, match="must"):
        select_top_c(np.array(scores), picks=picks, scale=scale, rng=SecureRandom())
