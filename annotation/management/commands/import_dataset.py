"""Read a file into a project from the terminal."""

import argparse
from pathlib import Path
from typing import Any, get_args

from django.core.files import File
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.data.services import datasets
from annotation.errors import AnnotationError
from annotation.models import BadRows, DatasetRole, DatasetState, Project
from dpal.reading.encodings import Encoding
from dpal.reading.rows import AnswersKept


class Command(BaseCommand):
    """Read CSV, TSV, JSONL, tasks of Label Studio (also .gz), Parquet, Excel or a zip of images, as an upload is."""

    help = "Read a file into a project, showing progress; ends with 1 if nothing was stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--role", choices=DatasetRole.values, default=DatasetRole.POOL.value)
        parser.add_argument("--bad-rows", choices=BadRows.values, default=BadRows.KEEP_GOOD.value)
        for column in ("text", "label", "contributor", "pixels", "id"):
            parser.add_argument(f"--{column}-column", metavar="NAME")
        parser.add_argument(
            "--feature-column",
            action="append",
            default=[],
            metavar="NAME=COLUMN",
            help="what the file calls a declared column; may be repeated",
        )
        parser.add_argument(
            "--metadata-column", action="append", default=[], metavar="NAME", help="kept for people; may be repeated"
        )
        parser.add_argument(
            "--answers", choices=get_args(AnswersKept), help="of tasks with several answers: which count"
        )
        parser.add_argument("--annotator", metavar="NAME", help="of answered tasks: whose answers alone count")
        parser.add_argument(
            "--confirm-few", action="store_true", help="send a crowd's pool through the gate however few texts pass"
        )
        parser.add_argument("--start-epsilon", type=float, help="limit of the account of a charged start")
        parser.add_argument("--no-header", action="store_true", help="the first line is a row")
        parser.add_argument(
            "--skip-rows", type=int, default=0, metavar="N", help="rows before the names of the columns"
        )
        parser.add_argument("--ragged-rows", action="store_true", help="fill short rows, cut long ones")
        parser.add_argument(
            "--value", action="append", default=[], metavar="LABEL=CLASS", help="what a label of the file means"
        )
        parser.add_argument("--decimal", choices=[".", ","], help="between whole and fraction of a number in a text")
        parser.add_argument("--missing", action="append", metavar="TEXT", help="it says that a value is missing")
        parser.add_argument(
            "--one-hot", action="append", metavar="NAME", help="a column of 0 and 1 called like a class"
        )
        parser.add_argument("--separator", help="one character between several labels in a cell; | unless given")
        parser.add_argument("--columns", metavar="A,B,...", help="names of the columns of a file without a header")
        parser.add_argument("--encoding", choices=list(Encoding), help="of a text file, where its mark does not say it")
        parser.add_argument("--sheet", metavar="NAME", help="of a workbook; without it the first that shows")
        parser.add_argument("--delimiter", help="one character; a tab is written \\t")
        parser.add_argument(
            "--quoting", action=argparse.BooleanOptionalAction, default=True, help='whether " encloses fields'
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']}.")
        try:
            with options["file"].open("rb") as stream:
                dataset = datasets.receive_upload(
                    project=project,
                    file=File(stream),
                    name=options["file"].name,
                    role=options["role"],
                    bad_rows=options["bad_rows"],
                    mapping=mapping_of(options),
                    start_epsilon=options["start_epsilon"],
                    confirm_few=options["confirm_few"],
                    send=False,
                )
        except (OSError, AnnotationError) as error:
            raise CommandError(str(error)) from error
        datasets.import_dataset(job_id=dataset.job_id, on_progress=self._show)
        self.stdout.write("")
        dataset.refresh_from_db()
        for bad in dataset.bad_row_report[:10]:
            self.stderr.write(f"line {bad['line']} {bad['column']}: {bad['reason']}")
        if dataset.state != DatasetState.READY:
            raise CommandError(dataset.uploader_reason or dataset.job.error or "Nothing was stored.")
        self.stdout.write(dataset.job.message)

    def _show(self, rows: int, done: int, total: int) -> None:
        self.stdout.write(f"\r{done / max(total, 1):4.0%}  {rows:,} rows", ending="")
        self.stdout.flush()


def mapping_of(options: dict[str, Any]) -> dict[str, Any]:
    mapping = {key: options[f"{key}_column"] for key in ("text", "label", "contributor", "pixels", "id")}
    others = ("answers", "annotator", "encoding", "sheet", "decimal", "missing", "one_hot", "separator", "ragged_rows")
    mapping |= {key: options[key] for key in others}
    mapping = {key: name for key, name in mapping.items() if name}
    if options["feature_column"]:
        pairs = [pair.partition("=") for pair in options["feature_column"]]
        mapping["features"] = {name: column for name, _, column in pairs}
    if options["metadata_column"]:
        mapping["metadata"] = options["metadata_column"]
    if options["columns"]:
        mapping["columns"] = options["columns"].split(",")
    if options["delimiter"]:
        mapping["delimiter"] = options["delimiter"].replace("\\t", "\t")
    if options["value"]:
        pairs = [pair.rpartition("=") for pair in options["value"]]
        mapping["values"] = {label: name for label, _, name in pairs}
    if options["skip_rows"]:
        mapping["skip_rows"] = options["skip_rows"]
    return mapping | {"has_header": not options["no_header"], "quoting": options["quoting"]}
