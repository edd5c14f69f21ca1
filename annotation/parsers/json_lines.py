"""One JSON object a line."""

import json
from collections.abc import Iterator
from typing import Any

from annotation.errors import InvalidUpload
from annotation.parsers.rows import BadRow, Layout, RawBatch
from annotation.parsers.sources import TextSource

NOT_JSON = "is not valid JSON"
NOT_AN_OBJECT = "is not a JSON object"
NO_FIELD = "is missing"


class JsonLinesReader:
    """Read objects line by line; fields nobody asked for are passed over."""

    def __init__(self, source: TextSource, layout: Layout) -> None:
        self._source = source
        self._layout = layout
        self._lines = enumerate(source.lines(), start=1)
        self._first = next(((number, line) for number, line in self._lines if line.strip()), None)
        if self._first is None:
            raise InvalidUpload("file: holds no rows")
        try:
            layout.require(list(read_object(self._first[1])))
        except ValueError as error:
            raise InvalidUpload(f"file: line {self._first[0]} {error}") from None

    def batches(self) -> Iterator[RawBatch]:
        """Yield one batch for each piece of the file."""
        assert self._first is not None
        names = self._layout.columns()
        required = {name for name in names if name != self._layout.contributor}
        number, line = self._first
        piece = self._source.chunks
        batch = RawBatch([], {name: [] for name in names})
        self._add(batch, number, line, required)
        for number, line in self._lines:
            if self._source.chunks != piece:
                piece = self._source.chunks
                yield batch
                batch = RawBatch([], {name: [] for name in names})
            if not line.isspace():
                self._add(batch, number, line, required)
        yield batch

    def _add(self, batch: RawBatch, number: int, line: str, required: set[str]) -> None:
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
    """Return the object on one line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        # The decoder's own message names a position, and its error carries the line.
        raise ValueError(NOT_JSON) from None
    if not isinstance(row, dict):
        raise ValueError(NOT_AN_OBJECT)
    return row
