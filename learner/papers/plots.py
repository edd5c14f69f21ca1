"""Draw charts as SVG files that are the same bytes whenever the numbers are the same."""

import io
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from learner.papers.experiment import Panel, PaperFigure, PaperSeries

# Told apart without colour too: each curve has its own dashes or mark. The colours are Okabe and Ito's.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00", "#7f7f7f", "#8c564b", "#003366")
DASHES = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (1, 1)),
    (0, (8, 2)),
    (0, (2, 3)),
    (0, (6, 1, 1, 1)),
)
MARKS = "osD^vPX*<>"
# More curves than this get one legend beside the panels, where it covers none of them.
FEW_CURVES = 4
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpal",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
    "path.simplify": True,
}
PANEL_INCHES = (4.4, 3.3)


def save_chart(chart: PaperFigure, path: Path) -> None:
    with mpl.rc_context(STYLE):
        width, height = PANEL_INCHES
        crowded = max(len(panel.series) for panel in chart.panels) > FEW_CURVES
        figure = Figure(figsize=(width * len(chart.panels) + 1.8 * crowded, height), layout="constrained")
        FigureCanvasSVG(figure)
        # The same name looks the same in all panels.
        names = list(dict.fromkeys(series.label for panel in chart.panels for series in panel.series))
        places = {name: place % len(COLOURS) for place, name in enumerate(names)}
        for axes, panel in zip(figure.subplots(1, len(chart.panels), squeeze=False)[0], chart.panels, strict=True):
            _draw(axes, panel, places)
            if len(panel.series) > 1 and not crowded:
                axes.legend(fontsize=7, frameon=False)
        if crowded:
            handles = {
                label: handle
                for axes in figure.axes
                for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
            }
            figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=7, frameon=False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Title": chart.title, "Creator": None})
    path.write_text(_described(buffer.getvalue(), chart.description), encoding="utf-8")


def _draw(axes: Axes, panel: Panel, places: dict[str, int]) -> None:
    bars = [series for series in panel.series if series.style == "bars"]
    for series in panel.series:
        place = places[series.label]
        if series.style == "bars":
            _draw_bars(axes, series, COLOURS[place], bars.index(series), len(bars), named=bool(panel.x_names))
        else:
            _draw_curve(axes, series, place)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.title:
        axes.set_title(panel.title, fontsize=9)
    if panel.x_log:
        axes.set_xscale("log")
        _name_few_places(axes, panel)
    if panel.y_log:
        axes.set_yscale("log")
    if panel.equal:
        axes.set_aspect("equal")
    if panel.x_names:
        axes.set_xticks(range(len(panel.x_names)), list(panel.x_names))
    if not (panel.x_log or panel.x_names):
        axes.locator_params(axis="x", nbins=6)


def _name_few_places(axes: Axes, panel: Panel) -> None:
    """Where a logarithmic axis spans less than two powers of ten, name the places that occur, or only the powers."""
    places = sorted({x for series in panel.series for x in series.x if x > 0})
    if places and places[-1] < 100 * places[0]:
        axes.xaxis.set_minor_formatter(NullFormatter())
        if len(places) <= 8:
            axes.set_xticks(places, [f"{place:g}" for place in places])


def _draw_bars(axes: Axes, series: PaperSeries, colour: str, place: int, count: int, *, named: bool) -> None:
    spacing = 1.0 if named or len(series.x) < 2 else min(b - a for a, b in zip(series.x, series.x[1:], strict=False))
    width = 0.8 * spacing / count
    places = [x + (place - (count - 1) / 2) * width for x in series.x]
    axes.bar(places, list(series.y), width, yerr=series.spread, color=colour, label=series.label, capsize=2)


def _draw_curve(axes: Axes, series: PaperSeries, place: int) -> None:
    colour = COLOURS[place]
    if series.style == "points":
        axes.errorbar(
            series.x, series.y, yerr=series.spread, fmt=MARKS[place], color=colour, label=series.label, capsize=2, ms=4
        )
        return
    dashes = "--" if series.style == "dashed" else DASHES[place]
    axes.plot(
        list(series.x),
        list(series.y),
        color=colour,
        linestyle=dashes,
        linewidth=1.3,
        label=series.label,
        drawstyle="steps-post" if series.style == "step" else "default",
    )
    if series.spread is not None:
        low = [y - half for y, half in zip(series.y, series.spread, strict=True)]
        high = [y + half for y, half in zip(series.y, series.spread, strict=True)]
        axes.fill_between(list(series.x), low, high, color=colour, alpha=0.15, linewidth=0)


def _described(svg: str, description: str) -> str:
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    # Three decimals are a thousandth of a point.
    svg = re.sub(r"-?\d+\.\d{4,}", lambda match: f"{float(match.group()):.3f}".rstrip("0").rstrip("."), svg)
    return svg.replace("</title>", f"</title>\n <desc>{escape(description)}</desc>", 1)
