"""Seven daily uploads through one gate beside a single upload: `gate_window [--people N ...] [--seeds 20]`.

Recall is counted against the texts that a drawn log holds as often in seven days as the first gate asks for.
"""

import argparse
import math
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.stats import t

from dpal_site.demo.voice_log import draw_voice_log
from privacy.accounting.events import GateWindowEvent
from privacy.accounting.gate import best_gate
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.mechanisms.randomness import SimulationRandom

DAYS, EPSILON, DELTA, FLOOR = 7, 1.0, 7.8e-6, 2
SHARED = [f"request {number}" for number in range(5000)]
PEOPLE = (10_000, 20_000)
Gate = KAnonymityGate | ThresholdGate


@dataclass(frozen=True, slots=True)
class Way:
    name: str
    gate: Gate
    runs: tuple[tuple[int, ...], ...]
    epsilon: float


@dataclass(slots=True)
class Found:
    """What passed, seed by seed: texts and the share of records that said one; which of the right texts these were.

    `recall` is of the texts that are really said often enough, `beside_one` that recall over the first way's, and
    `overlap` is of the texts that passed the first way.
    """

    texts: list[float] = field(default_factory=list)
    records: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    beside_one: list[float] = field(default_factory=list)
    overlap: list[float] = field(default_factory=list)


def threshold(epsilon: float, delta: float) -> Gate:
    return ThresholdGate(epsilon, delta, floor=FLOOR)


def sampled(epsilon: float, delta: float) -> Gate:
    best = best_gate(epsilon, delta)
    return KAnonymityGate(best.k, best.sampling_rate)


def asked_for(gate: Gate) -> int:
    """Return about how often a text must be said to pass."""
    return math.ceil(gate.event().threshold if isinstance(gate, ThresholdGate) else gate.k / gate.exact_sampling_rate)


def ways(make: Callable[[float, float], Gate]) -> list[Way]:
    """Return the ways to be compared; one upload at epsilon 1, the first, says what is the truth."""
    week = tuple(range(DAYS))
    growing = tuple(week[: day + 1] for day in week)
    once = make(EPSILON, DELTA)
    found = [Way(name, once, (week,), EPSILON) for name in ("one upload of seven days", "the same, drawn anew")]
    for name, share in (("the same gate a run", 1), ("the same price in all", DAYS)):
        gate = make(EPSILON / share, DELTA / share)
        event = GateWindowEvent.next_of(None, gate.event(EPSILON / share), window=DAYS)
        found.append(Way(f"seven days counted together, {name}", gate, growing, event.cost().epsilon))
    found.append(
        Way("one upload of seven days, at that price", make(EPSILON * DAYS, DELTA * DAYS), (week,), EPSILON * DAYS)
    )
    found.append(Way("each day by itself", once, tuple((day,) for day in week), EPSILON))
    return found


def passing(way: Way, days: Sequence[pa.RecordBatch], *, seed: int) -> set[str]:
    found: set[str] = set()
    for number, run in enumerate(way.runs):
        rng = SimulationRandom(seed + number)
        batches = [days[day] for day in run]
        passed = way.gate.release(batches, rng=rng)
        found.update(passed.column("text").to_pylist())
    return found


def compare(every: Sequence[Way], *, people: int, seeds: int) -> dict[str, Found]:
    found = {way.name: Found() for way in every}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        texts = draw_voice_log(SHARED, contributors=people, rng=rng).texts
        column, day_of = pa.array(texts, pa.large_string()), rng.integers(0, DAYS, size=len(texts))
        days = [pa.RecordBatch.from_pydict({"text": column.filter(pa.array(day_of == day))}) for day in range(DAYS)]
        said, whole, first = Counter(texts), set[str](), math.nan
        truth = {text for text, times in said.items() if times >= asked_for(every[0].gate)}
        for place, way in enumerate(every):
            passed = passing(way, days, seed=(seed * len(every) + place) * DAYS)
            recall = _share(passed, truth)
            if not place:
                whole, first = passed, recall
            row = found[way.name]
            row.texts.append(len(passed))
            row.records.append(sum(said[text] for text in passed) / len(texts))
            row.recall.append(recall)
            row.beside_one.append(recall / first if first else math.nan)
            row.overlap.append(_share(passed, whole))
    return found


def _share(passed: set[str], of: set[str]) -> float:
    return len(passed & of) / len(of) if of else math.nan


def interval(values: Sequence[float], digits: int) -> str:
    known = np.array(values)[~np.isnan(values)]
    if len(known) < 2:
        return "-"
    half = float(t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / math.sqrt(len(known)))
    return f"{known.mean():.{digits}f} ± {half:.{digits}f}"


def report(tables: Mapping[str, tuple[Sequence[Way], dict[str, Found]]], *, seeds: int) -> str:
    made = f"`python -m benchmarks.gate_window --seeds {seeds}` on {datetime.now(UTC):%Y-%m-%d}"
    lines = [
        "# A gate that runs on: seven days counted together",
        "",
        f"Made by {made}, Python {platform.python_version()},",
        f"numpy {np.__version__}: means over {seeds} seeds with 95 % intervals.",
        "The log is drawn: 5,000 requests that many people say, by a Zipf-Mandelbrot law, and a third of all lines",
        "one person's alone. Each line is a record, on a day at random. Simulation: nothing here has a guarantee.",
        "ε is what one record is charged for all seven days.",
        "",
        "- **Recall** is of the truth: the texts that the log really holds as often in its seven days as the gate of",
        "  the first line asks for, counted exactly. How often that is stands above each table.",
        "- **Recall, beside one upload** is that recall over the first line's, seed by seed.",
        "- **Overlap** is of the texts that the first line let out. Two draws of one gate over one log differ, as the",
        "  second line shows, so this column has their luck in it.",
    ]
    for title, (every, found) in tables.items():
        head = "| way | ε | texts | % of records | recall, % | recall, beside one upload, % | overlap, % |"
        asked = f"The truth: texts that are said {asked_for(every[0].gate)} times or more."
        lines += ["", f"## {title}", "", asked, "", head, "|---|---:|---:|---:|---:|---:|---:|"]
        for way in every:
            row = found[way.name]
            columns = (row.records, row.recall, row.beside_one, row.overlap)
            shares = [interval([100 * value for value in values], 1) for values in columns]
            lines.append(f"| {way.name} | {way.epsilon:.3g} | {interval(row.texts, 1)} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--people", type=int, nargs="*", default=PEOPLE)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    tables = {}
    for people in arguments.people:
        for name, make in (("noisy threshold", threshold), ("k-anonymity", sampled)):
            every = ways(make)
            tables[f"{people:,} people, {name}"] = every, compare(every, people=people, seeds=arguments.seeds)
    page = report(tables, seeds=arguments.seeds)
    print(page)
    if arguments.out:
        arguments.out.write_text(page)


if __name__ == "__main__":
    main()
