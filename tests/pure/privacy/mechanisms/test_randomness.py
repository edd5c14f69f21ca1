import numpy as np
import pytest

from privacy.mechanisms.randomness import SecureRandom, SimulationRandom, random_source

SOURCES = [SecureRandom(), SimulationRandom(7)]


@pytest.mark.parametrize("rng", SOURCES)
def test_shapes_and_ranges(rng):
    assert 0 <= rng.random() < 1
    uniform = rng.random((3, 4))
    assert uniform.shape == (3, 4)
    assert ((uniform * 2**53) % 1 == 0).all()
    assert rng.integers(5, size=1_000).max() == 4
    assert rng.integers(-3, 3, size=(2, 500)).min() == -3
    assert 10 <= rng.integers(10, 12) < 12
    assert 0 <= rng.bits(100) < 2**100
    assert rng.exponential(2.0, size=10).min() >= 0
    assert rng.exponential() >= 0


@pytest.mark.parametrize("rng", SOURCES)
def test_permutation_keeps_every_row(rng):
    assert sorted(rng.permutation(50).tolist()) == list(range(50))
    assert sorted(rng.permutation(["b", "a", "c"]).tolist()) == ["a", "b", "c"]


def test_integers_show_no_modulo_bias():
    """Six sigma on the share of zeros among three values; words taken modulo 3 of two bits would show one half."""
    drawn = SimulationRandom(1).integers(3, size=300_000)
    assert abs(np.mean(drawn == 0) - 1 / 3) < 6 * np.sqrt(2 / 9 / 300_000)


def test_seed_repeats_and_the_operating_system_does_not():
    assert SimulationRandom(3).bits(256) == SimulationRandom(3).bits(256)
    assert SecureRandom().bits(256) != SecureRandom().bits(256)


def test_only_the_missing_random_state_is_secure():
    assert not random_source(None).simulated
    for state in (0, np.int64(3), np.random.default_rng(0), SimulationRandom(0)):
        assert random_source(state).simulated
    secure = SecureRandom()
    assert random_source(secure) is secure


@pytest.mark.parametrize(("low", "high"), [(0, None), (3, 3), (0, 2**63 + 1)])
def test_refuses_ranges_it_cannot_draw_from(low, high):
    with pytest.raises(ValueError, match="range"):
        SecureRandom().integers(low, high)
