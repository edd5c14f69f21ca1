"""Labels as files: CSV, JSON lines, Parquet, Label Studio's JSON; read by a cursor as they are sent."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from django.db import connection

from annotation.budget.spending import Echo, safe_cell
from annotation.choices.classes import counts_as
from annotation.choices.label_types.base import LabelType, NamesSeveral
from annotation.choices.label_types.catalogue import label_type_of
from annotation.choices.label_types.spans import MarkSpans
from annotation.data.readers.guessing import FIELDS_PREFIX
from annotation.errors import InvalidChoice
from annotation.models import DataKind, Dataset, Project
from dpal.spans.formats import WRITERS, SpannedText, plain_spans, write_conll, write_label_studio
from dpal.spans.text import Span, read

CHUNK = 5000
# A piece for each task would be a write to the network for each.
PIECE_CHARACTERS = 64 * 1024
COLUMN_TYPES = {
    "question": pa.int64(),
    "text": pa.string(),
    # In files each declared column of a table is one, and in CSV and Parquet each of the owner's (`metadata`), under a
    # name that no other has.
    "fields": None,
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
FIELDS, METADATA = COLUMNS.index("fields"), COLUMNS.index("metadata")
TABLE_COLUMNS = tuple(name for name, kind in COLUMN_TYPES.items() if kind is not None)
# Where an answer names several classes these are lists of names.
ANSWERS = ("answer", "consensus", "counts_as")
# Checks with a known answer stay out: their answers are no labels, and a file would tell which questions are checks.
SELECT = """
SELECT query.id, coalesce(query.text, record.text), record.payload::text, record.dataset_id, record.row_number,
       query.guess, label.choice, person.username, label.created_at, label.superseded_at IS NULL,
       consensus.choice, consensus.votes, consensus.agreeing,
       query.suggested, query.suggested_percent, query.suggestion_shown,
       CASE WHEN machine.id IS NULL THEN 'person' ELSE 'machine' END,
       record.metadata->>'id', record.metadata->>'columns', marked.spans, agreed.spans,
       proposed.spans
FROM annotation_query query
JOIN annotation_label label ON label.query_id = query.id
JOIN auth_user person ON person.id = label.annotator_id
LEFT JOIN annotation_machine machine ON machine.user_id = person.id
LEFT JOIN annotation_record record ON record.id = query.record_id
LEFT JOIN annotation_consensus consensus ON consensus.query_id = query.id
LEFT JOIN annotation_spanset marked ON marked.project_id = query.project_id AND marked.number = label.choice
LEFT JOIN annotation_spanset agreed ON agreed.project_id = query.project_id AND agreed.number = consensus.choice
LEFT JOIN annotation_spanset proposed
    ON proposed.project_id = query.project_id AND proposed.number = query.suggested
WHERE query.project_id = %(project)s AND query.state <> 'gold' AND NOT query.emptied
  AND (%(history)s OR label.superseded_at IS NULL)
