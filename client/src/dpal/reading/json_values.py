"""Rows of a JSON file: a list, an object that holds one, columns as lists, or objects one after another."""

import json
import re
from collections.abc import Iterator
from typing import Any

from dpal.errors import Unreadable
from dpal.reading.foreign import row_of_pair
from dpal.reading.sources import TextSource
from dpal.wording import as_message

MAXIMUM_VALUE_CHARACTERS = 8 * 1024 * 1024
# An object that holds the whole file is held whole.
MAXIMUM_OBJECT_CHARACTERS = 32 * 1024 * 1024
DECODER = json.JSONDecoder()
WHITESPACE = re.compile(r"[ \t\r\n]*")
FIRST = '{"text": "first", "label": "a"}'


def json_rows(source: TextSource) -> Iterator[Any]:
    """Yield the rows of a file whose first sign is `[` or `{`, one after another in bounded memory.

    Raises
    ------
    Unreadable
        If the JSON is broken, or of a form that has no rows.
    """
    text = _Text(source)
    if text.sign() == "[":
        text.at += 1
        yield from map(_row, _items(text))
        if text.sign():
            raise broken_list(text.count)
        return
    first = text.value(MAXIMUM_OBJECT_CHARACTERS)
    if text.sign():
        yield first
        while text.sign():
            yield text.value(MAXIMUM_VALUE_CHARACTERS)
        return
    yield from map(_row, rows_of_object(first, text.count))


def rows_of_object(held: Any, count: int = 1) -> list[Any]:
    """Return the rows of an object that is a whole file.

    Raises
    ------
    Unreadable
        If it holds several lists of rows, or none.
    """
    if not isinstance(held, dict):
        raise broken_list(count - 1)
    lists = {str(name): value for name, value in held.items() if isinstance(value, list)}
    held_in = {name: {type(cell) for cell in value} for name, value in lists.items()}
    if lists and not any(dict in types for types in held_in.values()):
        # A column of sets holds lists; lists of rows hold nothing else.
        is_column = any(list not in types for types in held_in.values())
        if is_column and len(lists) == len(held) and len({len(value) for value in lists.values()}) == 1:
            return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]
        if is_column:
            return [held]
    by_row = [value for value in held.values() if isinstance(value, dict)]
    if len(by_row) == len(held) > 1 and len({tuple(value) for value in by_row}) == 1:
        return [
            {name: column[row] for name, column in held.items()}
            for row in by_row[0]
            if not isinstance(by_row[0][row], dict | list)
        ]
    rows = {name: value for name, value in lists.items() if any(isinstance(cell, dict | list) for cell in value)}
    if len(rows) > 1:
        raise Unreadable(
            as_message(
                "file: is an object with several lists ({names}); save one of them with an "
                "object a line, such as {first}",
                names=", ".join(list(rows)[:10]),
                first=FIRST,
            )
        )
    # A task of Label Studio is an object with lists, too.
    return next(iter(rows.values())) if rows and "annotations" not in rows and "spans" not in rows else [held]


def _items(text: "_Text") -> Iterator[Any]:
    if text.sign() == "]":
        text.at += 1
        return
    while True:
        yield text.value(MAXIMUM_VALUE_CHARACTERS)
        sign = text.sign()
        text.at += 1
        if sign == "]":
            return
        if sign != ",":
            raise broken_list(text.count)


def _row(value: Any) -> Any:
    return row_of_pair(value) if isinstance(value, list) else value


def broken_list(count: int) -> Unreadable:
    return Unreadable(as_message("file: not valid JSON, or cut off, after task {count}", count=count))


class _Text:
    """A file's text from a place on, read as far as a value needs it."""

    def __init__(self, source: TextSource) -> None:
        self._pieces = source.text()
        self._text = ""
        self.at = self.count = 0

    def sign(self) -> str:
        """Return the next sign that is no white space; empty at the end."""
        while True:
            self.at = WHITESPACE.match(self._text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self._text):
                return self._text[self.at]
            if not self._more(0):
                return ""

    def value(self, most: int) -> Any:
        self.sign()
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self.at)
            except (ValueError, RecursionError):
                value, end = None, -1
            # A number that ends where the text does may go on.
            if not 0 <= end < len(self._text):
                held = len(self._text) - self.at
                # Twice as much each time: a long value is not decoded again for every piece of it.
                if held <= most and self._more(max(held, 1)):
                    continue
                if end < 0 or held > most:
                    raise broken_list(self.count)
                end = len(self._text)
            self.at, self.count = end, self.count + 1
            return value

    def _more(self, least: int) -> bool:
        held = [self._text[self.at :]]
        size = 0
        for piece in self._pieces:
            held.append(piece)
            size += len(piece)
            if size >= least:
                break
        self._text, self.at = "".join(held), 0
        return size > 0
