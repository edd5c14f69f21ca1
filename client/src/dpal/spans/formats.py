"""Texts with spans as other tools write them, read and written without loss."""

# A row is ``{"text": str, "spans": [{"start": int, "end": int, "label": str}, ...]}``, offsets in code points.

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dpal.errors import Unreadable
from dpal.spans.text import Span, canonical
from dpal.wording import as_message

# Control and field as Label Studio's template for named entities calls them.
CONTROL, FIELD = "label", "text"
# Fields of a row that may hold its spans.
FIELDS = ("spans", "entities", "label", "labels")
# What a CoNLL file is cut into: words and single signs.
PIECE = re.compile(r"\w+|[^\w\s]")
TEXT_LINE, BEGINS, INSIDE, OUTSIDE = "# text = ", "B-", "I-", "O"


class SpannedText(NamedTuple):
    text: str
    spans: tuple[Span, ...]


def plain_spans(spans: Iterable[Span]) -> list[dict[str, Any]]:
    return [{"start": span.start, "end": span.end, "label": span.type} for span in spans]


def read_row(row: Any) -> SpannedText:
    """Return the text and spans of one row of JSONL, doccano, Prodigy, spaCy or Label Studio; `Unreadable` if none."""
    try:
        text, spans = _row(row)
        if not isinstance(text, str):
            raise Unreadable("text: is no text")
        return SpannedText(text, canonical((Span(*one) for one in spans), text=text))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unreadable("spans: are no spans of the text, each with start, end and label") from error


def spans_in(cell: Any) -> list[tuple[int, int, str]]:
    """Return the spans in a cell, a list or its JSON; `KeyError`, `TypeError` or `ValueError` if it holds others."""
    held = json.loads(cell) if isinstance(cell, str) and cell.strip() else cell
    if held and not isinstance(held, list | tuple):
        raise TypeError("spans are a list")
    return [_triple(one) for one in held or ()]


def _row(row: Any) -> tuple[Any, list[tuple[int, int, str]]]:
    match row:
        case [text, {"entities": list() as entities}]:
            return text, [_triple(one) for one in entities]
        case {"data": Mapping() as data}:
            return data[FIELD], label_studio_spans(row)
        case {"text": text, **others}:
            held: Any = next((others[name] for name in FIELDS if name in others), None)
            return text, [_triple(one) for one in held or []]
    raise Unreadable("row: holds no text with spans")


def _triple(one: Any) -> tuple[int, int, str]:
    if isinstance(one, Mapping):
        start, end = one.get("start", one.get("start_offset")), one.get("end", one.get("end_offset"))
        one = (start, end, one["label"])
    start, end, label = one
    if not (type(start) is type(end) is int and isinstance(label, str) and label):
        raise ValueError("a span has two whole numbers and a label")
    return start, end, label


def label_studio_spans(task: Mapping[str, Any], control: str | None = None) -> list[tuple[int, int, str]]:
    """Return the spans of the newest annotation of a task that was not taken back, of one control or of all."""
    annotations = task.get("annotations", task.get("completions")) or []
    kept = [one for one in annotations if not one.get("was_cancelled")]
    newest: Any = max(kept, key=lambda one: str(one.get("updated_at") or one.get("created_at") or ""), default={})
    return [
        (item["value"]["start"], item["value"]["end"], label)
        for item in newest.get("result") or []
        if item.get("type") == "labels" and control in (None, item.get("from_name"))
        for label in item["value"]["labels"]
    ]


def write_jsonl(row: SpannedText) -> dict[str, Any]:
    return {"text": row.text, "spans": plain_spans(row.spans)}


def write_doccano(row: SpannedText) -> dict[str, Any]:
    return {"text": row.text, "label": [[span.start, span.end, span.type] for span in row.spans]}


def write_prodigy(row: SpannedText) -> dict[str, Any]:
    return {**write_jsonl(row), "answer": "accept", "_view_id": "ner_manual"}


