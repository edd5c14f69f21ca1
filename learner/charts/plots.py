"""Plots of a release as SVG: the same bytes for the same numbers, readable in print and without colour."""

import io
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpal",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d8d8d0",
    "text.color": "#1a1c1e",
    "axes.edgecolor": "#575d62",
    "axes.labelcolor": "#1a1c1e",
    "xtick.color": "#575d62",
    "ytick.color": "#575d62",
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#1a1c1e")
# What each colour becomes on a dark page. A picture in a page is asked which of the two it stands on, by its own media
# query; what does not know one, such as a printer, keeps the light colours.
ON_DARK = {
    "#1a1c1e": "#ececea",
    "#575d62": "#a6acb1",
    "#d8d8d0": "#343a40",
    "#7f7f7f": "#a6acb1",
    "#0072b2": "#56b4e9",
    "#d55e00": "#f08c4a",
    "#009e73": "#3cc79b",
    "#cc79a7": "#e59fc5",
}
MARKS = "osD^v"
# In a larger matrix the numbers would not be readable; the table beside it has them.
LABELLED_CLASSES = 12
# Marks on more points than these would hide the line.
MARKED_POINTS = 40
MOST_BARS = 8
# More would run into one another where each is a time of day with seconds.
MOST_DATES = 7
# In versions.
APART = 0.05
LEAST_SPAN = timedelta(hours=6)
# In digits, since the names of months would be English in every language: years, months, days, hours, minutes, seconds.
DATES = ["%Y", "%m", "%d", "%H:%M", "%H:%M", "%H:%M:%S"]
DATES_AT_ZERO = ["", "%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M:%S"]
DATES_ASIDE = ["", "%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d"]


def accuracy_plot(
    history: Mapping[str, Sequence[tuple[int, float, float, float]]],
    *,
    title: str,
    words: str,
    axis_names: tuple[str, str] = ("version", "accuracy"),
) -> bytes:
    """Draw accuracy over versions.

    Parameters
    ----------
    history : mapping of str to sequences of (version, share, low, high)
        One curve for each public test set.
    title, words : str
        Title and description inside the picture, for who cannot see it.
    axis_names : tuple of str
        What stands along the horizontal and the vertical axis.
    """
    figure, axes = _figure()
    for place, (name, points) in enumerate(history.items()):
        versions, share, low, high = (np.array(column) for column in zip(*points, strict=True))
        # Side by side, since intervals over one another cannot be told apart.
        aside = APART * (place - (len(history) - 1) / 2)
        axes.errorbar(
            versions + aside,
            share,
            yerr=np.maximum([share - low, high - share], 0),
            fmt=f"{MARKS[place % len(MARKS)]}-",
            color=COLOURS[place % len(COLOURS)],
            label=_plain(name),
            capsize=3,
        )
    axes.set(xlabel=axis_names[0], ylabel=axis_names[1], ylim=(0, 1.02))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=8, frameon=False, labelcolor=STYLE["text.color"])
    return _svg(figure, title, words)


def reliability_plot(
    bins: Sequence[Mapping[str, Any]],
    *,
    title: str,
    words: str,
    axis_names: tuple[str, str] = ("mean probability of the predicted class", "share predicted rightly"),
    line_names: tuple[str, str] = ("as sure as right", "measured"),
) -> bytes:
    """Draw the share of right predictions against how sure the model was; `evaluations.outcomes` makes `bins`."""
    figure, axes = _figure()
    confidence, share, low, high = (
        np.array([row[name] for row in bins]) for name in ("confidence", "value", "low", "high")
    )
    axes.plot([0, 1], [0, 1], "--", color="#7f7f7f", label=line_names[0])
    spread = np.maximum([share - low, high - share], 0)
    axes.errorbar(confidence, share, yerr=spread, fmt="o", color=COLOURS[0], label=line_names[1], capsize=3)
    axes.set(xlabel=axis_names[0], ylabel=axis_names[1], xlim=(0, 1.02))
    axes.set_ylim(0, 1.02)
    axes.legend(fontsize=8, frameon=False, labelcolor=STYLE["text.color"])
    return _svg(figure, title, words)


