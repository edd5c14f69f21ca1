"""Labels as files: CSV, JSON lines, Parquet, Croissant, Label Studio's JSON; read by a cursor as they are sent."""

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from django.db import connection
from django.utils import timezone

from annotation.budget.spending import Echo, safe_cell
from annotation.choices.classes import counts_as
from annotation.choices.label_types.base import LabelType, NamesSeveral
from annotation.choices.label_types.catalogue import label_type_of
from annotation.data.croissant import DESCRIPTION, LABELS, METADATA_PREFIX, croissant_description
from annotation.models import Dataset, Project

CHUNK = 5000
# A piece for each task would be a write to the network for each.
PIECE_CHARACTERS = 64 * 1024
COLUMN_TYPES = {
    "question": pa.int64(),
    "text": pa.string(),
    "fields": pa.string(),
    "dataset": pa.int64(),
    "row": pa.int64(),
    "answer": pa.string(),
    "annotator": pa.string(),
    "answered_at": pa.timestamp("us", tz="UTC"),
    "current": pa.bool_(),
    "consensus": pa.string(),
    "votes": pa.int16(),
    "agreeing": pa.int16(),
    "suggestion": pa.string(),
    "suggestion_percent": pa.int16(),
    "suggestion_shown": pa.bool_(),
    "annotator_kind": pa.string(),
    "owner_id": pa.string(),
    # Where a file has columns, each declared one of the owner's is its own, under a name that none of the others has.
    "metadata": None,
    "counts_as": pa.string(),
}
COLUMNS = tuple(COLUMN_TYPES)
METADATA = COLUMNS.index("metadata")
TABLE_COLUMNS = (*COLUMNS[:METADATA], *COLUMNS[METADATA + 1 :])
SCHEMA = pa.schema([(name, COLUMN_TYPES[name]) for name in TABLE_COLUMNS])
# Where an answer names several classes these are lists of names.
ANSWERS = ("answer", "consensus", "counts_as")
SETS_SCHEMA = pa.schema(
    [pa.field(each.name, pa.list_(pa.string())) if each.name in ANSWERS else each for each in SCHEMA]
)
# Checks with a known answer stay out: their answers are no labels, and a file would tell which questions are checks.
SELECT = """
SELECT query.id, coalesce(query.text, record.text), record.payload::text, record.dataset_id, record.row_number,
       query.guess, label.choice, person.username, label.created_at, label.superseded_at IS NULL,
       consensus.choice, consensus.votes, consensus.agreeing,
       query.suggested, query.suggested_percent, query.suggestion_shown,
       CASE WHEN machine.id IS NULL THEN 'person' ELSE 'machine' END,
       record.metadata->>'id', record.metadata->>'columns'
FROM annotation_query query
JOIN annotation_label label ON label.query_id = query.id
JOIN auth_user person ON person.id = label.annotator_id
LEFT JOIN annotation_machine machine ON machine.user_id = person.id
LEFT JOIN annotation_record record ON record.id = query.record_id
LEFT JOIN annotation_consensus consensus ON consensus.query_id = query.id
WHERE query.project_id = %(project)s AND query.state <> 'gold' AND NOT query.emptied
  AND (%(history)s OR label.superseded_at IS NULL)
ORDER BY query.id, label.id
"""
LabelRow = tuple[Any, ...]


class ExportFormat(StrEnum):
    CSV = "csv"
    PLAIN_CSV = "csv_plain"
    JSON_LINES = "jsonl"
    PARQUET = "parquet"
    LABEL_STUDIO = "label_studio"
    CROISSANT = "croissant"


class FileKind(NamedTuple):
    words: str
    ending: str
    media_type: str


FILE_KINDS = {
    ExportFormat.CSV: FileKind("CSV", "csv", "text/csv; charset=utf-8"),
    ExportFormat.PLAIN_CSV: FileKind("CSV for programs", "csv", "text/csv; charset=utf-8"),
    ExportFormat.JSON_LINES: FileKind("JSONL", "jsonl", "application/x-ndjson"),
    ExportFormat.PARQUET: FileKind("Parquet", "parquet", "application/vnd.apache.parquet"),
    ExportFormat.LABEL_STUDIO: FileKind("Label Studio", "label-studio.json", "application/json"),
    ExportFormat.CROISSANT: FileKind("Croissant", "croissant.zip", "application/zip"),
}


