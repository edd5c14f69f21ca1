"""CSV, TSV and their relatives, row by row, each row with the line it began on."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, repeat
from operator import attrgetter, itemgetter, methodcaller

from dpal.errors import Unreadable
from dpal.reading.formulas import QUOTE, unprotected
from dpal.reading.heads import UNENDED, csv_rows, read_head
from dpal.reading.rows import BadRow, Layout, RawBatch
from dpal.reading.sources import TextSource
from dpal.wording import as_message, as_plural_message

# Rows between two looks at whether a piece of the file is done.
STRIDE = 64
QUOTED = methodcaller("startswith", QUOTE)
DELIMITERS = (",", "\t", ";", "|")
AT_THE_END = UNENDED
REASONS = (
    (AT_THE_END, as_message("a quote is opened and never closed")),
    (
        "field larger",
        as_message("a field is longer than {most:,} characters", most=csv.field_size_limit()),
    ),
    ("expected after", as_message("a quote is closed in the middle of a field")),
)
UNREADABLE = as_message("cannot be split into fields")


class DelimitedReader:
    """Read rows whose fields are separated by one character, from the middle of a file where a `header` is given.

    Lines that a wrongly closed quote spans are all bad; one that swallows more than a field refuses the file.
    """

    def __init__(
        self,
        source: TextSource,
        layout: Layout,
        *,
        default_delimiter: str = ",",
        header: list[str] | None = None,
    ) -> None:
        self._source = source
        self._layout = layout
        self._lines = source.lines()
        self._lines_before = 0
        self.lines_read = 0
        self.ends_within = False
        self.delimiter = default_delimiter
        self.header = self._find_header(default_delimiter) if header is None else header
        if header is None:
            layout.require(self.header)

    def take_all(self) -> list[str]:
        """Read every column, those without a name by their place; return their names."""
        self.header = [name or str(place) for place, name in enumerate(self.header, start=1)]
        self._layout = replace(self._layout, metadata=tuple(self.header))
        self._layout.require(self.header)
        return self.header

    def batches(self) -> Iterator[RawBatch]:
        reader = csv_rows(self._lines, self.delimiter, quoting=self._layout.quoting)
        # Rows and the lines they end on without a step of Python between them: nearly all rows are good.
        ended = zip(reader, map(attrgetter("line_num"), repeat(reader)), strict=False)
        found: list[tuple[list[str], int]] = []
        end, more = 0, True
        piece = self._source.chunks
        while more:
            before = len(found)
            try:
                found.extend(islice(ended, STRIDE))
                more = len(found) > before
            except csv.Error as error:  # the rows before it are in `found`
                self.ends_within = AT_THE_END in str(error)
                batch = self._batch(found, end)
                end = found[-1][1] if found else end
                wrong = self._unreadable(str(error), end + 1 + self._lines_before, reader.line_num + self._lines_before)
                batch.bad += wrong
                found, end = [], reader.line_num
                yield batch
            if not more or self._source.chunks != piece:
                piece = self._source.chunks
                yield self._batch(found, end)
                end = found[-1][1] if found else end
                found = []
        self.lines_read = reader.line_num + self._lines_before

    def _batch(self, found: list[tuple[list[str], int]], end: int) -> RawBatch:
        """Return rows, with the lines they end on, as cells; `end` is the line on which what came before ended."""
        bad: list[BadRow] = []
        rows = [row for row, _ in found]
        lines = [line + 1 + self._lines_before for line in (end, *(line for _, line in found[:-1]))][: len(rows)]
        wanted = len(self.header)
        if set(map(len, rows)) - {wanted}:
            # Separators after the last cell make no column.
            if self._layout.ragged_rows:
                rows = [row and [*row[:wanted], *[""] * (wanted - len(row))] for row in rows]
            rows = [row if any(row[wanted:]) else row[:wanted] for row in rows]
            for row, line in zip(rows, lines, strict=True):
                if row and len(row) != wanted:  # an empty line is no row
                    bad.append(
                        BadRow(
                            line,
                            "",
                            as_plural_message(
                                "has {n} field where the header names {wanted}",
                                "has {n} fields where the header names {wanted}",
                                n=len(row),
                                wanted=wanted,
                            ),
                        )
                    )
            kept = [(row, line) for row, line in zip(rows, lines, strict=True) if len(row) == wanted]
            rows, lines = [row for row, _ in kept], [line for _, line in kept]
        place = {name: index for index, name in enumerate(self.header)}
        columns = {name: list(map(itemgetter(place[name]), rows)) for name in self._layout.columns()}
        for name, cells in columns.items():
            if any(map(QUOTED, cells)):
                columns[name] = list(map(unprotected, cells))
        return RawBatch(lines, columns, bad)

    def _unreadable(self, message: str, start: int, end: int) -> list[BadRow]:
        reason = next((reason for part, reason in REASONS if part in message), UNREADABLE)
        if end > start and "field larger" in message:
            raise Unreadable(
                as_message(
                    "file: the quote opened on line {start} is not closed within {most:,} "
                    "characters; close it, or turn quoting off",
                    start=start,
                    most=csv.field_size_limit(),
                )
            )
        return [BadRow(line, "", reason) for line in range(start, end + 1)]

    def _find_header(self, default_delimiter: str) -> list[str]:
        layout = self._layout
        wanted = set(layout.columns())
        candidates = [layout.delimiter] if layout.delimiter else [default_delimiter, *DELIMITERS]
        head, self._lines = read_head(
            self._lines,
            candidates if layout.has_header else candidates[:1],
            wanted=wanted,
            has_header=layout.has_header,
            quoting=layout.quoting,
            skip=layout.skip_rows,
            is_given=layout.delimiter is not None,
        )
        self.delimiter, self._lines_before = head.delimiter, head.lines
        if layout.has_header:
            return head.names
        names = [str(place) for place in range(1, len(head.names) + 1)]
        return list(layout.header) or (list(layout.columns()) if len(names) == len(wanted) == 1 else names)
