"""CSV, TSV and their relatives, row by row, each row with the line it began on."""

import csv
from collections.abc import Iterator
from itertools import chain
from typing import Any

from annotation.errors import InvalidUpload
from annotation.parsers.rows import BadRow, Layout, RawBatch
from annotation.parsers.sources import TextSource

DELIMITERS = (",", "\t", ";", "|")
REASONS = (
    ("unexpected end of data", "a quote is opened and never closed"),
    ("field larger", f"a field is longer than {csv.field_size_limit():,} characters"),
    ("expected after", "a quote is closed in the middle of a field"),
)
WRONG_COUNT = "has {found} fields where the header names {wanted}"


class DelimitedReader:
    """Read rows whose fields are separated by one character.

    Where a quote is closed wrongly nobody can say how the lines it spans fall into rows, so all of them are bad and
    none is guessed. Once such a quote has swallowed more than a field may hold, the whole file is refused.
    """

    def __init__(self, source: TextSource, layout: Layout, *, default_delimiter: str = ",") -> None:
        self._source = source
        self._layout = layout
        self._lines = source.lines()
        self._lines_before = 0
        self._header = self._find_header(default_delimiter)
        layout.require(self._header)

    def batches(self) -> Iterator[RawBatch]:
        """Yield one batch for each piece of the file."""
        reader = self._open(self._lines, self._delimiter)
        offset, end, wanted = self._lines_before, 0, len(self._header)
        rows: list[list[str]] = []
        lines: list[int] = []
        bad: list[BadRow] = []
        piece = self._source.chunks
        while True:
            try:
                for row in reader:
                    start, end = end + 1, reader.line_num
                    if len(row) == wanted:
                        rows.append(row)
                        lines.append(start + offset)
                    elif row:  # an empty line is no row
                        bad.append(BadRow(start + offset, "", WRONG_COUNT.format(found=len(row), wanted=wanted)))
                    if self._source.chunks != piece:
                        piece = self._source.chunks
                        yield self._batch(rows, lines, bad)
                        rows, lines, bad = [], [], []
                break
            except csv.Error as error:
                start, end = end + 1, reader.line_num
                bad += self._unreadable(str(error), start + offset, end + offset)
        yield self._batch(rows, lines, bad)

    def _batch(self, rows: list[list[str]], lines: list[int], bad: list[BadRow]) -> RawBatch:
        place = {name: index for index, name in enumerate(self._header)}
        columns = {name: [row[place[name]] for row in rows] for name in self._layout.columns()}
        return RawBatch(lines, columns, bad)

    def _unreadable(self, message: str, start: int, end: int) -> list[BadRow]:
        reason = next((reason for part, reason in REASONS if part in message), "cannot be split into fields")
        if end > start and "field larger" in message:
            raise InvalidUpload(
                f"file: the quote opened on line {start} is not closed within {csv.field_size_limit():,} characters, "
                "so nobody can say where the rows after it begin; mend that line, or read the file without quoting"
            )
        return [BadRow(line, "", reason) for line in range(start, end + 1)]

    def _find_header(self, default_delimiter: str) -> list[str]:
        """Read the header and settle the delimiter: the first that splits the header into all columns asked for."""
        layout = self._layout
        first = ""
        while not first.strip("\r\n"):
            line = next(self._lines, None)
            if line is None:
                raise InvalidUpload("file: holds no rows")
            first = line
            self._lines_before += 1
        if not layout.has_header:
            self._delimiter = layout.delimiter or default_delimiter
            self._lines = chain([first], self._lines)
            self._lines_before -= 1
            return list(layout.header) or self._numbered(first)
        candidates = [layout.delimiter] if layout.delimiter else [default_delimiter, *DELIMITERS]
        headers = {delimiter: self._split(first, delimiter) for delimiter in candidates}
        wanted = set(layout.columns())
        self._delimiter = next((key for key, names in headers.items() if wanted <= set(names)), candidates[0])
        return headers[self._delimiter]

    def _numbered(self, first: str) -> list[str]:
        """Name the columns 1, 2, ... by their place; a single column needs no name to be found."""
        names = [str(place) for place in range(1, len(self._split(first, self._delimiter)) + 1)]
        wanted = self._layout.columns()
        return list(wanted) if len(names) == len(wanted) == 1 else names

    def _split(self, line: str, delimiter: str) -> list[str]:
        try:
            return [name.strip() for name in next(self._open(iter([line]), delimiter), [])]
        except csv.Error:
            return []  # quotes that make no sense to this delimiter do to another

    def _open(self, lines: Iterator[str], delimiter: str) -> Any:
        if self._layout.quoting:
            return csv.reader(lines, delimiter=delimiter, strict=True)
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
