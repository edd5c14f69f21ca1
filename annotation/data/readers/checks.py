"""Rules that every row must pass, whatever file it came from."""

import math
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.errors import Unreadable
from dpal.features.table import DECIMAL_COMMA, with_point
from dpal.reading.cells import (
    EMPTY,
    NOT_TEXT,
    BadCell,
    all_texts_pass,
    check_storable,
    plain_names,
    read_contributor,
    read_text,
)
from dpal.reading.labels import NOT_A_CLASS, LabelNames
from dpal.reading.rows import BadRow, Layout, RawBatch, RowBatch
from dpal.spans.formats import read_row as spans_of_row
from dpal.spans.formats import spans_in
from dpal.spans.text import MAX_TOKENS, beyond_cut, written
from privacy.wording import as_message, as_plural_message

MAXIMUM_OWNER_LENGTH = 1_000
OWNER_TOO_LONG = as_message("is longer than {most:,} characters", most=MAXIMUM_OWNER_LENGTH)
NOT_A_NUMBER = as_message("is not a finite number")
COMMA = as_message("has a decimal comma; read the file with decimal “,”")
NOT_SPANS = as_message("holds no spans of the text, each with start, end and label")
NOT_DECLARED = as_message("is not a declared category")
WRONG_PIXELS = as_message("does not hold one whole number from 0 to 255 for each pixel")
WRONG_COLOURS = as_message("does not hold three whole numbers from 0 to 255 for each pixel")

Convert = Callable[[Any], Any]


def check_rows(raw: RawBatch, layout: Layout) -> RowBatch:
    bad: dict[int, BadRow] = {}

    def convert(name: str, rule: Convert) -> list[Any]:
        converted: list[Any] = []
        for index, cell in enumerate(raw.columns[name]):
            try:
                converted.append(rule(cell))
            except BadCell as error:
                bad.setdefault(index, BadRow(raw.lines[index], name, str(error)))
                converted.append(None)
        return converted

    texts = contributors = labels = payloads = pixels = metadata = None
    cut = 0
    if layout.text:
        cells = raw.columns[layout.text]
        texts = cells if all_texts_pass(cells) else convert(layout.text, read_text)
    if layout.kind == "table":
        columns = {
            column["name"]: convert(layout.source_of(column["name"]), _column_rule(column, layout))
            for column in layout.declared
        }
        payloads = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if layout.kind == "image":
        pixels = _pixels_of(raw, layout, bad)
    if layout.contributor:
        required = layout.contributor_required
        contributors = plain_names(raw.columns[layout.contributor]) or convert(
            layout.contributor, lambda cell: read_contributor(cell, required=required)
        )
    if layout.label and layout.spans:
        said = iter(texts or ())
        found = convert(layout.label, lambda cell: read_spans(next(said), cell, layout))
        labels, cut = [each and each[0] for each in found], sum(each[1] for each in found if each)
    elif layout.label:
        labels = convert(layout.label, label_rule(layout))
    if layout.owner_id or layout.metadata:
        kept = {name: convert(name, read_owner_cell) for name in (layout.owner_id, *layout.metadata) if name}
        metadata = [
            owners_columns(dict(zip(kept, row, strict=True)), layout) for row in zip(*kept.values(), strict=True)
        ]
    batch = RowBatch(len(raw.lines), texts, payloads, contributors, labels, pixels, metadata)
    if bad:
        batch = without(batch, bad.keys())
    batch.bad, batch.cut_spans = sorted([*raw.bad, *bad.values()], key=lambda row: row.line), cut
    return batch


def label_rule(layout: Layout) -> Convert:
    """Return the rule that makes a cell of labels the number that is stored."""
    names, sets, mark = LabelNames(layout.classes, layout.spelled), layout.sets, layout.separator
    return names.read if sets is None else lambda cell: names.read_set(cell, sets, separator=mark)


def read_spans(text: str | None, cell: Any, layout: Layout) -> tuple[str, int]:
    """Return the spans of a cell within the words that are labelled, as they are stored, and how many lie beyond."""
    try:
        named = [(start, end, layout.spelled.get(name, name)) for start, end, name in spans_in(cell)]
        row = spans_of_row({"text": text or "", "spans": named})
    except (KeyError, TypeError, ValueError, RecursionError, Unreadable):
        raise BadCell(NOT_SPANS) from None
    if any(span.type not in layout.classes for span in row.spans):
        raise BadCell(NOT_A_CLASS)
    kept = [span for span in row.spans if not beyond_cut(row.text, [span])]
    return written(kept), len(row.spans) - len(kept)


def cut_spans_words(number: int) -> str:
    """Say how many spans lie beyond the words that are labelled; empty if none do."""
    if not number:
        return ""
    return as_plural_message(
        "{n:,} span beyond the first {most} words left out",
        "{n:,} spans beyond the first {most} words left out",
        n=number,
        most=MAX_TOKENS,
    )


