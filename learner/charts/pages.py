"""The charts of pages, from the numbers of the tables beside them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any, Protocol

from django.http import Http404, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _

from annotation.budget.words import epsilon_words
from annotation.templatetags.privacy_numbers import percent
from learner.charts.geometry import TICKS, Chart, Curve, Point, draw

A_DAY = timedelta(days=1)
FEW_MINUTES = timedelta(minutes=10)


Stood = Sequence[tuple[datetime, float]]


class VersionAccuracy(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def constant(self) -> float: ...
    @property
    def described(self) -> float | None: ...


def _whole(value: float) -> str:
    return number_format(round(value), force_grouping=True)


def _range_words(share: float, low: float, high: float) -> str:
    return _("%(share)s, %(low)s to %(high)s") % {"share": percent(share), "low": percent(low), "high": percent(high)}


def accuracy_chart(history: Sequence[tuple[str, int, VersionAccuracy]], *, measure: str) -> Chart | None:
    curves: dict[str, list[Point]] = {}
    for name, version, one in history:
        said = _("version %(version)s: %(range)s") % {
            "version": version,
            "range": _range_words(one.value, one.low, one.high),
        }
        curves.setdefault(name, []).append(Point(version, one.value, one.low, one.high, said))
    if not curves:
        return None
    levels = []
    constants = {one.constant for _name, _version, one in history}
    described = {one.described for _name, _version, one in history}
    if len(constants) == 1:
        levels.append((_("Always one answer"), constants.pop()))
    if len(described) == 1 and (share := described.pop()) is not None:
        levels.append((_("Version 0"), share))
    return draw(
        [Curve(name, points) for name, points in curves.items()],
        x_words=_whole,
        y_words=percent_of_axis,
        axis_names=(_("Version"), measure),
        references=levels,
        x_ticks=versions if len(versions := sorted({version for _n, version, _o in history})) <= 2 * TICKS else (),
        whole_x=True,
        y_to=1.0,
    )


def picture_of(chart: Chart | None, *, title: str, caption: str = "") -> HttpResponse:
    if chart is None:
        raise Http404
    drawn = render_to_string("learner/chart.svg", {"chart": chart, "title": title, "caption": caption})
    # What a picture shows may grow, so it is not kept for long.
    return HttpResponse(drawn, content_type="image/svg+xml", headers={"Cache-Control": "private, max-age=60"})


def percent_of_axis(share: float) -> str:
    shown = f"{100 * share:.1f}".removesuffix(".0")
    return f"{number_format(shown)} %"


def reliability_chart(bins: Sequence[Mapping[str, Any]]) -> Chart | None:
    points = [
        Point(
            row["confidence"],
            row["value"],
            row["low"],
            row["high"],
            _("sure to %(sure)s, right %(range)s")
            % {"sure": percent(row["confidence"]), "range": _range_words(row["value"], row["low"], row["high"])},
        )
        for row in bins
    ]
    if not points:
        return None
    return draw(
        [Curve(_("measured"), points)],
        x_words=percent_of_axis,
        y_words=percent_of_axis,
        axis_names=(_("Mean probability"), _("Share right")),
        x_ticks=(0.0, 0.25, 0.5, 0.75, 1.0),
        y_from=0.0,
        y_to=1.0,
        diagonal=True,
    )


def simulation_chart(
    curves: Sequence[tuple[str, Sequence[Mapping[str, Any]]]],
    *,
    beside: Sequence[tuple[str, Sequence[Mapping[str, Any]]]] = (),
    across: str,
    measure: str,
) -> Chart | None:
    drawn = [
        Curve(name, [_simulated(point["labels"], point) for point in points], dashed=dashed)
        for dashed, some in ((False, curves), (True, beside))
        for name, points in some
        if points
    ]
    if not drawn:
        return None
    axes = (across, measure)
    return draw(drawn, x_words=_whole, y_words=percent_of_axis, axis_names=axes, whole_x=True, y_to=1.0)


def _simulated(x: float, point: Mapping[str, Any], at: str = "") -> Point:
    said = f"{at or _whole(x)}: {_range_words(point['mean'], point['low'], point['high'])}"
    return Point(x, point["mean"], point["low"], point["high"], said)


def history_chart(curves: Mapping[str, Stood], *, up: str, limits: Mapping[str, Stood] | None = None) -> Chart | None:
    moments = [moment for points in curves.values() for moment, _amount in points]
    if not moments:
        return None
    last = max(moments)
    words = epsilon_words if up == "ε" else _whole
    end = last.timestamp()
    drawn = [Curve(name, _stood(points, words), stepped=True, stands_to=end) for name, points in curves.items()]
    for name, points in (limits or {}).items():
        limit = _("limit of %(name)s") % {"name": name}
        beside = list(curves).index(name)
        drawn.append(Curve(limit, _stood(points, words), dashed=True, stepped=True, beside=beside, stands_to=end))
    ends = min(moments).timestamp(), end
    apart = (ends[1] - ends[0]) / (TICKS - 1)
    ticks = [ends[0] + apart * part for part in range(TICKS if apart else 1)]
    lasted = last - min(moments)
    # Amounts of whole days, such as answers a day, stand at midnight.
    of_days = all(timezone.localtime(moment).time() == time.min for moment in moments)
    written = _day if of_days or lasted > 2 * A_DAY else _moment if lasted > FEW_MINUTES else _second
    return draw(drawn, x_words=written, y_words=words, axis_names=(_("When"), up), x_ticks=ticks, y_from=0.0)


def _stood(points: Stood, words: Any) -> list[Point]:
    return [
        Point(
            moment.timestamp(),
            amount,
            label=f"{date_format(timezone.localtime(moment), 'SHORT_DATETIME_FORMAT')}: {words(amount)}",
        )
        for moment, amount in points
    ]


def _day(stamp: float) -> str:
    return date_format(timezone.localtime(datetime.fromtimestamp(stamp, tz=timezone.get_current_timezone())), "j. n.")


def _moment(stamp: float) -> str:
    return date_format(timezone.localtime(datetime.fromtimestamp(stamp, tz=timezone.get_current_timezone())), "H:i")


def _second(stamp: float) -> str:
    return date_format(timezone.localtime(datetime.fromtimestamp(stamp, tz=timezone.get_current_timezone())), "H:i:s")