def write_spacy(row: SpannedText) -> list[Any]:
    return [row.text, {"entities": [[span.start, span.end, span.type] for span in row.spans]}]


def write_label_studio(row: SpannedText) -> dict[str, Any]:
    results = [
        {
            "from_name": CONTROL,
            "to_name": FIELD,
            "type": "labels",
            "value": {
                "start": span.start,
                "end": span.end,
                "text": row.text[span.start : span.end],
                "labels": [span.type],
            },
        }
        for span in row.spans
    ]
    return {"data": {FIELD: row.text}, "annotations": [{"result": results}]}


WRITERS: dict[str, Callable[[SpannedText], Any]] = {
    "jsonl": write_jsonl,
    "doccano": write_doccano,
    "prodigy": write_prodigy,
    "spacy": write_spacy,
    "label_studio": write_label_studio,
}


def write_conll(rows: Iterable[SpannedText]) -> Iterator[str]:
    """Yield the lines of a CoNLL file: a comment with the text as JSON, then a piece and its BIO tag a line.

    `ValueError` if spans are refused by `canonical`.
    """
    for row in rows:
        yield TEXT_LINE + json.dumps(row.text, ensure_ascii=True)
        for start, end, tag in _pieces(row):
            yield f"{row.text[start:end]}\t{tag}"
        yield ""


def _pieces(row: SpannedText) -> Iterator[tuple[int, int, str]]:
    done = 0
    for span in canonical(row.spans, text=row.text):
        yield from ((*piece, OUTSIDE) for piece in _cut(row.text, done, span.start))
        for number, piece in enumerate(_cut(row.text, span.start, span.end)):
            yield (*piece, (INSIDE if number else BEGINS) + span.type)
        done = span.end
    yield from ((*piece, OUTSIDE) for piece in _cut(row.text, done, len(row.text)))


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    return ((found.start() + start, found.end() + start) for found in PIECE.finditer(text[start:end]))


def read_conll(lines: Iterable[str]) -> Iterator[SpannedText]:
    """Yield the texts of a CoNLL file, whose first column is a word and whose last is its tag.

    A comment with the text says how words are set; without one there is a space between them. Document marks are left
    out. `Unreadable` names the line of a tag that is none.
    """
    text: str | None = None
    words: list[tuple[str, str]] = []
    for number, line in enumerate([*lines, ""], start=1):
        stripped = line.rstrip("\r\n")
        if stripped.startswith(TEXT_LINE):
            text = _text_of(stripped.removeprefix(TEXT_LINE))
        elif stripped.strip() and not (stripped.startswith("# ") and not words):
            columns = stripped.split("\t") if "\t" in stripped else stripped.split()
            tag = columns[-1]
            if len(columns) < 2 or not (tag == OUTSIDE or (tag[:2] in (BEGINS, INSIDE) and len(tag) > 2)):
                raise Unreadable(as_message("line {line}: has no word with a BIO tag", line=number))
            if columns[0] != "-DOCSTART-":
                words.append((columns[0], tag))
        elif not stripped.strip() and (words or text is not None):
            yield _spanned(text, words)
            text, words = None, []


def _text_of(written: str) -> str:
    if written.startswith('"'):
        try:
            return str(json.loads(written))
        except ValueError:
            pass
    return written


def _spanned(text: str | None, words: list[tuple[str, str]]) -> SpannedText:
    text = " ".join(word for word, _tag in words) if text is None else text
    found: list[Span] = []
    done, open_type = 0, ""
    for word, tag in words:
        start = text.find(word, done)
        if start < 0:
            raise Unreadable("text: the comment with the text lacks a word of its lines")
        done, kind = start + len(word), tag[2:]
        if tag.startswith(INSIDE) and kind == open_type:
            found[-1] = Span(found[-1].start, done, kind)
        elif tag != OUTSIDE:
            found.append(Span(start, done, kind))
        open_type = kind
    return SpannedText(text, canonical(found, text=text))
