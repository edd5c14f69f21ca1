from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpal.features.clipping import clip_rows, round_towards_zero

ANY_ROWS = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9), elements=st.floats(width=64)
)
BOUNDS = st.floats(1e-30, 1e30) | st.sampled_from([1.0, 0.1, 3.0, 1e-30, 1e30])


def exact_square(row):
    return sum((Fraction(float(value)) ** 2 for value in row), Fraction(0))


@given(rows=ANY_ROWS, bound=BOUNDS)
@example(rows=np.array([[1.7976931348623157e308, -1.7976931348623157e308]]), bound=1.0)
@example(rows=np.array([[np.inf, np.nan, -np.inf]]), bound=1.0)
@example(rows=np.full((1, 3), 1 / np.sqrt(3)), bound=1.0)
@example(rows=np.array([[5e-324, 1e-200]]), bound=1e-30)
def test_true_norm_is_within_the_bound(rows, bound):
    clipped = clip_rows(rows, norm_bound=bound)
    assert clipped.dtype == np.float32
    assert all(exact_square(row) <= Fraction(bound) ** 2 for row in clipped)


@given(rows=ANY_ROWS, bound=BOUNDS)
def test_clipping_again_changes_nothing(rows, bound):
    once = clip_rows(rows, norm_bound=bound)
    np.testing.assert_array_equal(clip_rows(once, norm_bound=bound), once)


def test_plain_rounding_would_break_the_bound():
    """The rows on which a textbook clip exceeds the bound are clipped correctly here."""
    rows = np.random.default_rng(5).normal(size=(400, 7))
    textbook = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    assert any(exact_square(row) > 1 for row in textbook)
    assert all(exact_square(row) <= 1 for row in clip_rows(rows, norm_bound=1.0))


def test_direction_is_kept_and_length_is_nearly_the_bound():
    rows = np.random.default_rng(6).normal(size=(50, 128)) * 40
    clipped = clip_rows(rows, norm_bound=2.0).astype(np.float64)
    expected = 2.0 * rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(clipped, expected, rtol=3e-7)


def test_rounding_never_grows_a_number():
    values = np.random.default_rng(8).normal(size=10_000)
    narrow = round_towards_zero(values)
    assert (np.abs(narrow.astype(np.float64)) <= np.abs(values)).all()
    assert (np.abs(values.astype(np.float32).astype(np.float64)) > np.abs(values)).any()


@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan])
def test_impossible_bound_is_refused(bound):
    with pytest.raises(ValueError, match="norm_bound"):
        clip_rows(np.ones((1, 1)), norm_bound=bound)
