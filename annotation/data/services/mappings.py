"""Mappings of columns: checked, suggested from what is known, and turned into what a reader takes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO, cast, get_args

from django.conf import settings

from annotation.choices.label_types.base import NamesSeveral
from annotation.choices.label_types.catalogue import label_type_of
from annotation.data.readers.guessing import guess_columns, remembered
from annotation.data.readers.reading import detect_format
from annotation.data.readers.shapes import shape_of
from annotation.errors import InvalidUpload
from annotation.models import DataKind, Dataset, DatasetRole, Oracle, PrivacyUnit, Project
from dpal.reading.cells import BadCell, check_storable
from dpal.reading.encodings import Encoding
from dpal.reading.formats import Format
from dpal.reading.rows import AnswersKept, Layout
from dpal.reading.shapes import FileShape
from privacy.wording import as_message

READING_KEYS = frozenset({"has_header", "columns", "delimiter", "quoting", "encoding", "sheet", "skip_rows"})
NAME_KEYS = ("text", "contributor", "label", "id", "pixels", "annotator")
CELL_KEYS = ("values", "separator", "decimal", "missing")
MAPPING_KEYS = READING_KEYS | {*NAME_KEYS, *CELL_KEYS, "features", "answers", "metadata", "without_public"}
MOST_METADATA = 20
MOST_SKIPPED = 100
TEXTS_BY_NAME = {
    "features": "features: must name a column of the file for each declared column",
    "values": "values: must name a class for each value",
}


BEHIND_A_GATE = as_message(
    "metadata: behind a gate no question knows its record, so an id or columns of yours could never come back; leave "
    "them out"
)
TELLS_THE_ANSWER = as_message(
    "metadata: names the column of the known label, which would then stand beside the record and tell whoever is asked"
)
NAMES_PEOPLE = as_message(
    "metadata: names the column of the contributor, who is stored as a keyed hash alone; leave it out"
)


def check_mapping(mapping: Mapping[str, Any]) -> None:
    """Refuse what cannot be a mapping; `InvalidUpload` names the key and the rule.

    `text`, `contributor`, `label` (a pool's are never read), `pixels` (a list) and `id` (the owner's) name columns, and
    `metadata` those that people read beside a record; `features` says for declared columns what the file calls them. Of
    delimited files `has_header`, the `columns` where there is none, `delimiter` and `quoting` say how they are written,
    and `skip_rows` how many rows go before, of any text its `encoding`, and `sheet` names one of a workbook. Of Label
    Studio's tasks `label` names a control, `answers` whether the majority counts or only what is marked as true,
    `annotator` whose count. `values` gives the class that another spelling of a label stands for, `separator` what
    stands between several labels in one cell, and `without_public` leaves rows of a pool out that public data hold,
    too.
    """
    if unknown := mapping.keys() - MAPPING_KEYS:
        raise InvalidUpload(as_message("mapping: knows no {unknown}", unknown=", ".join(sorted(map(str, unknown)))))
    for key in NAME_KEYS:
        if key in mapping and not (isinstance(mapping[key], str) and mapping[key]):
            if key == "annotator":
                raise InvalidUpload(as_message("{key}: must be a name", key=key))
            raise InvalidUpload(as_message("{key}: must be the name of a column", key=key))
    _check_reading(mapping)
    try:
        for text in _texts(mapping):
            check_storable(text)
    except BadCell as error:
        raise InvalidUpload(as_message("mapping: a name {reason}", reason=error.args[0])) from None
    kept = mapping.get("metadata", [])
    if not isinstance(kept, list | tuple) or not all(isinstance(name, str) and name for name in kept):
        raise InvalidUpload("metadata: must be a list of columns")
    if len(kept) > MOST_METADATA or len(set(kept)) < len(kept):
        raise InvalidUpload(as_message("metadata: takes {most} columns at most, each once", most=MOST_METADATA))
    for key, rule in TEXTS_BY_NAME.items():
        found = mapping.get(key, {})
        if not isinstance(found, Mapping) or not all(isinstance(one, str) and one for one in found.values()):
            raise InvalidUpload(rule)
    if mapping.get("answers", "majority") not in get_args(AnswersKept):
        raise InvalidUpload(as_message("answers: must be one of {possible}", possible=", ".join(get_args(AnswersKept))))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_texts, (*value, *value.values())))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_texts, value))


def _check_reading(mapping: Mapping[str, Any]) -> None:
    if mapping.get("encoding", Encoding.UTF_8) not in list(Encoding):
        raise InvalidUpload(as_message("encoding: must be one of {possible}", possible=", ".join(Encoding)))
    if "sheet" in mapping and not (isinstance(mapping["sheet"], str) and mapping["sheet"]):
        raise InvalidUpload("sheet: must be the name of a sheet")
    for key in ("has_header", "quoting", "without_public"):
        if not isinstance(mapping.get(key, True), bool):
            raise InvalidUpload(as_message("{key}: must be true or false", key=key))
    skipped = mapping.get("skip_rows", 0)
    if not isinstance(skipped, int) or isinstance(skipped, bool) or not 0 <= skipped <= MOST_SKIPPED:
        raise InvalidUpload(as_message("skip_rows: must be a whole number from 0 to {most}", most=MOST_SKIPPED))
    if mapping.get("decimal", ".") not in (".", ","):
        raise InvalidUpload("decimal: must be a point or a comma")
    missing = mapping.get("missing", [])
    if not isinstance(missing, list | tuple) or not all(isinstance(text, str) and text for text in missing):
        raise InvalidUpload("missing: must be a list of texts")
    columns = mapping.get("columns", [])
    if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
        raise InvalidUpload("columns: must be a list of names")
    for key in ("delimiter", "separator"):
        mark = mapping.get(key, ",")
        if not (isinstance(mark, str) and len(mark) == 1 and mark not in '"\r\n'):
            raise InvalidUpload(as_message("{key}: must be one character, neither a quote nor a line end", key=key))


def layout_of(project: Project, role: str, mapping: Mapping[str, Any]) -> Layout:
    check_mapping(mapping)
    pool = role == DatasetRole.POOL
    contributor = mapping.get("contributor") if pool else None
    protected = project.privacy_unit == PrivacyUnit.CONTRIBUTOR
    if pool and protected and not contributor:
        raise InvalidUpload("contributor: this project protects contributors, so a column must name them")
    if pool and ("answers" in mapping or "annotator" in mapping):
        raise InvalidUpload(
            "answers: those to a pool are never read, because which tasks were answered may tell of other records; "
            "bring answered tasks as public examples or as private examples that start the first model"
        )
    kind = label_type_of(project.question_kind, project.settings)
    if isinstance(kind, NamesSeveral) and role in (DatasetRole.PUBLIC_START, DatasetRole.CHARGED_START):
        raise InvalidUpload(
            "role: examples that start a model have one class each, and here a record may have several; words about "
            "the classes start it instead"
        )
    kept = {mapping["id"]} if "id" in mapping else set()
    kept |= {*mapping.get("metadata", ())}
    if kept and project.oracle == Oracle.CROWD:
        raise InvalidUpload(BEHIND_A_GATE)
    if not pool and mapping.get("label", "label") in kept:
        raise InvalidUpload(TELLS_THE_ANSWER)
    if mapping.get("contributor") in kept:
        raise InvalidUpload(NAMES_PEOPLE)
    declared = tuple(project.columns) if project.data_kind == DataKind.TABLE else ()
    features = dict(mapping.get("features", {}))
    if unknown := features.keys() - {column["name"] for column in declared}:
        raise InvalidUpload(
            as_message("features: the project declares no column named {unknown!r}", unknown=sorted(unknown)[0])
        )
    sources = [features.get(column["name"], column["name"]) for column in declared]
    if twice := next((name for name in sources if sources.count(name) > 1), None):
        raise InvalidUpload(as_message("features: two declared columns are read from {name!r}", name=twice))
    return Layout(
        kind=cast("Any", project.data_kind),
        text=mapping.get("text", "text") if project.data_kind == DataKind.TEXT else None,
        contributor=contributor,
        contributor_required=protected,
        label=None if pool else mapping.get("label", "label"),
        pixels=mapping.get("pixels"),
        classes=tuple(project.classes),
        declared=declared,
        height=project.image_height or 0,
        width=project.image_width or 0,
        colour=project.image_colours == "colour",
        has_header=mapping.get("has_header", True),
        header=tuple(mapping.get("columns", ())),
        delimiter=mapping.get("delimiter"),
        quoting=mapping.get("quoting", True),
        encoding=mapping.get("encoding"),
        sheet=mapping.get("sheet"),
        skip_rows=mapping.get("skip_rows", 0),
        decimal=mapping.get("decimal", "."),
        missing=tuple(mapping.get("missing", ())),
        owner_id=mapping.get("id"),
        metadata=tuple(mapping.get("metadata", ())),
        sources=features,
        answers=mapping.get("answers", "majority"),
        annotator=mapping.get("annotator"),
        sets=kind if isinstance(kind, NamesSeveral) else None,
        spelled=dict(mapping.get("values", {})),
        separator=mapping.get("separator", "|"),
        # Behind a gate people see what it counted, which is those values; those who see records see the picture.
        pictures=project.data_kind == DataKind.IMAGE and project.oracle == Oracle.TRUSTED,
    )


def look_at(file: Any, name: str, reading: Mapping[str, Any]) -> FileShape:
    file.seek(0)
    return shape_of(
        cast("BinaryIO", file),
        name,
        maximum_bytes=settings.UPLOAD_MAX_BYTES,
        has_header=reading.get("has_header", True),
        delimiter=reading.get("delimiter"),
        quoting=reading.get("quoting", True),
        encoding=reading.get("encoding"),
        sheet=reading.get("sheet"),
        skip_rows=reading.get("skip_rows", 0),
    )


def suggested_mapping(*, project: Project, role: str, shape: FileShape, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping of the last upload of its kind if it fits, else one guessed from the names alone."""
    kept = {key: value for key, value in reading.items() if key in READING_KEYS}
    if shape.delimiter:
        kept.setdefault("delimiter", shape.delimiter)
    controls = shape.controls
    last = Dataset.objects.filter(project=project, role=role).exclude(mapping={}).order_by("-pk").first()
    if last is not None and remembered(last.mapping, shape.columns, controls):
        return {key: value for key, value in last.mapping.items() if key not in READING_KEYS} | kept
    return guess_columns(shape.columns, _wanted(project, role), controls=controls) | kept


def _wanted(project: Project, role: str) -> Layout:
    """Return what an upload should have; a contributor only where one is needed, since each is a person's name."""
    pool = role == DatasetRole.POOL
    named = pool and project.privacy_unit == PrivacyUnit.CONTRIBUTOR
    mapping = {"contributor": "contributor"} if named else {}
    pixels = "pixels" if project.data_kind == DataKind.IMAGE else None
    return replace(layout_of(project, role, mapping), pixels=pixels)


def with_control(project: Project, role: str, file: Any, name: str, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with the one control that was answered, where a list of tasks leaves no other choice."""
    completed = dict(mapping)
    if role == DatasetRole.POOL or "label" in mapping:
        return completed
    file.seek(0)
    if (
        detect_format(cast("BinaryIO", file), name, mapping.get("encoding"), mapping.get("sheet")).format
        is Format.TASKS
    ):
        controls = look_at(file, name, mapping).controls
        if len(controls) == 1:
            completed["label"] = controls[0]
    return completed
