import numpy as np
import pytest

from annotation.review.suggestion_effect import compared, group_of, median_interval


def test_the_orders_of_a_published_table():
    """Conover's table of median intervals: n = 10 takes the second values, n = 25 the eighth, n = 100 the fortieth."""
    for n, place in ((6, 1), (10, 2), (25, 8), (100, 40), (5000, 2431)):
        assert median_interval(list(range(1, n + 1))) == (place, n + 1 - place)
    assert median_interval(list(range(5))) == (None, None)


@pytest.mark.statistical
@pytest.mark.parametrize(("narrower", "holds"), [(0, True), (6, False)])
def test_the_interval_holds_the_median(narrower, holds):
    """Seeded, 3,000 draws: under 94 % comes by chance with 3e-4; one cut by six places a side holds 76 %."""
    rng = np.random.default_rng(17)
    inside = 0
    for _ in range(3000):
        drawn = np.sort(rng.exponential(size=101))
        low, high = median_interval(drawn.tolist())
        cut_low = drawn[np.searchsorted(drawn, low) + narrower]
        cut_high = drawn[np.searchsorted(drawn, high) - narrower]
        inside += cut_low <= np.log(2) <= cut_high
    assert (inside / 3000 > 0.94) == holds


def test_anchoring_is_what_a_suggestion_takes_from_the_differing():
    """Newcombe's own example: 56 of 70 against 48 of 80 differ by 20 points, 5.24 to 33.39."""
    blind, shown = group_of([(n < 56, 1.0) for n in range(70)]), group_of([(n < 48, 1.0) for n in range(80)])
    effect = compared(shown, blind)
    assert effect.anchoring == pytest.approx(20)
    assert (effect.anchoring_low, effect.anchoring_high) == (
        pytest.approx(5.24, abs=0.01),
        pytest.approx(33.39, abs=0.01),
    )
    turned = compared(blind, shown)
    assert turned.anchoring == pytest.approx(-20)
    assert turned.anchoring_high < 0