def export_labels(
    *,
    project: Project,
    format: str,  # noqa: A002
    history: bool = False,
    count: Callable[[int], None] | None = None,
) -> Iterator[bytes]:
    pieces: Mapping[ExportFormat, Callable[..., Iterator[bytes]]] = {
        ExportFormat.CSV: partial(_csv, cell=safe_cell),
        ExportFormat.PLAIN_CSV: partial(_csv, cell=str),
        ExportFormat.JSON_LINES: _json_lines,
        ExportFormat.PARQUET: _parquet,
        ExportFormat.LABEL_STUDIO: _label_studio,
        ExportFormat.CROISSANT: _croissant,
    }
    return pieces[ExportFormat(format)](project, _chunks(project, history=history, count=count))


def _chunks(
    project: Project, *, history: bool, count: Callable[[int], None] | None = None
) -> Iterator[Sequence[LabelRow]]:
    classes, kind = [str(name) for name in project.classes], _label_type(project)
    places = counts_as(project.classes, project.merged_classes)
    with connection.chunked_cursor() as cursor:
        cursor.execute(SELECT, {"project": project.pk, "history": history})
        while rows := cursor.fetchmany(CHUNK):
            yield [_row(row, classes, kind, places) for row in rows]
            if count is not None:
                count(len(rows))


def _label_type(project: Project) -> LabelType:
    return label_type_of(project.question_kind, project.settings)


def _row(row: LabelRow, classes: list[str], asked: LabelType, places: Sequence[int]) -> LabelRow:
    query, text, fields, dataset, number, guess, choice, person, when, current, agreed, votes, agreeing, *rest = row
    suggested, percent, shown, kind, owner_id, pairs = rest

    def name(position: int | None) -> str | list[str] | None:
        return None if position is None else asked.exported(position, classes, guess)

    def counted_name(position: int | None) -> str | list[str] | None:
        return name(places[position] if places and position is not None else position)

    answered = (name(choice), person, when, current, counted_name(agreed), votes, agreeing)
    suggestion = None if suggested is None else classes[suggested]
    theirs = (owner_id, _metadata(pairs), counted_name(choice))
    return (query, text, fields, dataset, number, *answered, suggestion, percent, shown, kind, *theirs)


def _metadata(pairs: str | None) -> dict[str, str | None] | None:
    return dict(json.loads(pairs)) or None if pairs else None


def _declared(project: Project) -> list[str]:
    kept = Dataset.objects.filter(project=project, mapping__has_key="metadata").order_by("pk")
    return list(
        dict.fromkeys(str(name) for names in kept.values_list("mapping__metadata", flat=True) for name in names)
    )


def _table_row(row: LabelRow, declared: Sequence[str]) -> LabelRow:
    kept = row[METADATA] or {}
    return (*row[:METADATA], *row[METADATA + 1 :], *(kept.get(name) for name in declared))


def _csv(project: Project, chunks: Iterator[Sequence[LabelRow]], *, cell: Callable[[Any], str]) -> Iterator[bytes]:
    declared = _declared(project)
    header = [*TABLE_COLUMNS, *(f"{METADATA_PREFIX}{name}" for name in declared)]
    yield csv.writer(Echo()).writerow(header).encode()
    for rows in chunks:
        piece = io.StringIO(newline="")
        cells = ([_in_one_cell(value, cell) for value in _table_row(row, declared)] for row in rows)
        csv.writer(piece).writerows(cells)
        yield piece.getvalue().encode()


def _in_one_cell(value: Any, cell: Callable[[Any], str]) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else cell(value)


def _json_lines(project: Project, chunks: Iterator[Sequence[LabelRow]]) -> Iterator[bytes]:
    dump = json.JSONEncoder(ensure_ascii=False, default=datetime.isoformat).encode
    for rows in chunks:
        yield "".join(f"{dump(_object(row))}\n" for row in rows).encode()


