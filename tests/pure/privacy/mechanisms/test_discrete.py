"""Discrete noise: exact ratios between neighbours, the sampler's own accounting, grids."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.mechanisms.discrete import (
    DiscreteGaussian,
    DiscreteLaplace,
    check_grid,
    grid_laplace,
    release_on_grid,
)
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom


@given(
    epsilon=st.floats(1e-3, 20),
    sensitivity=st.integers(1, 50),
    k=st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=6),
    data=st.data(),
)
def test_neighbours_differ_by_at_most_epsilon(epsilon, sensitivity, k, data):
    """The log ratio of the mass at any output is within epsilon for every split of the L1 sensitivity."""
    left, total = sensitivity, 0.0
    mechanism = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity)
    for value in k:
        shift = data.draw(st.integers(-left, left))
        left -= abs(shift)
        total += mechanism.log_mass(value) - mechanism.log_mass(value + shift)
    assert abs(total) <= epsilon + 1e-9


@given(epsilon=st.floats(0.05, 5), sensitivity=st.integers(1, 20))
def test_mass_sums_to_one_and_the_whole_loss_is_used(epsilon, sensitivity):
    mechanism = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity)
    reach = math.ceil(40 * mechanism.scale)
    assert math.fsum(math.exp(mechanism.log_mass(k)) for k in range(-reach, reach + 1)) == pytest.approx(1, abs=1e-9)
    assert mechanism.log_mass(0) - mechanism.log_mass(sensitivity) == pytest.approx(epsilon, rel=1e-9)


@given(
    dimension=st.integers(1, 300),
    sensitivity=st.floats(0, 1e-3),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=200)
def test_rounded_neighbours_stay_within_the_integer_sensitivity(dimension, sensitivity, seed):
    """Random and sign-aligned shifts of the stated L2 length move the rounded vector by at most the L1 charged."""
    generator = np.random.default_rng(seed)
    grid = 2.0**-20
    values = generator.normal(size=dimension)
    noise = grid_laplace(dimension, epsilon=1.0, l2_sensitivity=sensitivity, grid=grid)
    for direction in (generator.normal(size=dimension), generator.choice([-1.0, 1.0], size=dimension)):
        shifted = values + direction / np.linalg.norm(direction) * sensitivity * (1 - 1e-9)
        assert np.abs(np.rint(values / grid) - np.rint(shifted / grid)).sum() <= noise.sensitivity


def test_release_is_a_multiple_of_the_grid_near_its_input():
    values = np.array([0.1, -3.0, 1e-9])
    for rng in (SecureRandom(), SimulationRandom(0)):
        released = release_on_grid(values, epsilon=1.0, l2_sensitivity=1e-6, grid=2.0**-30, rng=rng)
        assert ((released / 2.0**-30) % 1 == 0).all()
        # The scale is about 2e-6; a draw past 1e-3 happens once in e**500.
        assert np.abs(released - values).max() < 1e-3


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(0.5, 3), DiscreteGaussian(0.5, 3.0)])
def test_secure_and_simulated_draws_have_one_law(mechanism):
    """Two-sample variance comparison at six sigma (relative error sqrt(5/n + 5/n) for Laplace)."""
    zeros = np.zeros(20_000, dtype=np.int64)
    exact = mechanism.release(zeros, rng=SecureRandom()).var()
    simulated = mechanism.release(zeros, rng=SimulationRandom(0)).var()
    assert abs(exact / simulated - 1) < 6 * math.sqrt(10 / zeros.size)


def test_gaussian_scale_is_rounded_against_us():
    mechanism = DiscreteGaussian(rho=0.3, sensitivity=2.0)
    assert 2.0**2 / (2 * mechanism.scale**2) <= 0.3


@pytest.mark.parametrize("grid", [0.0, -0.5, 0.3, math.inf, math.nan])
def test_grid_must_be_a_power_of_two(grid):
    with pytest.raises(ValueError, match="power of two"):
        check_grid(grid)


def test_refusals():
    for epsilon, sensitivity in ((0.0, 1), (math.nan, 1), (1.0, 0), (1.0, 1.5), (1.0, 2**63)):
        with pytest.raises(ValueError, match="must be"):
            DiscreteLaplace(epsilon, sensitivity)
    with pytest.raises(ValueError, match="vector of int64"):
        DiscreteLaplace(1.0, 1).release(np.zeros(3), rng=SecureRandom())
    with pytest.raises(ValueError, match="steps"):
        release_on_grid(np.array([math.nan]), epsilon=1.0, l2_sensitivity=0.0, grid=0.5, rng=SecureRandom())
    with pytest.raises(ValueError, match="dimension"):
        grid_laplace(0, epsilon=1.0, l2_sensitivity=0.0, grid=0.5)
