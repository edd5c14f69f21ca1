"""`manage.py simulate`: what a preset would reach on labelled public data, before a private row is uploaded."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.choices.presets import STREAM_PRESETS
from annotation.errors import InvalidUpload
from learner.simulation.crowd import simulate_crowd
from learner.simulation.outcome import Outcome
from learner.simulation.reading import FileColumns, read_task
from learner.simulation.spans import read_span_file, simulate_spans
from learner.simulation.stream import simulate_stream
from learner.simulation.task import SimulationTask
from learner.simulation.trusted import simulate_trusted

PRESETS: Mapping[str, Callable[[SimulationTask], Outcome]] = {
    "pool-experts": simulate_trusted,
    "voice-crowd": simulate_crowd,
    **{preset.key: simulate_stream(preset.key) for preset in STREAM_PRESETS},
}
COMPARED = ("project", "random", "version_0", "no_privacy", "constant")


class Command(BaseCommand):
    """Simulate; no database is read or needed, and nothing that comes out carries a guarantee."""

    help = "Simulate a preset on labelled public data and print accuracy beside random choice, version 0, no privacy."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--data", type=Path, required=True, help="labelled CSV, TSV, JSON lines, Parquet or npz")
        parser.add_argument("--test", type=Path, help="labelled file nobody is asked about; else a fifth is held out")
        parser.add_argument("--text-column", default="text", help="a name, or a number in a file without a header")
        parser.add_argument("--label-column", default="label")
        parser.add_argument("--contributor-column")
        parser.add_argument("--no-quoting", action="store_true", help="quotation marks enclose nothing")
        parser.add_argument("--skip-rows", type=int, default=0, metavar="N", help="rows before the names of columns")
        parser.add_argument("--preset", choices=sorted(PRESETS), required=True)
        parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="over the preset's own")
        parser.add_argument(
            "--describe", type=Path, help="what the owner writes about classes: JSON, or label and text"
        )
        parser.add_argument("--labels", default="60,120,180", help="numbers of labels, separated by commas")
        parser.add_argument("--seeds", type=int, default=5)
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            outcome = self._of_spans(options) or PRESETS[options["preset"]](self._task(options))
        except (ValueError, InvalidUpload, OSError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(outcome.to_json()))
        else:
            self._print(outcome)

    def _of_spans(self, options: dict[str, Any]) -> Outcome | None:
        """Play a project of experts that mark spans; nothing where the labels of the file are none."""
        columns = _columns(options)
        public = read_span_file(options["data"], columns)
        if public is None:
            return None
        if options["preset"] != "pool-experts":
            raise ValueError("spans are learned in pool-experts alone")
        test = None if options["test"] is None else read_span_file(options["test"], columns)
        if test is None and options["test"] is not None:
            raise ValueError(f"{options['test'].name}: its labels are no spans")
        return simulate_spans(public, test, **_wanted(options))

    def _task(self, options: dict[str, Any]) -> SimulationTask:
        return read_task(options["data"], test=options["test"], columns=_columns(options), **_wanted(options))

    def _print(self, outcome: Outcome) -> None:
        for account in outcome.accounts:
            self.stdout.write(
                f"account {account.scope}, unit {account.unit}: epsilon {account.epsilon:g}, delta {account.delta:g}"
            )
        self.stdout.write("".join([f"{'labels':>8}", *(f"{name:>24}" for name in COMPARED)]))
        for point in outcome.points:
            cells = [f"{point.labels:>8}"]
            for name in COMPARED:
                found = getattr(point, name)
                cells.append(f"{found.accuracy:>12.3f} ±{found.accuracy_se:.3f} {found.macro_f1:.3f}")
            self.stdout.write("".join(cells))
        self.stdout.write("Accuracy, its standard error over seeds, macro-F1. A simulation, no guarantee.")
        for note in outcome.notes:
            self.stdout.write(note)


def _columns(options: Mapping[str, Any]) -> FileColumns:
    return FileColumns(
        options["text_column"],
        options["label_column"],
        options["contributor_column"],
        has_header=not options["text_column"].isdecimal(),
        quoting=not options["no_quoting"],
        skip_rows=options["skip_rows"],
    )


def _wanted(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "describe": options["describe"],
        "settings": dict(_setting(given) for given in options["set"]),
        "label_counts": [int(number) for number in options["labels"].split(",")],
        "seeds": options["seeds"],
    }


def _setting(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise ValueError(f"--set takes name=value, got {given!r}")
    return name.strip(), value.strip()