ORDER BY query.id, label.id
"""
LabelRow = tuple[Any, ...]
# Each column that whoever brought the records wanted kept is one of the file, under its name behind this.
METADATA_PREFIX = "metadata."


class ExportFormat(StrEnum):
    CSV = "csv"
    PLAIN_CSV = "csv_plain"
    JSON_LINES = "jsonl"
    PARQUET = "parquet"
    LABEL_STUDIO = "label_studio"
    # Of spans alone: texts that annotators agree on.
    CONLL = "conll"
    DOCCANO = "doccano"
    PRODIGY = "prodigy"
    SPACY = "spacy"


SPANS_ALONE = (ExportFormat.CONLL, ExportFormat.DOCCANO, ExportFormat.PRODIGY, ExportFormat.SPACY)


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
    ExportFormat.CONLL: FileKind("CoNLL", "conll", "text/plain; charset=utf-8"),
    ExportFormat.DOCCANO: FileKind("doccano", "doccano.jsonl", "application/x-ndjson"),
    ExportFormat.PRODIGY: FileKind("Prodigy", "prodigy.jsonl", "application/x-ndjson"),
    ExportFormat.SPACY: FileKind("spaCy", "spacy.jsonl", "application/x-ndjson"),
}


def formats_of(project: Project) -> dict[ExportFormat, FileKind]:
    spans = isinstance(_label_type(project), MarkSpans)
    return {name: kind for name, kind in FILE_KINDS.items() if spans or name not in SPANS_ALONE}


def refuse_format(project: Project, name: str) -> None:
    if ExportFormat(name) not in formats_of(project):
        raise InvalidChoice("This format holds spans alone.")


def export_labels(
    *,
    project: Project,
    format: str,  # noqa: A002
    history: bool = False,
    count: Callable[[int], None] | None = None,
) -> Iterator[bytes]:
    refuse_format(project, format)
    pieces: Mapping[ExportFormat, Callable[..., Iterator[bytes]]] = {
        ExportFormat.CSV: partial(_csv, cell=safe_cell),
        ExportFormat.PLAIN_CSV: partial(_csv, cell=str),
        ExportFormat.JSON_LINES: _json_lines,
        ExportFormat.PARQUET: _parquet,
        ExportFormat.LABEL_STUDIO: _label_studio,
        **dict.fromkeys(SPANS_ALONE, partial(_spans_alone, name=ExportFormat(format))),
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
            yield [_row(row, classes, kind, places, project.renamed_classes) for row in rows]
            if count is not None:
                count(len(rows))


def _label_type(project: Project) -> LabelType:
    return label_type_of(project.question_kind, project.settings)


def _row(
    row: LabelRow, classes: list[str], asked: LabelType, places: Sequence[int], renamed: Mapping[str, str]
) -> LabelRow:
    query, text, fields, dataset, number, guess, choice, person, when, current, agreed, votes, agreeing, *rest = row
    suggested, percent, shown, kind, owner_id, pairs, marked, agreed_spans, proposed = rest

    def name(position: int | None) -> str | list[str] | None:
        return None if position is None else asked.exported(position, classes, guess)

    def counted_name(position: int | None) -> str | list[str] | None:
        return name(places[position] if places and position is not None else position)

    theirs: tuple[Any, ...]
    if isinstance(asked, MarkSpans):
        settled = None if agreed is None else _spans(agreed_spans, renamed)
        theirs = (kind, owner_id, _metadata(pairs), None)
        given = (_spans(marked, renamed), person, when, current, settled, votes, agreeing)
        model = (None if suggested is None else _spans(proposed, renamed), percent, shown)
        return (query, text, None, dataset, number, *given, *model, *theirs)
    answered = (name(choice), person, when, current, counted_name(agreed), votes, agreeing)
    suggestion = None if suggested is None else classes[suggested]
    theirs = (owner_id, _metadata(pairs), counted_name(choice))
    payload = json.loads(fields) if fields else None
    return (query, text, payload, dataset, number, *answered, suggestion, percent, shown, kind, *theirs)


def _spans(stored: str | None, renamed: Mapping[str, str]) -> list[dict[str, Any]]:
    found = plain_spans(() if stored is None else read(stored))
    return [one | {"label": renamed.get(one["label"], one["label"])} for one in found]


def _metadata(pairs: str | None) -> dict[str, str | None] | None:
    return dict(json.loads(pairs)) or None if pairs else None


def _kept(project: Project) -> list[str]:
    kept = Dataset.objects.filter(project=project, mapping__has_key="metadata").order_by("pk")
    return list(
        dict.fromkeys(str(name) for names in kept.values_list("mapping__metadata", flat=True) for name in names)
    )


def _declared(project: Project) -> dict[str, str]:
    """Return the name in a file of each declared column: its own, unless another column could be called so."""
    names = [column["name"] for column in project.columns] if project.data_kind == DataKind.TABLE else []
    taken = {name for name in names if name in COLUMNS or name.startswith((FIELDS_PREFIX, METADATA_PREFIX))}
    return {name: f"{FIELDS_PREFIX}{name}" if name in taken else name for name in names}


class _Table:
    """Columns of a table of labels: those of every project, the declared ones, and those kept for people."""

    def __init__(self, project: Project) -> None:
        self.declared, self.kept = _declared(project), _kept(project)
        self.lists = ANSWERS if isinstance(_label_type(project), NamesSeveral) else ()
        kinds = {name: pa.list_(pa.string()) if name in self.lists else COLUMN_TYPES[name] for name in TABLE_COLUMNS}
        fixed = list(kinds.items())
        categories = {column["name"] for column in project.columns if "categories" in column}
        own = [(column, pa.string() if name in categories else pa.float64()) for name, column in self.declared.items()]
        kept = [(f"{METADATA_PREFIX}{name}", pa.string()) for name in self.kept]
        self.schema = pa.schema([*fixed[:FIELDS], *own, *fixed[FIELDS:], *kept])

    def row(self, row: LabelRow) -> LabelRow:
        fields, kept = row[FIELDS] or {}, row[METADATA] or {}
        own = map(fields.get, self.declared)
        return (*row[:FIELDS], *own, *row[FIELDS + 1 : METADATA], *row[METADATA + 1 :], *map(kept.get, self.kept))


def _csv(project: Project, chunks: Iterator[Sequence[LabelRow]], *, cell: Callable[[Any], str]) -> Iterator[bytes]:
    table = _Table(project)
    yield csv.writer(Echo()).writerow(map(cell, table.schema.names)).encode()
    for rows in chunks:
        piece = io.StringIO(newline="")
        csv.writer(piece).writerows([_in_one_cell(value, cell) for value in table.row(row)] for row in rows)
        yield piece.getvalue().encode()


def _in_one_cell(value: Any, cell: Callable[[Any], str]) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else cell(value)


def _spans_alone(project: Project, chunks: Iterator[Sequence[LabelRow]], *, name: ExportFormat) -> Iterator[bytes]:
    rows = (row for rows in chunks for row in rows)
    for _query, answers in groupby(rows, key=lambda row: row[0]):
        _id, text, *_place, agreed, _votes, _agreeing = next(answers)[:12]
        if text is None or agreed is None:
            continue
        spanned = _spanned(text, agreed)
        if name == ExportFormat.CONLL:
            yield "".join(f"{line}\n" for line in write_conll([spanned])).encode()
        else:
            yield f"{json.dumps(WRITERS[name](spanned), ensure_ascii=False)}\n".encode()


def _spanned(text: str, plain: list[dict[str, Any]]) -> SpannedText:
    return SpannedText(text, tuple(Span(one["start"], one["end"], one["label"]) for one in plain))


def _json_lines(project: Project, chunks: Iterator[Sequence[LabelRow]]) -> Iterator[bytes]:
    dump, declared = json.JSONEncoder(ensure_ascii=False, default=datetime.isoformat).encode, _declared(project)
    for rows in chunks:
        yield "".join(f"{dump(_object(row, declared))}\n" for row in rows).encode()


def _object(row: LabelRow, declared: Mapping[str, str]) -> dict[str, Any]:
    named = dict(zip(COLUMNS, row, strict=True))
    fields = named.pop("fields") or {}
    return named | {column: fields.get(name) for name, column in declared.items()}


def _parquet(project: Project, chunks: Iterator[Sequence[LabelRow]], table: _Table | None = None) -> Iterator[bytes]:
    table = table or _Table(project)
    sent, schema = _Pieces(), table.schema
    with pq.ParquetWriter(sent, schema, compression="zstd") as writer:
        for rows in chunks:
            columns = zip(schema, *map(table.row, rows), strict=True)
            arrays = [pa.array(_typed(column, field), field.type) for field, *column in columns]
            writer.write_table(pa.table(arrays, schema=schema))
            yield sent.take()
    yield sent.take()


def _typed(column: Sequence[Any], field: Any) -> Sequence[Any]:
    """Return spans as JSON in a column of texts, whole numbers as floats in one of floats."""
    if field.type == pa.float64():
        return [None if one is None else float(one) for one in column]
    if field.type != pa.string():
        return column
    return [json.dumps(one, ensure_ascii=False) if isinstance(one, list) else one for one in column]


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
    results = _span_results if isinstance(_label_type(project), MarkSpans) else _choice_results
    before, piece = "[", ""
    for _query, answers in groupby((row for rows in chunks for row in rows), key=lambda row: row[0]):
        piece += f"{before}{dump(_task(list(answers), results))}"
        before = ",\n"
        if len(piece) > PIECE_CHARACTERS:
            yield piece.encode()
            piece = ""
    yield f"{piece}]\n".encode() if before != "[" else b"[]\n"


def _task(answers: list[LabelRow], results: Callable[[str, Any], list[dict[str, Any]]]) -> dict[str, Any]:
    question, text, fields, dataset, number, *_rest = answers[0]
    data: dict[str, Any] = {"text": text} if text is not None else fields or {}
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
                    # Its importer takes `completed_by` for the address of one of its own users, so not there.
                    {**one, "meta": {"annotator": answer[6], "annotator_kind": answer[15], "counts_as": answer[-1]}}
                    for one in results(text, answer[5])
                ],
            }
            for answer in answers
        ],
    }


def _choice_results(_text: str, answer: Any) -> list[dict[str, Any]]:
    value = {"choices": answer if isinstance(answer, list) else [answer]}
    return [{"from_name": "class", "to_name": "record", "type": "choices", "value": value}]


def _span_results(text: str, answer: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list(write_label_studio(_spanned(text, answer))["annotations"][0]["result"])
