import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privacy.mechanisms import lazy_draw
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom


@given(
    epsilon=st.floats(1e-3, 10),
    sensitivity=st.floats(1e-3, 10),
    dimension=st.integers(1, 40),
    seed=st.integers(0, 2**32),
)
def test_density_ratio_of_neighbours_is_within_epsilon(epsilon, sensitivity, dimension, seed):
    """Also at the worst outputs, those on the line through both centres, where it is reached."""
    generator = np.random.default_rng(seed)
    noise = EuclideanNoise(sensitivity / epsilon)
    shift = generator.normal(size=dimension)
    shift *= sensitivity / np.linalg.norm(shift)
    for output in (generator.normal(size=dimension) * sensitivity, 3 * shift, -shift):
        assert abs(noise.log_density(output) - noise.log_density(output - shift)) <= epsilon * (1 + 1e-9)
    assert noise.log_density(2 * shift) - noise.log_density(3 * shift) == pytest.approx(epsilon)


@given(epsilon=st.floats(0.1, 4), centre=st.floats(-2, 2), shift=st.floats(-1, 1), step=st.integers(-20, 20))
def test_rounded_mass_ratio_is_within_epsilon_in_one_dimension(epsilon, centre, shift, step):
    """Exact mass of each grid point under two centres at most one sensitivity apart."""
    grid = mpmath.mpf(1) / 4

    def cdf(x):
        return mpmath.exp(epsilon * x) / 2 if x < 0 else 1 - mpmath.exp(-epsilon * x) / 2

    def mass(middle):
        with mpmath.workdps(60):
            return cdf((step + 0.5) * grid - middle) - cdf((step - 0.5) * grid - middle)

    assert abs(mpmath.log(mass(mpmath.mpf(centre)) / mass(mpmath.mpf(centre) + shift))) <= epsilon * (1 + 1e-12)


class OneDraw(SimulationRandom):
    """Repeats the first words it makes, so that one draw can be looked at from two sides."""

    def __init__(self, seed):
        super().__init__(seed)
        self.seed = seed

    def rewound(self):
        return OneDraw(self.seed)


@pytest.mark.parametrize("dimension", [1, 2, 7, 40])
def test_release_is_the_rounding_of_the_sum(dimension):
    """The same draw, sampled as floats and added exactly, rounds to the same grid points."""
    noise, rng = EuclideanNoise(1.3 / 0.7), OneDraw(5)
    values = np.random.default_rng(1).normal(size=dimension)
    drawn = noise.sample(dimension, rng=rng)
    released = noise.release(values, grid=2.0**-10, rng=rng.rewound())
    for value, extra, output in zip(values, drawn, released, strict=True):
        steps = (Fraction(float(value)) + Fraction(float(extra))) * 2**10
        assert output == math.floor(steps + Fraction(1, 2)) * 2.0**-10


@pytest.mark.parametrize("dimension", [1, 3, 8])
def test_few_first_bits_give_the_same_noise_after_extension(monkeypatch, dimension):
    """With two bits to start from nearly every draw must be extended, points on the circle included.

    Kolmogorov-Smirnov statistics against the Gamma and uniform laws, each at a false-alarm rate of 1e-6.
    """
    monkeypatch.setattr(lazy_draw, "FIRST_BITS", 2)
    rng = SimulationRandom(13)
    draws = np.array([EuclideanNoise(0.5).sample(dimension, rng=rng) for _ in range(1_500)])
    lengths = np.linalg.norm(draws, axis=1)
    assert stats.kstest(lengths, stats.gamma(dimension, scale=0.5).cdf).pvalue > 1e-6
    assert stats.kstest(lengths, stats.gamma(dimension, scale=0.6).cdf).pvalue < 1e-6
    if dimension == 3:  # a coordinate of a uniform direction in three dimensions is uniform
        assert stats.kstest(draws[:, 0] / lengths, stats.uniform(-1, 2).cdf).pvalue > 1e-6


def test_intervals_enclose_the_real_functions():
    exact = lazy_draw.Directed(40)
    whole = (2**64, 2**64)
    rng = np.random.default_rng(0)
    with mpmath.workdps(80):
        for numerator in [1, 2, 2**63, 2**64 - 1, *rng.integers(1, 2**62, size=50).tolist()]:
            part, wider = (
                exact.quotient((numerator, numerator), whole),
                exact.quotient((10**37, 10**37 + 1), (10**37,) * 2),
            )
            true = mpmath.mpf(numerator) / 2**64
            for low, high, value in (
                (*exact.minus_log(part), -mpmath.log(true)),
                (*exact.root(part), mpmath.sqrt(true)),
                (*exact.divide(part, exact.times(part, part)), 1 / true),
                (*exact.minus(exact.times(wider, wider), part), 1 - true),
                (*exact.minus_log((part[0], exact.times(part, wider)[1])), -mpmath.log(true)),
            ):
                assert mpmath.mpf(str(low)) <= value <= mpmath.mpf(str(high))
                assert high - low <= abs(high) * lazy_draw.Decimal("1e-36") + lazy_draw.Decimal("1e-36")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dimension", [2, 5, 6])
def test_directions_are_uniform(dimension):
    """Each coordinate's square is Beta(1/2, (d-1)/2); Kolmogorov-Smirnov over all at a false-alarm rate of 1e-6.

    A direction made of uniform instead of normal coordinates is refused by the same test.
    """
    rng = SimulationRandom(17)
    draws = np.array([EuclideanNoise(1.0).sample(dimension, rng=rng) for _ in range(6_000)])
    wrong = np.random.default_rng(0).uniform(-1, 1, size=draws.shape)
    for index in {0, dimension - 1}:
        for sample, right in ((draws, True), (wrong, False)):
            squares = sample[:, index] ** 2 / (sample**2).sum(axis=1)
            assert (stats.kstest(squares, stats.beta(0.5, (dimension - 1) / 2).cdf).pvalue > 1e-6) == right
    # Pairs share no sign and no order: correlations of signs and of squares with those of the neighbour vanish.
    signs = np.sign(draws)
    assert np.abs(np.triu(signs.T @ signs / len(draws), 1)).max() < 6 / np.sqrt(len(draws))
    by_coordinate = (draws**2 / (draws**2).sum(axis=1, keepdims=True)).mean(axis=0)
    assert np.abs(by_coordinate - 1 / dimension).max() < 6 * np.sqrt(2 / dimension**2 / len(draws))


def test_unbounded_intervals_are_not_settled():
    """All bits zero: the logarithm is unbounded, and only an extension ends the draw."""

    class ZerosFirst(SimulationRandom):
        asked = 0

        def bits(self, count):
            self.asked += 1
            return 0 if self.asked <= 8 else super().bits(count)

    drawn = EuclideanNoise(1.0).sample(2, rng=ZerosFirst(0))
    assert np.isfinite(drawn).all()


def test_secure_release_lands_on_the_grid():
    released = EuclideanNoise(0.01).release(np.ones(5), grid=2.0**-20, rng=SecureRandom())
    assert ((released * 2**20) % 1 == 0).all()
    assert not np.array_equal(released, np.ones(5))


def test_refusals():
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="must be > 0"):
            EuclideanNoise(scale)
    noise = EuclideanNoise(1.0)
    with pytest.raises(ValueError, match="power of two"):
        noise.release(np.zeros(1), grid=0.1, rng=SecureRandom())
    with pytest.raises(ValueError, match="finite"):
        noise.release(np.array([math.inf]), grid=0.5, rng=SecureRandom())
    with pytest.raises(ValueError, match="dimension"):
        noise.sample(0, rng=SecureRandom())
