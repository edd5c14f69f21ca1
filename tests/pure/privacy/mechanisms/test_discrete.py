import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance

from privacy.accounting.training import grid_slack
from privacy.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace, check_grid, release_on_grid
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom


@given(
    epsilon=st.floats(1e-3, 20),
    sensitivity=st.integers(1, 50),
    outputs=st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=6),
    data=st.data(),
)
def test_neighbours_differ_by_at_most_epsilon(epsilon, sensitivity, outputs, data):
    """The log ratio of the mass at any output is within sensitivity over scale, however the L1 distance is split."""
    mechanism = DiscreteLaplace(sensitivity / epsilon)
    left, total = sensitivity, 0.0
    for output in outputs:
        shift = data.draw(st.integers(-left, left))
        left -= abs(shift)
        total += mechanism.log_mass(output) - mechanism.log_mass(output + shift)
    assert abs(total) <= epsilon + 1e-9


@given(epsilon=st.floats(0.05, 5), sensitivity=st.integers(1, 20))
def test_mass_sums_to_one_and_the_whole_loss_is_used(epsilon, sensitivity):
    mechanism = DiscreteLaplace(sensitivity / epsilon)
    reach = math.ceil(40 * mechanism.scale)
    assert math.fsum(math.exp(mechanism.log_mass(k)) for k in range(-reach, reach + 1)) == pytest.approx(1, abs=1e-9)
    assert mechanism.log_mass(0) - mechanism.log_mass(sensitivity) == pytest.approx(epsilon, rel=1e-9)


def test_the_exact_sampler_keeps_the_same_account():
    """OpenDP's own privacy map agrees with sensitivity over scale."""
    laplace = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), 7.5)
    assert laplace.map(3) == pytest.approx(3 / 7.5, rel=1e-12)
    gaussian = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), 7.5)
    assert gaussian.map(3.0) == pytest.approx(3**2 / (2 * 7.5**2), rel=1e-12)


@given(dimension=st.integers(1, 300), sensitivity=st.floats(0, 1e-3), seed=st.integers(0, 2**32))
@settings(max_examples=200)
def test_rounded_neighbours_stay_within_what_the_accountant_adds(dimension, sensitivity, seed):
    """Random and sign-aligned shifts of the stated L2 length move the rounded vector by at most the L1 charged."""
    generator = np.random.default_rng(seed)
    grid = 2.0**-20
    values = generator.normal(size=dimension)
    allowed = math.sqrt(dimension) * sensitivity + grid_slack(grid, dimension, "l1")
    for direction in (generator.normal(size=dimension), generator.choice([-1.0, 1.0], size=dimension)):
        shifted = values + direction / np.linalg.norm(direction) * sensitivity * (1 - 1e-9)
        assert np.abs(np.rint(values / grid) - np.rint(shifted / grid)).sum() * grid <= allowed


@pytest.mark.parametrize("noise", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("rng", [SecureRandom(), SimulationRandom(0)])
def test_release_is_a_multiple_of_the_grid_near_its_input(noise, rng):
    """A draw of either law past 500 scales does not happen."""
    values = np.array([0.1, -3.0, 1e-9])
    released = release_on_grid(values, noise=noise, scale=2e-6, grid=2.0**-30, rng=rng)
    assert ((released / 2.0**-30) % 1 == 0).all()
    assert 0 < np.abs(released - values).max() < 1e-3


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(6.0), DiscreteGaussian(3.0)])
def test_secure_and_simulated_draws_have_one_law(mechanism):
    """Two-sample variance comparison at six sigma (relative error sqrt(5/n + 5/n) for Laplace)."""
    zeros = np.zeros(20_000, dtype=np.int64)
    exact = mechanism.release(zeros, rng=SecureRandom()).var()
    simulated = mechanism.release(zeros, rng=SimulationRandom(0)).var()
    assert abs(exact / simulated - 1) < 6 * math.sqrt(10 / zeros.size)


@pytest.mark.parametrize("grid", [0.0, -0.5, 0.3, math.inf, math.nan])
def test_grid_must_be_a_power_of_two(grid):
    with pytest.raises(ValueError, match="power of two"):
        check_grid(grid)


def test_refusals():
    for noise in (DiscreteLaplace, DiscreteGaussian):
        for scale in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(ValueError, match="must be"):
                noise(scale)
        with pytest.raises(ValueError, match="vector of int64"):
            noise(1.0).release(np.zeros(3), rng=SecureRandom())
    with pytest.raises(ValueError, match="steps"):
        release_on_grid(np.array([math.nan]), noise=DiscreteLaplace, scale=1.0, grid=0.5, rng=SecureRandom())
