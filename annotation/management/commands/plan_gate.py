"""Show what a gate costs and lets out, before anything is charged."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
from django.core.management.base import BaseCommand, CommandError

from privacy.accounting.events import ComposedGateWindowEvent, KAnonymityGateEvent
from privacy.accounting.gate import PlannedGate, frontier
from privacy.gate import planning
from privacy.gate.hashing import new_key
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.gate.normalizers import Normalizer
from privacy.gate.planning import PublicSource, plan_caps, plan_source
from privacy.gate.reading import check_unit
from privacy.gate.survey import Frequencies, PoolSurvey

FORMATS = {".parquet": "parquet", ".csv": "csv", ".arrow": "ipc", ".feather": "ipc", ".jsonl": "json", ".json": "json"}
NOT_PRIVATE = "NOT PRIVATE: computed from the records themselves, for the administrator alone; do not pass it on."


class Command(BaseCommand):
    """Print the frontier of (k, sampling rate), for a pool also what would pass, and one line of advice."""

    help = "Show the gates that cost (epsilon, delta), and what they would let out of a pool."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--epsilon", type=float, default=1.0, help="price of the whole gate (default 1)")
        parser.add_argument("--delta", type=float, default=1e-6, help="price of the whole gate (default 1e-6)")
        parser.add_argument("--unit", choices=("record", "contributor"), default="record")
        parser.add_argument("--texts-per-contributor", type=int, help="cap, for the unit contributor")
        parser.add_argument("--pool", type=Path, help="file to survey: parquet, csv, jsonl, arrow")
        parser.add_argument("--text-column", default="text")
        parser.add_argument("--contributor-column", default="contributor")
        parser.add_argument("--normalizer", choices=[level.value for level in Normalizer], default="L1")
        parser.add_argument("--records", type=int, help="public number: records, or of a contributor's texts, to come")
        parser.add_argument("--different-texts", type=int, help="public number: different texts among them")
        parser.add_argument("--most-frequent", type=int, help="public number: how often the most frequent is said")
        parser.add_argument("--people", type=int, help="public number: contributors; then caps are compared")
        parser.add_argument("--paper-table", action="store_true", help="print the source's table, both accountings")
        parser.add_argument("--runs", type=int, nargs="+", help="print what so many runs of a gate cost together")
        parser.add_argument("--k", type=int, default=20, help="k of the gate of --runs (default 20)")
        parser.add_argument(
            "--rate", type=float, default=0.25, help="sampling rate of the gate of --runs (default .25)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            check_unit(options["unit"], options["texts_per_contributor"])
            answer = _answer(options)
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(answer) if options["json"] else "\n".join(_lines(answer)))


def _answer(options: dict[str, Any]) -> dict[str, Any]:
    if options["paper_table"]:
        return {"paper_table": [asdict(cell) for cell in planning.paper_table()]}
    if options["runs"]:
        return {"runs": _runs(KAnonymityGateEvent(options["k"], options["rate"], options["epsilon"]), options["runs"])}
    cap = options["texts_per_contributor"]
    if options["records"] is not None:
        return _public_plan(options)
    choices = frontier(options["epsilon"], options["delta"], texts_per_contributor=cap or 1)
    if options["pool"] is None:
        return {"frontier": [_row(choice) for choice in choices]}
    survey = PoolSurvey(
        key=new_key(), unit=options["unit"], texts_per_contributor=cap, normalizer=Normalizer(options["normalizer"])
    )
    survey.update(_batches(options))
    return _plan(survey.frequencies(), choices, options)


def _runs(gate: KAnonymityGateEvent, windows: list[int]) -> list[dict[str, float]]:
    costs = [(window, ComposedGateWindowEvent(gate, window, 1).cost()) for window in windows]
    return [
        {"runs": window, "epsilon": cost.epsilon, "added_up": window * gate.epsilon, "delta": cost.delta}
        for window, cost in costs
    ]


def _public_plan(options: dict[str, Any]) -> dict[str, Any]:
    if options["different_texts"] is None or options["most_frequent"] is None:
        raise CommandError("--records needs --different-texts and --most-frequent, too")
    source = PublicSource(options["records"], options["different_texts"], options["most_frequent"])
    price = {"epsilon": options["epsilon"], "delta": options["delta"]}
    if options["people"] is not None:
        plans = plan_caps(source, people=options["people"], **price)
        return {
            "caps": [
                {"texts_per_contributor": plan.texts_per_contributor, "gate": plan.gate.described()}
                | asdict(plan.passing)
                for plan in plans
            ]
        }
    plan = plan_source(source, **price, unit=options["unit"], texts_per_contributor=options["texts_per_contributor"])
    rows = [{"gate": gate.described()} | asdict(passed) for gate, passed in plan.gates]
    return {"gates": rows, "window": plan.window}


def _plan(frequencies: Frequencies, choices: list[PlannedGate], options: dict[str, Any]) -> dict[str, Any]:
    unit, cap = options["unit"], options["texts_per_contributor"]
    rows = []
    for choice in choices:
        gate = KAnonymityGate(choice.k, choice.sampling_rate, unit, cap)
        rows.append(_row(choice) | asdict(planning.passing(frequencies, gate)))
    price = options["epsilon"], options["delta"], unit, cap
    best = planning.best_of_kind(KAnonymityGate, frequencies, *price)
    other = planning.best_of_kind(ThresholdGate, frequencies, *price)
    sampled, threshold = planning.passing(frequencies, best), planning.passing(frequencies, other)
    return {
        "warning": NOT_PRIVATE,
        "exact": frequencies.exact,
        "contributions": frequencies.contributions,
        "distinct_texts": round(frequencies.distinct_texts),
        "frontier": rows,
        "said_at_least": [asdict(row) for row in planning.said_at_least(frequencies)],
        "threshold_gate": {"noise": other.noise, "threshold": other.event().threshold} | asdict(threshold),
        "recommendation": planning.recommendation(sampled, best, threshold),
    }


def _batches(options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    path: Path = options["pool"]
    if path.suffix not in FORMATS:
        raise CommandError(f"cannot read {path.suffix or 'a file without ending'}; known are {', '.join(FORMATS)}")
    if not path.is_file():
        raise CommandError(f"there is no file {path}")
    names = {"text": options["text_column"]}
    if options["unit"] == "contributor":
        names["contributor"] = options["contributor_column"]
    try:
        pool = pyarrow.dataset.dataset(path, format=FORMATS[path.suffix])
        for name in names.values():
            if name not in pool.schema.names:
                raise CommandError(f"{path.name} has no column {name}")
        for batch in pool.to_batches(columns=list(names.values())):
            columns = [batch.column(name).cast(pa.large_string()) for name in names.values()]
            yield pa.RecordBatch.from_arrays(columns, names=list(names))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # What Arrow says may quote a record.
        raise CommandError(f"{path.name} cannot be read: is it {path.suffix[1:]}, and are its texts UTF-8?") from None


def _row(choice: PlannedGate) -> dict[str, float]:
    needed = round(choice.records_needed, 1)
    return {"k": choice.k, "sampling_rate": choice.sampling_rate, "epsilon": choice.epsilon, "records_needed": needed}


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    for plan in answer.get("caps", answer.get("gates", [])):
        cap = f"cap {plan['texts_per_contributor']:>3}: " if "texts_per_contributor" in plan else ""
        yield f"{cap}{plan['gate']}: about {plan['texts']:,.0f} texts, {plan['contribution_share']:.0%} of what is said"
    if "window" in answer:
        yield f"180 texts pass after collecting {answer['window']:.3g} times as long"
    yield from map("| {runs} | {epsilon:.3g} | {added_up:g} | {delta:.2g} |".format_map, answer.get("runs", []))
    if answer.keys() & {"caps", "gates", "runs"}:
        return
    if "paper_table" in answer:
        yield f"{'k':>5} {'rate':>5} {'epsilon':>8} {'delta charged':>14} {'published bound':>16}"
        for cell in answer["paper_table"]:
            published = "no proof" if cell["published"] is None else f"{cell['published']:.3g}"
            setting = f"{cell['k']:>5} {cell['sampling_rate']:>5} {cell['epsilon']:>8}"
            yield f"{setting} {cell['exact']:>14.3g} {published:>16}"
        return
    if "warning" in answer:
        kind = "counted exactly" if answer["exact"] else "estimated by sketches"
        yield answer["warning"]
        yield f"{answer['contributions']:,} contributions, {answer['distinct_texts']:,} texts, {kind}"
    yield f"{'k':>5} {'rate':>5} {'said at least about':>20}" + (
        "      texts  share  records" if "exact" in answer else ""
    )
    for row in answer["frontier"]:
        passing = ""
        if "texts" in row:
            passing = f" {row['texts']:>10,.0f} {row['text_share']:>6.1%} {row['contribution_share']:>8.1%}"
        yield f"{row['k']:>5} {row['sampling_rate']:>5} {row['records_needed']:>20,.0f}{passing}"
    if "said_at_least" in answer:
        yield "said at least k times, whatever the gate:"
        for row in answer["said_at_least"]:
            shares = f"{row['texts']:>10,.0f} {row['text_share']:>6.1%} {row['contribution_share']:>8.1%}"
            yield f"{row['k']:>5} {'':>26} {shares}"
    if "threshold_gate" in answer:
        other = answer["threshold_gate"]
        passing = f" {other['texts']:>10,.0f} {other['text_share']:>6.1%} {other['contribution_share']:>8.1%}"
        yield f"threshold gate ({other['noise']}) at {other['threshold']:.1f}:{passing}"
        yield answer["recommendation"]
