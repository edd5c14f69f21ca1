"""Natural texts that pass each gate at one price: `python -m benchmarks.gate_texts --data DIR [--seeds 20]`.

DIR holds slurp_dev_test_utterances.csv; who said what how often is drawn. A simulation on known texts.
"""

import argparse
import csv
import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpal_site.demo.voice_log import draw_voice_log
from privacy.accounting.gate import best_gate
from privacy.gate.counting import CountingGate
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.gate.normalizers import Normalizer
from privacy.mechanisms.randomness import SimulationRandom

FILE = "slurp_dev_test_utterances.csv"
EPSILON, DELTA, FLOOR = 1.0, 7.8e-6, 2
PEOPLE = (10_000, 50_000, 200_000)
CAPS = (1, 2, 3, 5)
BATCH_ROWS = 100_000
ROUNDING = 1 + 1e-9
DEFAULT, NOW = (2, "truncated_geometric"), ": the default now"


@dataclass(frozen=True, slots=True)
class Entrant:
    name: str
    gate: CountingGate


def entrants(unit: str, rule: Normalizer) -> list[Entrant]:
    """Return the gates that cost `EPSILON` and `DELTA`, by cap and kind; the first is what presets had before."""
    if unit == "record":
        best = best_gate(EPSILON, DELTA)
        return [
            Entrant("k = 20, rate .25: the default before", KAnonymityGate(20, 0.25, normalizer=rule)),
            Entrant(
                f"best sample: k = {best.k}, rate {best.sampling_rate:g}",
                KAnonymityGate(best.k, best.sampling_rate, normalizer=rule),
            ),
            Entrant(f"threshold, geometric noise{NOW}", ThresholdGate(EPSILON, DELTA, floor=FLOOR, normalizer=rule)),
        ]
    found = [
        Entrant(
            "k = 20, rate .25, cap 2: the default before",
            KAnonymityGate(20, 0.25, unit="contributor", texts_per_contributor=2, normalizer=rule),
        )
    ]
    for cap in CAPS:
        best = best_gate(EPSILON / cap, DELTA / cap)
        sampled = KAnonymityGate(
            best.k, best.sampling_rate, unit="contributor", texts_per_contributor=cap, normalizer=rule
        )
        found.append(Entrant(f"best sample: k = {best.k}, rate {best.sampling_rate:g}, cap {cap}", sampled))
        for noise, share in (("weighted_gaussian", 1), ("truncated_geometric", cap)):
            gate = ThresholdGate(
                math.nextafter(EPSILON / share, 0),
                math.nextafter(DELTA / share, 0),
                "contributor",
                cap,
                noise=noise,  # type: ignore[arg-type]
                floor=FLOOR,
                normalizer=rule,
            )
            found.append(
                Entrant(
                    f"threshold, {noise.partition('_')[2]} noise, cap {cap}{NOW if (cap, noise) == DEFAULT else ''}",
                    gate,
                )
            )
    return found


def batches(texts: Sequence[str], people: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(texts), BATCH_ROWS):
        columns = {"text": pa.array(texts[start : start + BATCH_ROWS], pa.large_string())}
        if people is not None:
            columns["contributor"] = pa.array(people[start : start + BATCH_ROWS], pa.large_string())
        yield pa.RecordBatch.from_pydict(columns)


def passed(entrant: Entrant, texts: Sequence[str], people: Sequence[str] | None, *, seed: int) -> int:
    """Return how many different texts pass."""
    return int(entrant.gate.release(batches(texts, people), rng=SimulationRandom(seed)).num_rows)


def compare(requests: list[str], *, people: int, rule: Normalizer, seeds: int) -> dict[str, list[int]]:
    """Return how many texts pass each gate, seed by seed; `people` 0 is the file as it is."""
    found: dict[str, list[int]] = {}
    for seed in range(seeds):
        texts, named = requests, None
        if people:
            log = draw_voice_log(sorted(set(requests)), contributors=people, rng=np.random.default_rng(seed))
            texts, named = log.texts, log.contributors
        for entrant in entrants("contributor" if people else "record", rule):
            cost = entrant.gate.event().cost() if isinstance(entrant.gate, ThresholdGate) else None
            assert cost is None or (cost.epsilon <= EPSILON * ROUNDING and cost.delta <= DELTA * ROUNDING)
            found.setdefault(entrant.name, []).append(passed(entrant, texts, named, seed=seed))
    return found


def report(tables: dict[str, dict[str, list[int]]], *, seeds: int) -> str:
    lines = [
        "# Gates: how many natural texts pass at one price",
        "",
        f"Made by `python -m benchmarks.gate_texts --data DIR --seeds {seeds}` on {datetime.now(UTC):%Y-%m-%d}:",
        f"{seeds} seeds, Python {platform.python_version()}, numpy {np.__version__}. SLURP's requests to a voice",
        "assistant name nobody, so who says what how often is drawn: a Zipf-Mandelbrot law over its different texts, a",
        "third of all lines one person's alone, most people with few lines. Simulation: nothing here has a guarantee.",
        "",
        f"Every gate costs a contributor (or, of the file as it is, a record) epsilon {EPSILON:g} and delta",
        f"{DELTA:.2g} at most. Different texts that pass, mean with its standard error over the seeds.",
    ]
    for title, found in tables.items():
        lines += ["", f"## {title}", "", "| gate | texts that pass |", "|---|---:|"]
        best = max(np.mean(counts) for counts in found.values())
        for name, counts in found.items():
            mean, error = float(np.mean(counts)), float(np.std(counts, ddof=1) / math.sqrt(len(counts)))
            said = f"{mean:.1f} ± {error:.1f}"
            lines.append(f"| {name} | {f'**{said}**' if best > 0 and mean == best else said} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Draw the logs, send each through every gate, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--people", type=int, nargs="*", default=PEOPLE)
    parser.add_argument("--rules", nargs="*", default=["L1", "L5"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with (arguments.data / FILE).open(newline="") as file:
        requests = [row["text"] for row in csv.DictReader(file)]
    tables: dict[str, dict[str, list[int]]] = {}
    for rule in map(Normalizer, arguments.rules):
        for people in (0, *arguments.people):
            title = (
                f"{people:,} people, rule {rule}"
                if people
                else f"The file as it is, {len(requests):,} records, rule {rule}"
            )
            tables[title] = compare(requests, people=people, rule=rule, seeds=arguments.seeds)
            print(title, {name: float(np.mean(counts)) for name, counts in tables[title].items()}, flush=True)
    page = report(tables, seeds=arguments.seeds)
    if arguments.out:
        arguments.out.write_text(page)
    else:
        print(page)


if __name__ == "__main__":
    main()
