"""One JSON object a line."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat
from operator import itemgetter
from typing import Any

from dpal.errors import Unreadable
from dpal.reading.foreign import is_prodigy, row_of_prodigy
from dpal.reading.rows import BadRow, Layout, RawBatch
from dpal.reading.sources import TextSource
from dpal.wording import as_message

# Lines between two looks at whether a piece of the file is done.
STRIDE = 64
# What `json.loads` calls in the end. Where no value begins it stops an iteration, so results are counted.
SCAN: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
NOT_JSON = as_message("is not valid JSON")
NOT_AN_OBJECT = as_message("is not a JSON object")
NO_FIELD = as_message("is missing")


class JsonLinesReader:
    """Read objects line by line; one that `follows` begins in the middle of a file. `lines_read` counts lines."""

    def __init__(self, source: TextSource, layout: Layout, *, follows: bool = False) -> None:
        self._source = source
        self._layout = layout
        self._lines = enumerate(source.lines(), start=1)
        self.lines_read = 0
        self._first: tuple[int, str] | None = None
        if follows:
            return
        self._first = next(((number, line) for number, line in self._lines if line.strip()), None)
        if self._first is None:
            raise Unreadable("file: holds no rows")
        try:
            layout.require(list(read_object(self._first[1])))
        except ValueError as error:
            raise Unreadable(as_message("file: line {line} {reason}", line=self._first[0], reason=error)) from None

    def batches(self) -> Iterator[RawBatch]:
        held = [self._first] if self._first else []
        more = True
        while more:
            piece = self._source.chunks
            before = len(held)
            while self._source.chunks == piece:
                held.extend(islice(self._lines, STRIDE))
                if len(held) == before:
                    break
                before = len(held)
            more = self._source.chunks != piece
            self.lines_read = held[-1][0] if held else self.lines_read
            yield self._batch(held)
            held = []

    def _batch(self, lines: list[tuple[int, str]]) -> RawBatch:
        names = self._layout.columns()
        if (cells := _cells_at_once([line for _, line in lines], names)) is not None:
            return RawBatch([number for number, _ in lines], cells)
        batch = RawBatch([], {name: [] for name in names})
        required = set(names) - self._layout.optional
        for number, line in lines:
            if not line.isspace():
                _add(batch, number, line, required)
        return batch


def _cells_at_once(lines: list[str], names: Sequence[str]) -> dict[str, list[Any]] | None:
    try:
        read = list(map(SCAN, lines, repeat(0)))
        rows = [row for row, _ in read]
        if len(rows) < len(lines) or set(map(type, rows)) - {dict} or (rows and is_prodigy(rows[0])):
            return None
        if any(line[end:].strip() for line, (_, end) in zip(lines, read, strict=True)):
            return None
        return {name: list(map(itemgetter(name), rows)) for name in names}
    except (ValueError, RecursionError, KeyError):
        return None


def _add(batch: RawBatch, number: int, line: str, required: set[str]) -> None:
    try:
        row = read_object(line)
    except ValueError as error:
        batch.bad.append(BadRow(number, "", str(error)))
        return
    if not required <= row.keys():
        missing = next(name for name in batch.columns if name in required and name not in row)
        batch.bad.append(BadRow(number, missing, NO_FIELD))
        return
    batch.lines.append(number)
    for name, cells in batch.columns.items():
        cells.append(row.get(name))


def read_object(line: str) -> dict[str, Any]:
    row = read_row(line)
    if not isinstance(row, dict):
        raise ValueError(NOT_AN_OBJECT)
    return row


def read_row(line: str) -> Any:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        # The decoder's own message names a position, and its error carries the line.
        raise ValueError(NOT_JSON) from None
    return row_of_prodigy(row) if is_prodigy(row) else row
