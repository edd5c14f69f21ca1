import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import mutual_information as mi

dimensions = st.integers(1, 500)
positives = st.floats(1e-3, 1e3)


@given(dimension=dimensions, lipschitz=positives, sigma=positives)
def test_full_information_bound(dimension, lipschitz, sigma):
    with mpmath.workdps(50):
        power = mpmath.mpf(lipschitz) ** 2 / (dimension * mpmath.mpf(sigma) ** 2)
        expected = float(mpmath.mpf(dimension) / 2 * mpmath.log(1 + power))
    assert mi.gaussian_mi(dimension, lipschitz, sigma) == pytest.approx(expected, rel=1e-9)


@given(dimension=dimensions, loss=positives, radius=positives, lipschitz=positives, sigma=positives)
def test_bandit_bound(dimension, loss, radius, lipschitz, sigma):
    with mpmath.workdps(50):
        slope = mpmath.mpf(loss) / mpmath.mpf(radius) + mpmath.mpf(lipschitz)
        expected = float(mpmath.mpf(dimension) / 2 * mpmath.log(1 + dimension * slope**2 / mpmath.mpf(sigma) ** 2))
    assert mi.bandit_mi(dimension, loss, radius, lipschitz, sigma) == pytest.approx(expected, rel=1e-9)


def test_bound_holds_for_a_sign_and_is_close_at_low_power():
    """One coordinate, gradient +L or -L with equal odds: the information of a binary input, by quadrature."""
    for lipschitz in (0.1, 1.0, 3.0):
        grid = np.linspace(-12, 12, 40_001)
        step = grid[1] - grid[0]
        plus, minus = (np.exp(-((grid - s * lipschitz) ** 2) / 2) / math.sqrt(2 * math.pi) for s in (1, -1))
        both = (plus + minus) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            information = np.nansum(plus * np.log(plus / both)) * step
        bound = mi.gaussian_mi(1, lipschitz, 1.0)
        assert information <= bound
        if lipschitz == 0.1:
            assert information == pytest.approx(bound, rel=0.01)


@pytest.mark.parametrize(
    ("function", "arguments", "seen"),
    [
        (mi.gaussian_mi, (0, 1.0, 1.0), "got 0"),
        (mi.gaussian_mi, (3, -1.0, 1.0), "got -1.0"),
        (mi.gaussian_mi, (3, 1.0, 0.0), "got 0.0"),
        (mi.bandit_mi, (3, 1.0, 0.0, 1.0, 1.0), "got 0.0"),
        (mi.bandit_mi, (3, math.inf, 1.0, 1.0, 1.0), "got inf"),
    ],
)
def test_refusals_name_the_value(function, arguments, seen):
    with pytest.raises(ValueError, match=seen):
        function(*arguments)