def without(batch: RowBatch, dropped: Container[int]) -> RowBatch:
    """Return a batch without some of its good rows."""
    kept = [index for index in range(batch.count) if index not in dropped]

    def pick(column: Sequence[Any] | None) -> list[Any] | None:
        return None if column is None else [column[index] for index in kept]

    pixels = None if batch.pixels is None else batch.pixels[kept]
    return RowBatch(
        len(kept),
        pick(batch.texts),
        pick(batch.payloads),
        pick(batch.contributors),
        pick(batch.labels),
        pixels,
        pick(batch.metadata),
        batch.bad,
        pick(batch.pictures),
    )


def owners_columns(cells: Mapping[str, str | None], layout: Layout) -> dict[str, Any]:
    """Return what is kept of a row: the owner's id, and pairs of name and text in the order they were declared."""
    return {
        "id": cells[layout.owner_id] if layout.owner_id else None,
        "columns": [[name, cells[name]] for name in layout.metadata],
    }


def read_owner_cell(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool) or not isinstance(cell, str | int | float | date | time | Decimal):
        if not isinstance(cell, bool):
            raise BadCell(NOT_TEXT)
        return "true" if cell else "false"
    text = cell.isoformat() if isinstance(cell, date | time) else str(cell)
    if len(text) > MAXIMUM_OWNER_LENGTH:
        raise BadCell(OWNER_TOO_LONG)
    check_storable(text)
    return text


def _column_rule(column: Mapping[str, Any], layout: Layout) -> Convert:
    may_be_empty, missing = column.get("missing") is not None, {text.strip() for text in layout.missing}

    def filled(rule: Convert) -> Convert:
        return lambda cell: rule(None if isinstance(cell, str) and cell.strip() in missing else cell)

    if "categories" in column:
        categories = {str(category) for category in column["categories"]}
        other = bool(column.get("other"))
        return filled(lambda cell: read_category(cell, categories, other=other, may_be_empty=may_be_empty))
    return filled(lambda cell: read_number(cell, may_be_empty=may_be_empty, decimal=layout.decimal))


def read_number(cell: Any, *, may_be_empty: bool, decimal: str = ".") -> float | int | None:
    """Return a finite number; one outside the declared bounds is kept, because features clip it."""
    if is_empty(cell):
        if may_be_empty:
            return None
        raise BadCell(EMPTY)
    if isinstance(cell, str) and "_" in cell:  # Python would read 1_000 as a number, nobody else does
        raise BadCell(NOT_A_NUMBER)
    if isinstance(cell, str) and decimal == ",":
        cell = with_point(cell)
    elif isinstance(cell, str) and DECIMAL_COMMA.fullmatch(cell.strip()):
        raise BadCell(COMMA)
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        raise BadCell(NOT_A_NUMBER) from None
    if not math.isfinite(number):
        raise BadCell(NOT_A_NUMBER)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def is_empty(cell: Any) -> bool:
    """Say whether a cell holds nothing; what libraries write for a missing number is nothing, too."""
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and cell != cell)


def read_category(cell: Any, categories: set[str], *, other: bool, may_be_empty: bool) -> str | None:
    if is_empty(cell):
        if may_be_empty:
            return None
        raise BadCell(EMPTY)
    name = str(cell) if isinstance(cell, str | int | float) else read_text(cell)
    if name in categories:
        return name
    if not other:
        raise BadCell(NOT_DECLARED)
    return read_text(name)


def _pixels_of(raw: RawBatch, layout: Layout, bad: dict[int, BadRow]) -> NDArray[np.uint8]:
    size = math.prod(layout.image_shape)
    rows: list[Any]
    if layout.pixels:
        rows = raw.columns[layout.pixels]
    else:
        rows = list(zip(*(raw.columns[f"pixel_{i}"] for i in range(size)), strict=True))
    images = np.zeros((len(rows), size), dtype=np.uint8)
    try:
        images[:] = read_pixels(rows, size)
    except BadCell:
        for index, row in enumerate(rows):
            try:
                images[index] = read_pixels([row], size)[0]
            except BadCell as error:
                reason = WRONG_COLOURS if layout.colour else str(error)
                bad.setdefault(index, BadRow(raw.lines[index], layout.pixels or "pixel_0", reason))
    return images.reshape(len(rows), *layout.image_shape)


def read_pixels(rows: Sequence[Any], size: int) -> NDArray[np.float64]:
    if not rows:
        return np.zeros((0, size))
    try:
        values = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BadCell(WRONG_PIXELS) from None
    if values.ndim > 2:
        values = values.reshape(len(rows), -1)
    if values.shape != (len(rows), size) or not np.all((values >= 0) & (values <= 255) & (values == np.floor(values))):
        raise BadCell(WRONG_PIXELS)
    return values
