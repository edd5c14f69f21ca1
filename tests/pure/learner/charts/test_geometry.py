from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.charts.geometry import (
    HEIGHT,
    LEFT,
    MARKED_POINTS,
    MOST_CURVES,
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


def test_whole_numbers_have_no_ticks_between_them():
    assert nice_ticks(1, 2, whole=True) == [1, 2]
    with pytest.raises(ValueError, match="finite"):
        nice_ticks(2, 1)


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


def test_many_points_are_a_line_without_stops_and_many_curves_are_left_to_the_table():
    many = [Point(x, x) for x in range(MARKED_POINTS + 1)]
    chart = drawn([Curve(str(n), many) for n in range(MOST_CURVES + 2)])
    assert [curve.marks for curve in chart.curves] == [()] * MOST_CURVES
    assert chart.curves[0].path.count("L") == MARKED_POINTS


def test_what_stands_until_it_changes_is_drawn_in_steps():
    chart = drawn([Curve("a", [Point(0, 0.0), Point(1, 1.0)], stepped=True)], y_from=0.0)
    assert " H" in chart.curves[0].path
    assert " V" in chart.curves[0].path


def test_levels_and_the_diagonal_lie_where_their_numbers_are():
    points = [Point(0.0, 0.0), Point(1.0, 1.0)]
    chart = drawn([Curve("a", points)], references=[("half", 0.5)], diagonal=True)
    first, last = chart.curves[0].marks
    assert chart.references[0].place == pytest.approx((first.y + last.y) / 2, abs=0.2)
    assert chart.diagonal == f"M{first.x} {first.y} L{last.x} {last.y}"
    assert chart.has_names


def test_no_tick_says_what_another_says():
    points = [Point(0.0, 0.0), Point(3.0, 1.0)]
    chart = draw([Curve("a", points)], x_words=lambda x: f"{x // 2:g}", y_words=str, axis_names=NAMES, x_ticks=range(4))
    assert [tick.words for tick in chart.across] == ["0", "1"]
    assert chart.left == chart.across[0].place < chart.across[1].place <= chart.right


@pytest.mark.parametrize("words", ["0", "62.5 %", "100 %", "62,5\u00a0%", "1,000,000", "0.000001"])
def test_the_longest_words_of_the_vertical_axis_have_room_on_a_phone(words):
    """Digits of the widest fonts in use are 0.6 em wide, a percent sign 0.95 and a mark between digits 0.32."""
    chart = draw([Curve("a", [Point(0, 0.0), Point(1, 1.0)])], x_words=str, y_words=lambda _: words, axis_names=NAMES)
    assert chart.left == room_for(["0", words]) >= LEFT
    widths = {"%": 0.95} | dict.fromkeys(" .,\u00a0", 0.32)
    assert chart.left - 8 - 24 * sum(widths.get(sign, 0.6) for sign in words) >= 12


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="needs a point"):
        drawn([Curve("a", [])])