def confusion_plot(
    confusion: Sequence[Sequence[int]],
    classes: Sequence[str],
    *,
    title: str,
    words: str,
    axis_names: tuple[str, str] = ("predicted", "true"),
) -> bytes:
    """Draw the confusion matrix; rows are true classes and shaded by their own sum."""
    figure, axes = _figure()
    counts = np.array(confusion, dtype=float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.grid(visible=False)
    axes.set(xlabel=axis_names[0], ylabel=axis_names[1])
    if len(classes) <= LABELLED_CLASSES:
        names = [_plain(name) for name in classes]
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_yticks(range(len(names)), names)
        for (row, column), number in np.ndenumerate(counts):
            colour = "#ffffff" if shares[row, column] > 0.5 else "#000000"
            axes.text(column, row, f"{number:.0f}", ha="center", va="center", color=colour)
    return _svg(figure, title, words)


def simulation_plot(
    curves: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    title: str,
    words: str,
    axis_names: tuple[str, str] = ("labels", "simulated accuracy"),
    beside: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> bytes:
    """Draw simulated accuracy over labels with the range over seeds; one curve for each set of data, by its name.

    What stands `beside` the curves, in their order, is dashed.
    """
    figure, axes = _figure()
    for dashed, drawn in ((False, curves), (True, beside or {})):
        for place, (name, points) in enumerate(drawn.items()):
            _ranges(axes, [point["labels"] for point in points], points, place, name, dashed=dashed)
    axes.set(xlabel=axis_names[0], ylabel=axis_names[1], ylim=(0, 1.02))
    axes.legend(fontsize=8, frameon=False, labelcolor=STYLE["text.color"])
    return _svg(figure, title, words)


def split_plot(splits: Sequence[Mapping[str, Any]], *, axis_names: tuple[str, str], title: str, words: str) -> bytes:
    """Draw simulated accuracy over the ways to divide a budget, with the range over seeds."""
    figure, axes = _figure()
    _ranges(axes, [split["value"] for split in splits], [split["point"] for split in splits], 0, "")
    axes.set(xlabel=axis_names[0], ylabel=axis_names[1], ylim=(0, 1.02))
    return _svg(figure, title, words)


def _ranges(
    axes: Any,
    places: Sequence[float],
    points: Sequence[Mapping[str, Any]],
    number: int,
    name: str,
    *,
    dashed: bool = False,
) -> None:
    mean, low, high = (np.array([point[key] for point in points]) for key in ("mean", "low", "high"))
    axes.errorbar(
        places,
        mean,
        yerr=np.maximum([mean - low, high - mean], 0),
        fmt=f"{MARKS[number % len(MARKS)]}{'--' if dashed else '-'}",
        fillstyle="none" if dashed else "full",
        color=COLOURS[number % len(COLOURS)],
        label=_plain(name),
        capsize=3,
    )


def history_plot(
    curves: Mapping[str, Sequence[tuple[datetime, float]]],
    *,
    limits: Mapping[str, Sequence[tuple[datetime, float]]] | None = None,
    label: str,
    title: str,
    words: str,
) -> bytes:
    """Draw amounts that stand until they change, over time.

    Parameters
    ----------
    curves : mapping of str to sequences of (moment, amount)
        What stood from each moment on, oldest first; the axis is in the zone of the first moment.
    limits : mapping of str to sequences of (moment, amount), optional
        What a curve of the same name must not pass, dashed.
    label : str
        What the amounts are, at the axis.
    title, words : str
        Title and description inside the picture, for who cannot see it.
    """
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415 - slow import

    figure, axes = _figure()
    for place, (name, points) in enumerate(curves.items()):
        colour = COLOURS[place % len(COLOURS)]
        moments, amounts = zip(*points, strict=True)
        mark = MARKS[place % len(MARKS)] if len(points) < MARKED_POINTS else ""
        axes.step(moments, amounts, where="post", marker=mark, color=colour, label=_plain(name))
        if limits and name in limits:
            moments, amounts = zip(*limits[name], strict=True)
            axes.step(moments, amounts, where="post", linestyle="--", color=colour, alpha=0.7)
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    seen = [moment for points in curves.values() for moment, _ in points]
    if max(seen) == min(seen):
        # One moment alone has no scale.
        axes.set_xlim(min(seen) - LEAST_SPAN, max(seen) + LEAST_SPAN)
    locator = AutoDateLocator(tz=seen[0].tzinfo, minticks=3, maxticks=MOST_DATES)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator, tz=seen[0].tzinfo, formats=DATES, zero_formats=DATES_AT_ZERO, offset_formats=DATES_ASIDE
    )
    axes.xaxis.set_major_formatter(formatter)
    axes.legend(fontsize=8, frameon=False, labelcolor=STYLE["text.color"])
    return _svg(figure, title, words)


def share_plot(shares: Mapping[str, Sequence[tuple[str, float]]], *, title: str, words: str) -> bytes:
    """Draw shares in percent as bars, one panel for each account; the longest bars come first."""
    import matplotlib as mpl  # noqa: PLC0415 - slow import

    figure, first = _figure(panels=max(1, len(shares)))
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        for axes, (place, (name, bars)) in zip(first, enumerate(shares.items()), strict=True):
            names = [_plain(bar) for bar, _ in bars[:MOST_BARS]]
            percents = [percent for _, percent in bars[:MOST_BARS]]
            drawn = axes.barh(names, percents, color=COLOURS[place % len(COLOURS)])
            axes.bar_label(drawn, fmt="%.0f %%", padding=3, fontsize=8)
            axes.set(title=_plain(name), xlim=(0, 115))
            axes.invert_yaxis()
            axes.grid(visible=False, axis="y")
    return _svg(figure, title, words)


def _figure(*, panels: int = 0) -> "tuple[Figure, Any]":
    import matplotlib as mpl  # noqa: PLC0415 - slow import
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415 - slow import
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow import

    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(5.2, 3.6 if panels < 2 else 2.6 * panels), layout="constrained")
        FigureCanvasSVG(figure)
        return figure, (figure.subplots(panels, squeeze=False)[:, 0] if panels else figure.subplots())


def _svg(figure: "Figure", title: str, words: str) -> bytes:
    import matplotlib as mpl  # noqa: PLC0415 - slow import

    buffer = io.StringIO()
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Title": title, "Creator": None})
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", buffer.getvalue(), flags=re.DOTALL)
    return svg.replace("</title>", f"</title>\n <desc>{escape(words)}</desc>\n {_dark_rules(svg)}", 1).encode()


def _dark_rules(svg: str) -> str:
    """Return the rules that recolour a drawing on a dark page, for the colours that stand in it."""
    rules = "".join(
        f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
        for light, dark in ON_DARK.items()
        for part in ("fill", "stroke")
        if f"{part}: {light}" in svg
    )
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


def _plain(name: str) -> str:
    """Keep a dollar sign in a name from being read as a formula."""
    return name.replace("$", r"\$")