def _object(row: LabelRow) -> dict[str, Any]:
    named = dict(zip(COLUMNS, row, strict=True))
    named["fields"] = json.loads(named["fields"]) if named["fields"] else None
    return named


def _parquet(
    project: Project, chunks: Iterator[Sequence[LabelRow]], declared: Sequence[str] | None = None
) -> Iterator[bytes]:
    declared = _declared(project) if declared is None else declared
    theirs = [pa.field(f"{METADATA_PREFIX}{name}", pa.string()) for name in declared]
    fixed = SETS_SCHEMA if isinstance(_label_type(project), NamesSeveral) else SCHEMA
    sent, schema = _Pieces(), pa.schema([*fixed, *theirs])
    with pq.ParquetWriter(sent, schema, compression="zstd") as writer:
        for rows in chunks:
            columns = list(zip(*(_table_row(row, declared) for row in rows), strict=True))
            writer.write_table(
                pa.table(
                    [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
                )
            )
            yield sent.take()
    yield sent.take()


def _croissant(project: Project, chunks: Iterator[Sequence[LabelRow]]) -> Iterator[bytes]:
    sent, digest, size = _Pieces(), hashlib.sha256(), 0
    moment, declared = timezone.now(), _declared(project)
    stamp = (moment.year, moment.month, moment.day, 0, 0, 0)
    with zipfile.ZipFile(sent, "w") as archive:
        with archive.open(zipfile.ZipInfo(LABELS, stamp), "w", force_zip64=True) as member:
            for piece in _parquet(project, chunks, declared):
                digest.update(piece)
                size += len(piece)
                member.write(piece)
                yield sent.take()
        document = croissant_description(
            name=project.name,
            slug=project.slug,
            question=project.question,
            classes=[str(name) for name in project.classes],
            declared=declared,
            lists=ANSWERS if isinstance(_label_type(project), NamesSeveral) else (),
            made_on=moment.date().isoformat(),
            sha256=digest.hexdigest(),
            size=size,
        )
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        archive.writestr(zipfile.ZipInfo(DESCRIPTION, stamp), text)
    yield sent.take()


class _Pieces(io.RawIOBase):
    """A file of which what was written can be taken away and is then forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._held.append(piece)
        self._position += len(piece)
        return len(piece)

    def take(self) -> bytes:
        held, self._held = b"".join(self._held), []
        return held


def _label_studio(project: Project, chunks: Iterator[Sequence[LabelRow]]) -> Iterator[bytes]:
    dump = json.JSONEncoder(ensure_ascii=False).encode
    before, piece = "[", ""
    for _query, answers in groupby((row for rows in chunks for row in rows), key=lambda row: row[0]):
        piece += f"{before}{dump(_task(list(answers)))}"
        before = ",\n"
        if len(piece) > PIECE_CHARACTERS:
            yield piece.encode()
            piece = ""
    yield f"{piece}]\n".encode() if before != "[" else b"[]\n"


def _task(answers: list[LabelRow]) -> dict[str, Any]:
    question, text, fields, dataset, number, *_rest = answers[0]
    data: dict[str, Any] = {"text": text} if text is not None else dict(json.loads(fields)) if fields else {}
    return {
        "id": question,
        "data": data,
        "meta": {
            "dataset": dataset,
            "row": number,
            "owner_id": answers[0][16],
            "metadata": answers[0][METADATA],
            **dict(zip(COLUMNS[9:15], answers[0][9:15], strict=True)),
        },
        "annotations": [
            {
                "created_at": answer[7].isoformat(),
                # An answer that was changed since is no annotation of the task any more.
                "was_cancelled": not answer[8],
                "result": [
                    {
                        "from_name": "class",
                        "to_name": "record",
                        "type": "choices",
                        "value": {"choices": answer[5] if isinstance(answer[5], list) else [answer[5]]},
                        # Its importer takes `completed_by` for the address of one of its own users, so not there.
                        "meta": {"annotator": answer[6], "annotator_kind": answer[15], "counts_as": answer[-1]},
                    }
                ],
            }
            for answer in answers
        ],
    }
