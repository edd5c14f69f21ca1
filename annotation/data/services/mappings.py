"""Mappings of columns: checked, suggested from what is known, and turned into what a reader takes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO, cast, get_args

from django.conf import settings

from annotation.choices.label_types.base import NamesSeveral, Teaching
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
from privacy.wording import Message, as_message, in_english

READING_KEYS = frozenset({"has_header", "columns", "delimiter", "quoting", "encoding", "sheet", "skip_rows"})
NAME_KEYS = ("text", "contributor", "label", "id", "pixels", "annotator", "sheet")
CELL_KEYS = ("ragged_rows", "values", "separator", "decimal", "missing", "one_hot")
MAPPING_KEYS = READING_KEYS | {*NAME_KEYS, *CELL_KEYS, "features", "answers", "metadata", "without_public"}
# The column that the reader makes of several.
ONE_HOT = "one_hot"
MOST_METADATA = 20
MOST_SKIPPED = 100
TEXTS_BY_NAME = {
    "features": "features: must name a column of the file for each declared column",
    "values": "values: must name a class for each value",
}


BEHIND_A_GATE = as_message("metadata: behind a gate no question knows its record")
TELLS_THE_ANSWER = as_message("metadata: leave out the column of the known label; annotators would see it")
NAMES_PEOPLE = as_message("metadata: leave out the contributor column; contributors are stored as keyed hashes only")


def check_mapping(mapping: Mapping[str, Any]) -> None:
    """Refuse what cannot be a mapping; `InvalidUpload` names the key and the rule.

    `text`, `contributor`, `label` (a pool's are never read), `pixels` (a list) and `id` (the owner's) name columns, and
    `metadata` those that people read beside a record; `features` says for declared columns what the file calls them. Of
    delimited files `has_header`, the `columns` where there is none, `delimiter` and `quoting` say how they are written,
    `skip_rows` how many rows go before and `ragged_rows` whether rows may have too few or too many cells; `encoding` is
    that of a text, and `sheet` names one of a workbook. Of Label Studio's tasks `label` names a control, `answers`
    whether the majority counts or only what is marked as true, `annotator` whose count. `values` gives
    the class that another spelling of a label stands for, `separator` what stands between several labels in one cell,
    `one_hot` columns of 0 and 1 that are called like the classes, and `without_public` leaves rows of a pool out that
    public data hold, too.
    """
    if unknown := mapping.keys() - MAPPING_KEYS:
        raise InvalidUpload(in_english("mapping: knows no {unknown}", unknown=", ".join(sorted(map(str, unknown)))))
    for key in NAME_KEYS:
        if key in mapping and not (isinstance(mapping[key], str) and mapping[key]):
            raise InvalidUpload(in_english("{key}: must be a name", key=key))
    _check_reading(mapping)
    try:
        for text in _texts(mapping):
            check_storable(text)
    except BadCell as error:
        raise InvalidUpload(in_english("mapping: a name {reason}", reason=error.args[0])) from None
    _check_lists(mapping)
    kept = mapping.get("metadata", [])
    if len(kept) > MOST_METADATA or len(set(kept)) < len(kept):
        raise InvalidUpload(in_english("metadata: takes {most} columns at most, each once", most=MOST_METADATA))
    for key, rule in TEXTS_BY_NAME.items():
        found = mapping.get(key, {})
        if not isinstance(found, Mapping) or not all(isinstance(one, str) and one for one in found.values()):
            raise InvalidUpload(rule)
    if mapping.get("answers", "majority") not in get_args(AnswersKept):
        raise InvalidUpload(_one_of("answers", get_args(AnswersKept)))


def _one_of(key: str, possible: Iterable[str]) -> Message:
    return in_english("{key}: must be one of {possible}", key=key, possible=" ".join(possible))


def _check_lists(mapping: Mapping[str, Any]) -> None:
    for key in ("metadata", "one_hot"):
        columns = mapping.get(key, [])
        if not isinstance(columns, list | tuple) or not all(isinstance(name, str) and name for name in columns):
            raise InvalidUpload(in_english("{key}: must be a list of names", key=key))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_texts, (*value, *value.values())))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_texts, value))


def _check_reading(mapping: Mapping[str, Any]) -> None:
    if mapping.get("encoding", Encoding.UTF_8) not in list(Encoding):
        raise InvalidUpload(_one_of("encoding", Encoding))
    for key in ("has_header", "quoting", "ragged_rows", "without_public"):
        if not isinstance(mapping.get(key, True), bool):
            raise InvalidUpload(in_english("{key}: must be true or false", key=key))
    skipped = mapping.get("skip_rows", 0)
    if not isinstance(skipped, int) or isinstance(skipped, bool) or not 0 <= skipped <= MOST_SKIPPED:
        raise InvalidUpload(in_english("skip_rows: must be a whole number from 0 to {most}", most=MOST_SKIPPED))
    if mapping.get("decimal", ".") not in (".", ","):
        raise InvalidUpload(_one_of("decimal", ".,"))
    for key in ("missing", "columns"):
        names = mapping.get(key, [])
        is_list = isinstance(names, list | tuple)
        # A column may have no name; an empty cell is a missing value anyway.
        if not is_list or not all(isinstance(name, str) and (name or key == "columns") for name in names):
            raise InvalidUpload(in_english("{key}: must be a list of names", key=key))
    for key in ("delimiter", "separator"):
        mark = mapping.get(key, ",")
        if not (isinstance(mark, str) and len(mark) == 1 and mark not in '"\r\n'):
            raise InvalidUpload(in_english("{key}: must be one character, neither a quote nor a line end", key=key))


def layout_of(project: Project, role: str, mapping: Mapping[str, Any]) -> Layout:
    check_mapping(mapping)
    pool = role == DatasetRole.POOL
    contributor = mapping.get("contributor") if pool else None
    protected = project.privacy_unit == PrivacyUnit.CONTRIBUTOR
    if pool and protected and not contributor:
        raise InvalidUpload("contributor: this project protects contributors, so a column must name them")
    if pool and ("answers" in mapping or "annotator" in mapping):
        raise InvalidUpload("answers: a pool's answers may reveal other records; import answered tasks as examples")
    kind = label_type_of(project.question_kind, project.settings)
    spans = kind.teaches == Teaching.SPANS
    if (spans or isinstance(kind, NamesSeveral)) and role in (DatasetRole.PUBLIC_START, DatasetRole.CHARGED_START):
        raise InvalidUpload("role: examples have one class each; use words about the classes instead")
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
            in_english("features: the project declares no column named {unknown!r}", unknown=sorted(unknown)[0])
        )
    # Columns that say it go before one that names it.
    one_hot = () if pool else tuple(mapping.get("one_hot", ()))
    sources = [features.get(column["name"], column["name"]) for column in declared]
    if twice := next((name for name in sources if sources.count(name) > 1), None):
        raise InvalidUpload(in_english("features: two declared columns are read from {name!r}", name=twice))
    return Layout(
        kind=cast("Any", project.data_kind),
        text=mapping.get("text", "text") if project.data_kind == DataKind.TEXT else None,
        contributor=contributor,
        contributor_required=protected,
        label=None if pool else ONE_HOT if one_hot else mapping.get("label", "label"),
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
        ragged_rows=mapping.get("ragged_rows", False),
        decimal=mapping.get("decimal", "."),
        missing=tuple(mapping.get("missing", ())),
        owner_id=mapping.get("id"),
        metadata=tuple(mapping.get("metadata", ())),
        sources=features,
        answers=mapping.get("answers", "majority"),
        annotator=mapping.get("annotator"),
        sets=kind if isinstance(kind, NamesSeveral) else None,
        spans=spans,
        spelled=project.renamed_classes
        | {label: project.renamed_classes.get(name, name) for label, name in mapping.get("values", {}).items()},
        one_hot=one_hot,
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
