from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.charts.geometry import (
    HEIGHT,
    LEFT,
    TOP,
    WIDTH,
    Curve,
    Point,
    draw,
    nice_ticks,
    room_for,
)

NAMES = ("version", "accuracy")
shares = st.floats(0, 1)


def drawn(curves, **options):
    return draw(curves, x_words=str, y_words=str, axis_names=NAMES, **options)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.86, 0.97, [0.85, 0.9, 0.95, 1.0]),
        (0, 440, [0, 200, 400, 600]),
        (3, 3, [2.5, 2.75, 3.0, 3.25, 3.5]),
    ],
)
def test_ticks_are_round_and_hold_the_values(low, high, expected):
    assert nice_ticks(low, high) == pytest.approx(expected)


@given(low=st.floats(-1e6, 1e6), length=st.floats(1e-6, 1e6))
def test_ticks_hold_any_range_in_a_few_steps(low, length):
    ticks = nice_ticks(low, low + length)
    slack = 1e-6 * max(1.0, abs(low), length)
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + length - slack
    assert 2 <= len(ticks) <= 7


@given(points=st.lists(st.tuples(st.integers(0, 1000), shares, shares, shares), min_size=1, max_size=12))
def test_every_point_and_range_is_inside_the_frame_and_higher_is_up(points):
    rows = [Point(x, *sorted(values)[1:2], low=min(values), high=max(values)) for x, *values in points]
    chart = drawn([Curve("a", rows)], y_to=1.0)
    marks = chart.curves[0].marks
    assert len(marks) == len(rows)
    for mark in marks:
        assert LEFT <= chart.left <= mark.x <= chart.right <= WIDTH
        assert TOP - 0.2 <= mark.top <= mark.y <= mark.bottom <= chart.bottom + 0.2 <= HEIGHT
    order = sorted(zip(rows, marks, strict=True), key=lambda pair: pair[0].y)
    assert all(one[1].y >= other[1].y for one, other in pairwise(order))


@pytest.mark.parametrize("words", ["0", "62.5 %", "100 %", "62,5\u00a0%", "1,000,000", "0.000001"])
def test_the_longest_words_of_the_vertical_axis_have_room_on_a_phone(words):
    """Digits of the widest fonts in use are 0.6 em wide, a percent sign 0.95 and a mark between digits 0.32."""
    chart = draw([Curve("a", [Point(0, 0.0), Point(1, 1.0)])], x_words=str, y_words=lambda _: words, axis_names=NAMES)
    assert chart.left == room_for(["0", words]) >= LEFT
    widths = {"%": 0.95} | dict.fromkeys(" .,\u00a0", 0.32)
    assert chart.left - 8 - 24 * sum(widths.get(sign, 0.6) for sign in words) >= 12
