import math

import numpy as np
import pytest

from privacy.mechanisms import lazy_draw
from privacy.mechanisms.gaussian import GaussianTilt
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_any_dimension_is_drawn_and_never_twice_the_same(dimension):
    first, second = (GaussianTilt(2.0).sample(dimension, rng=SecureRandom()) for _ in range(2))
    assert first.shape == (dimension,)
    assert not np.array_equal(first, second)


def test_few_first_bits_are_extended_until_the_floats_are_certain(monkeypatch):
    """With two bits to begin with every draw has to be extended; its law stays what it is."""
    monkeypatch.setattr(lazy_draw, "FIRST_BITS", 2)
    draws = np.concatenate([GaussianTilt(1.0).sample(4, rng=SimulationRandom(seed)) for seed in range(1_500)])
    inside = float((np.abs(draws) < 1).mean())
    assert abs(inside - 0.6827) < 5 * math.sqrt(0.6827 * 0.3173 / len(draws))


def test_refusals():
    for sigma in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="sigma must be > 0"):
            GaussianTilt(sigma)
    with pytest.raises(ValueError, match="dimension"):
        GaussianTilt(1.0).sample(0, rng=SecureRandom())
