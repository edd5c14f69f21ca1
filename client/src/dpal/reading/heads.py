"""First lines of a delimited file: marks, `sep=`, rows to skip, comments and the record that names the columns."""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from dpal.errors import Unreadable
from dpal.reading.formulas import unprotected

MARK = "\ufeff"
# Characters of a cell, as of a page of HTML in a column that is not read.
csv.field_size_limit(1_000_000)
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
COMMENT = "#"
# Lines that the names of columns may take, with line breaks in quotes.
MOST_LINES = 64
UNENDED = "unexpected end of data"


class Head(NamedTuple):
    """Names of the columns, the separator, and the number of lines before the first row."""

    names: list[str]
    delimiter: str
    lines: int


def read_head(
    lines: Iterator[str],
    candidates: Sequence[str],
    *,
    wanted: Collection[str] = (),
    has_header: bool = True,
    quoting: bool = True,
    skip: int = 0,
    is_given: bool = False,
) -> tuple[Head, Iterator[str]]:
    """Return the head of a file and an iterator over the lines after it, of which a first row is one without a header.

    Of several separators that one is taken which gives all `wanted` names, else the one that makes most columns. The
    line `sep=` chooses one unless it `is_given`.

    Raises
    ------
    Unreadable
        If there is no line left.
    """
    ahead = _Ahead(lines)
    first = ahead.filled().lstrip(MARK)
    if not first.strip("\r\n"):
        first = ahead.filled()
    if found := SEPARATOR_LINE.fullmatch(first.strip("\r\n")):
        candidates = candidates if is_given else [found[1]]
        first = ahead.filled()
    for _ in range(skip):
        first = ahead.filled()
    while has_header and first.startswith(COMMENT) and is_comment(first, ahead.following(), candidates):
        first = ahead.filled()
    record = [first, *ahead.held(MOST_LINES)]
    split = {delimiter: split_record(record, delimiter, quoting=quoting) for delimiter in candidates}
    fitting = next((key for key, (names, _) in split.items() if wanted and set(wanted) <= set(names)), None)
    delimiter = fitting or max(split, key=lambda key: len(split[key][0]))
    names, taken = split[delimiter]
    if not has_header:
        return Head(names, delimiter, ahead.taken - 1), chain([first], ahead.rest())
    for _ in range(taken - 1):
        ahead.take()
    return Head(names, delimiter, ahead.taken), ahead.rest()


class _Ahead:
    """Lines that can be looked at before they are taken."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._held = lines, list[str]()
        self.taken = 0

    def held(self, most: int) -> list[str]:
        self._held += islice(self._lines, most - len(self._held))
        return self._held

    def following(self) -> str:
        return next((line for line in self.held(MOST_LINES) if line.strip("\r\n")), "")

    def take(self) -> str:
        if not self.held(max(1, len(self._held))):
            raise Unreadable("file: holds no rows")
        self.taken += 1
        return self._held.pop(0)

    def filled(self) -> str:
        while not (line := self.take()).strip("\r\n"):
            continue
        return line

    def rest(self) -> Iterator[str]:
        return chain(self._held, self._lines)


def is_comment(first: str, following: str, candidates: Sequence[str]) -> bool:
    """Say whether a line that begins with `#` names nothing: it has fewer cells than the next, or a space after it."""
    marks = [mark for mark in candidates if mark in following]
    if not marks:
        return bool(following) and first.startswith(f"{COMMENT} ")
    return all(len(split_record([first], mark)[0]) < len(split_record([following], mark)[0]) for mark in marks)


def split_record(lines: Sequence[str], delimiter: str, *, quoting: bool = True) -> tuple[list[str], int]:
    """Return the cells of the record that some lines begin with and how many lines it takes; none if it is broken."""
    reader = csv_rows(iter(lines), delimiter, quoting=quoting)
    try:
        return [unprotected(name.strip().replace("\r\n", "\n")) for name in next(reader, [])], reader.line_num
    except csv.Error:
        return [], 1  # quotes that make no sense to this delimiter do to another


def csv_rows(lines: Iterator[str], delimiter: str, *, quoting: bool) -> Any:
    if quoting:
        return csv.reader(lines, delimiter=delimiter, strict=True)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
