import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.composition import FEW_FALSE_ALARMS, reading, recommended_delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "advantage"), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.46212), (math.log(3), 0.0, 0.5), (0.0, 0.1, 0.1)]
)
def test_the_advantage_is_the_known_one(epsilon: float, delta: float, advantage: float) -> None:
    assert reading(epsilon, delta).advantage == pytest.approx(advantage, abs=1e-5)


@given(epsilon=st.floats(0, 12), delta=st.floats(0, 0.2))
def test_the_worst_mechanism_reaches_the_bounds_and_none_exceeds_them(epsilon: float, delta: float) -> None:
    """With chance delta everything is told, else a bit is told rightly with odds e^epsilon: the known worst case."""
    told = (1 - delta) * np.exp(epsilon) / (1 + np.exp(epsilon))
    member = np.array([delta, told, 1 - delta - told, 0.0])
    other = np.array([0.0, 1 - delta - told, told, delta])
    bounds = reading(epsilon, delta)
    assert np.abs(member - other).sum() / 2 == pytest.approx(bounds.advantage, abs=1e-9)
    # The best test at a level of false alarms accuses by falling likelihood ratio, with a coin at the margin.
    alarms, found = np.cumsum(other[:3]), np.cumsum(member[:3])
    best = np.interp(FEW_FALSE_ALARMS, [0.0, *alarms], [0.0, *found])
    if alarms[0] == 0:
        best = np.interp(FEW_FALSE_ALARMS, alarms, found)
    assert best <= bounds.detection + 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(-0.1, 0.0), (math.nan, 0.0), (1.0, 1.0), (1.0, -1e-9)])
def test_numbers_out_of_range_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match="must"):
        reading(epsilon, delta)


def test_delta_is_recommended_below_one_in_all() -> None:
    assert recommended_delta(1000) == pytest.approx(1000**-1.1)
    assert all(recommended_delta(n) < 1 / n for n in (2, 50, 10**6))
    with pytest.raises(ValueError, match="people"):
        recommended_delta(0)
