import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.template.loader import render_to_string
from django.utils import translation

from learner.charts import pages as page_charts
from tests.markup import commas_in_numbers


@dataclass(frozen=True)
class Right:
    value: float
    low: float = 0.7
    high: float = 0.95
    constant: float = 0.5
    described: float | None = None


BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


def test_accuracy_stands_beside_a_constant_and_the_words_about_the_classes():
    chart = page_charts.accuracy_chart(
        [("test", 1, Right(0.8, described=0.6)), ("test", 2, Right(0.9, described=0.6))], measure="Accuracy"
    )
    assert [mark.label for mark in chart.curves[0].marks] == [
        "version 1: 80.0\u00a0%, 70.0\u00a0% to 95.0\u00a0%",
        "version 2: 90.0\u00a0%, 70.0\u00a0% to 95.0\u00a0%",
    ]
    assert [one.name for one in chart.references] == [
        "Always one answer",
        "Version 0",
    ]
    assert [tick.words for tick in chart.across] == ["1", "2"]
    assert chart.up[-1].words == "100 %"


def test_what_was_spent_stands_until_today_under_its_limit():
    spent = {"pool": [(BEGAN, 0.0), (BEGAN + timedelta(days=3), 1.0)], "answers": [(BEGAN, 0.5)]}
    limits = {"pool": [(BEGAN, 2.0)]}
    chart = page_charts.history_chart(spent, up="ε", limits=limits)
    assert [curve.name for curve in chart.curves] == ["pool", "answers", "limit of pool"]
    assert [curve.dashed for curve in chart.curves] == [False, False, True]
    assert [curve.number for curve in chart.curves] == [0, 1, 0]
    # A mark for each change, and no second one that would say the same where the line ends.
    assert [[mark.label.rpartition(" ")[2] for mark in curve.marks] for curve in chart.curves] == [
        ["0.000", "1.000"],
        ["0.500"],
        [],
    ]
    ends = {float(re.split("[MHVL ]", curve.path.partition(" V")[2] or curve.path)[-1]) for curve in chart.curves}
    assert ends == {chart.curves[0].marks[-1].x} == {max(tick.place for tick in chart.across)}
    assert page_charts.history_chart({"pool": []}, up="ε") is None


@pytest.mark.parametrize(
    ("minutes", "written"), [(1, r"\d\d:\d\d:\d\d"), (60, r"\d\d:\d\d"), (60 * 24 * 9, r"\d+\. \d+\.")]
)
def test_ticks_in_time_are_told_apart(minutes, written):
    chart = page_charts.history_chart({"pool": [(BEGAN, 0.0), (BEGAN + timedelta(minutes=minutes), 1.0)]}, up="ε")
    words = [tick.words for tick in chart.across]
    assert len(set(words)) == len(words) > 2
    assert all(re.fullmatch(written, each) for each in words)


@pytest.mark.parametrize("name", ["a <b> & c", 'say "so"'])
def test_the_picture_has_no_style_of_its_own_and_escapes_names(name):
    chart = page_charts.accuracy_chart([(name, 1, Right(0.8)), ("other", 1, Right(0.7))], measure="Accuracy")
    html = render_to_string("learner/_chart.html", {"chart": chart, "title": "Accuracy"})
    assert "style=" not in html
    assert "<b>" not in html
    assert html.count('tabindex="0"') == 2


@pytest.mark.parametrize("language", ["en", "de"])
def test_places_are_written_as_a_picture_has_them_whatever_the_readers_language(language):
    """A comma in a place is an error to every browser, and the picture is left empty."""
    with translation.override(language):
        chart = page_charts.accuracy_chart(
            [("test", number, Right(0.8 + number / 77)) for number in (1, 2, 4)], measure="Accuracy"
        )
        assert any(mark.x % 1 and mark.y % 1 for mark in chart.curves[0].marks)
        html = render_to_string("learner/_chart.html", {"chart": chart, "title": "Accuracy"})
    assert not commas_in_numbers(html)
