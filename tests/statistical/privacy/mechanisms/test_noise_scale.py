"""Noise has the scale it is charged for: draws pass for their own scale and are refused for one 1 % off."""

import math
import os

import numpy as np
import pytest

from privacy.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.screening import coin_probability, flip_two_rate_coins
from privacy.mechanisms.top_c import select_top_c

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
pytestmark = pytest.mark.statistical


def accepted_factors(z_score, *, limit, off=0.01):
    """Return which of three claimed scales the draws are compatible with; the first is the true one."""
    return [factor for factor in (1.0, 1 + off, 1 - off) if abs(z_score(factor)) < limit]


@pytest.mark.slow
def test_exact_discrete_laplace():
    """Mean size, not seeded, since no seed reaches the exact sampler.

    False alarm 4e-8 (5.5 sigma); a claim 2 % off stands 15 sigma away and escapes never.
    """
    sizes = np.abs(DiscreteLaplace(20.0).release(np.zeros(600_000 * MORE, dtype=np.int64), rng=SecureRandom()))

    def z_score(factor):
        p = math.exp(-1 / (20 * factor))
        mean = 2 * p / (1 - p**2)
        variance = 2 * p / (1 - p) ** 2 - mean**2
        return (sizes.mean() - mean) / math.sqrt(variance / len(sizes))

    assert accepted_factors(z_score, limit=5.5, off=0.02) == [1.0]


@pytest.mark.slow
def test_exact_discrete_gaussian():
    """Variance, not seeded. False alarm 4e-8 (5.5 sigma); a claim 2 % off stands 15 sigma away and escapes never."""
    draws = DiscreteGaussian(20.0).release(np.zeros(300_000 * MORE, dtype=np.int64), rng=SecureRandom())
    square = float((draws.astype(float) ** 2).mean())
    assert accepted_factors(
        lambda factor: (square / (20 * factor) ** 2 - 1) * math.sqrt(len(draws) / 2), limit=5.5, off=0.02
    ) == [1.0]


@pytest.mark.slow
def test_euclidean_noise():
    """Mean length of 400-dimensional noise, seeded, 3 sigma (false alarm 3e-3); a claim 1 % off stands 4 away."""
    rng, noise, dimension = SimulationRandom(20_250_103), EuclideanNoise(3.0), 400
    draws = 400 * MORE
    total = sum(float(np.linalg.norm(noise.sample(dimension, rng=rng))) for _ in range(draws))
    # The length is Gamma distributed with shape d.
    assert accepted_factors(
        lambda factor: (total / (3 * factor) - draws * dimension) / math.sqrt(draws * dimension), limit=3
    ) == [1.0]


def test_screening_coins():
    """Share of both rates, seeded, 5 sigma (false alarm 6e-7); a rate 1 % off stands over 6 sigma away."""
    n = 1_000_000
    high, low = coin_probability(0.7), coin_probability(0.3)
    shown = flip_two_rate_coins(np.arange(2 * n) < n, high=high, low=low, rng=SimulationRandom(20_250_104))
    for share, rate in ((shown[:n].mean(), 0.7), (shown[n:].mean(), 0.3)):

        def z_score(factor, share=share, rate=rate):
            return (share - rate * factor) / math.sqrt(rate * factor * (1 - rate * factor) / n)

        assert accepted_factors(z_score, limit=5) == [1.0]


@pytest.mark.slow
def test_top_c_weights():
    """Share of high scores among the picks, seeded, 4 sigma (false alarm 6e-5); a scale 1 % off stands 6 away.

    Few of many records are taken, so the picks are nearly independent (slightly less spread than assumed).
    """
    rng, m, picks, scale, rounds = SimulationRandom(20_250_105), 100_000, 4_000, 2.0, 250
    scores = np.arange(m) % 2.0
    high = sum(int((select_top_c(scores, picks=picks, scale=scale, rng=rng) % 2).sum()) for _ in range(rounds))
    n = picks * rounds

    def z_score(factor):
        rate = expected_share(m, picks, scale * factor)
        return (high / n - rate) / math.sqrt(rate * (1 - rate) / n)

    assert accepted_factors(z_score, limit=4) == [1.0]


def expected_share(m, picks, scale):
    """Mean share of the heavier half when `picks` of `m` are drawn one after another, by the fluid limit."""
    weight = math.exp(scale)
    light, heavy, taken = m / 2, m / 2 * weight, 0.0
    for _ in range(picks):
        share = heavy / (light + heavy)
        taken += share
        heavy -= share * weight
        light -= 1 - share
    return taken / picks
