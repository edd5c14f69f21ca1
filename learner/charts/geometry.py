"""Charts as geometry: what a page draws by itself, in the colours, the size and the language of who reads it."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 76, 18, 18, 52
# Words are largest beside a picture on a phone (`site.css`): so many of its units an em, and clear on both their sides.
PHONE_EM = 24
CLEAR = 22
# Widths in ems, rather too wide than too narrow in any font: of narrow signs, of all others, of digits.
NARROW, WIDE, DIGIT = 0.34, 1.0, 0.6
NARROW_SIGNS = " .,:;'’\u00a0\u202f"
TICKS = 4
LEGEND_LINE = 20
# On more points than these each would be a stop of the keyboard that hides the line; the table has them.
MARKED_POINTS = 12
# Curves beyond these could not be told apart; their numbers are in the table.
MOST_CURVES = 5
NumberWords = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points that belong together; `stepped` where a value stands until the next one, the last until `stands_to`."""

    name: str
    points: Sequence[Point]
    dashed: bool = False
    stepped: bool = False
    beside: int | None = None
    stands_to: float | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    place: float
    words: str


@dataclass(frozen=True, slots=True)
class DrawnPoint:
    """A point as drawn: its place, its range from top to bottom, and what a reader or a screen reader is told."""

    x: float
    y: float
    top: float | None
    bottom: float | None
    label: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A curve as drawn; `number` picks colour and mark, so that no two are told apart by colour alone."""

    name: str
    number: int
    dashed: bool
    path: str
    marks: tuple[DrawnPoint, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    name: str
    place: float


@dataclass(frozen=True, slots=True)
class Chart:
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    curves: tuple[Drawn, ...]
    references: tuple[Reference, ...]
    axis_names: tuple[str, str]
    diagonal: str = ""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2

    @property
    def legend(self) -> list[tuple[int, str, Drawn | Reference]]:
        """Each name under the drawing of a file, with its line and its class; none where one curve says all."""
        if not self.has_names:
            return []
        named: list[tuple[str, Drawn | Reference]] = [(f"c{curve.number}", curve) for curve in self.curves]
        named += [(f"reference r{place}", one) for place, one in enumerate(self.references)]
        return [(self.height + LEGEND_LINE * row, place, one) for row, (place, one) in enumerate(named)]

    @property
    def file_height(self) -> int:
        return self.height + LEGEND_LINE * len(self.legend)

    @property
    def has_names(self) -> bool:
        return len(self.curves) > 1 or bool(self.references)


def nice_ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"a range must be finite and not turned round, got {low} to {high}")
    if high == low:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= rough * (1 - 1e-9))
    if whole:
        step = max(1.0, math.ceil(step))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def room_for(words: Iterable[str]) -> int:
    ems = (
        sum(NARROW if sign in NARROW_SIGNS else DIGIT if sign.isdecimal() else WIDE for sign in one) for one in words
    )
    return max(LEFT, math.ceil(PHONE_EM * max(ems)) + CLEAR)


def draw(
    curves: Sequence[Curve],
    *,
    x_words: NumberWords,
    y_words: NumberWords,
    axis_names: tuple[str, str],
    references: Sequence[tuple[str, float]] = (),
    x_ticks: Sequence[float] = (),
    whole_x: bool = False,
    y_from: float | None = None,
    y_to: float | None = None,
    diagonal: bool = False,
) -> Chart:
    shown = [curve for curve in curves if curve.points][:MOST_CURVES]
    if not shown:
        raise ValueError("a chart needs a point")
    xs = [point.x for curve in shown for point in curve.points]
    xs += [curve.stands_to for curve in shown if curve.stands_to is not None]
    ys = [value for curve in shown for point in curve.points for value in (point.y, point.low, point.high)]
    levels = [value for value in ys if value is not None] + [value for _name, value in references]
    across = sorted(x_ticks) or nice_ticks(min(xs), max(xs), whole=whole_x)
    up = nice_ticks(*_ends(levels, y_from, y_to))
    up = [tick for tick in up if y_to is None or tick <= y_to + 1e-9]
    labels = [y_words(tick) for tick in up]
    left = room_for(labels)
    scale = _Scale(min(*xs, *across), max(*xs, *across), up[0], up[-1], left=left)
    drawn = tuple(_drawn(curve, number, scale) for number, curve in enumerate(shown))
    return Chart(
        across=_distinct_ticks(Tick(scale.x(tick), x_words(tick)) for tick in across),
        up=tuple(Tick(scale.y(tick), words) for tick, words in zip(up, labels, strict=True)),
        curves=drawn,
        references=tuple(Reference(name, scale.y(value)) for name, value in references),
        axis_names=axis_names,
        diagonal=_diagonal(scale) if diagonal else "",
        left=left,
    )


def _distinct_ticks(ticks: Iterable[Tick]) -> tuple[Tick, ...]:
    """Return the ticks whose words none before them has: what is written twice measures nothing."""
    first: dict[str, Tick] = {}
    for tick in ticks:
        first.setdefault(tick.words, tick)
    return tuple(first.values())


def _ends(levels: Sequence[float], y_from: float | None, y_to: float | None) -> tuple[float, float]:
    low, high = min(levels), max(levels)
    low = low if y_from is None else min(low, y_from)
    high = high if y_to is None else min(max(high, low + 1e-6), y_to)
    return low, high


class _Scale:
    def __init__(self, x_low: float, x_high: float, y_low: float, y_high: float, *, left: int) -> None:
        self._left = left
        self._x = (x_low, x_high if x_high > x_low else x_low + 1.0)
        self._y = (y_low, y_high if y_high > y_low else y_low + 1.0)

    def x(self, value: float) -> float:
        low, high = self._x
        return round(self._left + (value - low) / (high - low) * (WIDTH - self._left - RIGHT), 1)

    def y(self, value: float) -> float:
        low, high = self._y
        return round(HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    def both(self) -> tuple[float, float]:
        """Return where both axes begin to hold the same values, and where they end to."""
        return max(self._x[0], self._y[0]), min(self._x[1], self._y[1])


def _diagonal(scale: _Scale) -> str:
    low, high = scale.both()
    return f"M{scale.x(low)} {scale.y(low)} L{scale.x(high)} {scale.y(high)}"


def _drawn(curve: Curve, number: int, scale: _Scale) -> Drawn:
    places = [(scale.x(point.x), scale.y(point.y)) for point in curve.points]
    path = f"M{places[0][0]} {places[0][1]}"
    for x, y in places[1:]:
        path += f" H{x} V{y}" if curve.stepped else f" L{x} {y}"
    if curve.stands_to is not None:
        path += f" H{scale.x(curve.stands_to)}"
    marks = [
        DrawnPoint(
            x=place[0],
            y=place[1],
            top=None if point.high is None else scale.y(point.high),
            bottom=None if point.low is None else scale.y(point.low),
            label=point.label,
        )
        for point, place in zip(curve.points, places, strict=True)
    ]
    is_marked = curve.beside is None and len(marks) <= MARKED_POINTS
    colour = number if curve.beside is None else curve.beside
    return Drawn(curve.name, colour, curve.dashed, path, tuple(marks) if is_marked else ())
