import pytest
from scipy import stats

from annotation.intervals import wilson_interval


def test_the_interval_of_wilson():
    assert wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson_interval(0, 0) == (0.0, 1.0)
    low, high = wilson_interval(10, 10)
    assert (round(low, 4), high) == (0.7225, 1.0)
    assert wilson_interval(0, 10) == (0.0, pytest.approx(1 - low))


@pytest.mark.parametrize(("part", "whole"), [(1, 3), (57, 100), (999, 1000)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_it_is_that_of_scipy(part, whole, confidence):
    other = stats.binomtest(part, whole).proportion_ci(confidence, method="wilson")
    assert wilson_interval(part, whole, confidence=confidence) == pytest.approx((other.low, other.high), abs=1e-12)
