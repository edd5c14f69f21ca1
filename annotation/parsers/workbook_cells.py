"""What cells of a workbook hold: shared texts, numbers, and dates, which are numbers that a style shows as dates."""

import os
import re
import struct
import tempfile
import weakref
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import BinaryIO, NamedTuple, cast

from annotation.errors import InvalidUpload
from annotation.parsers.workbook_xml import BENT, DAMAGED, XmlPartReader
from annotation.tables.cells import BadCell
from privacy.wording import as_message

MOST_STYLES = 65_536
# Numbers of formats that need no text of their own: dates and times, in Asian editions too.
DATES = frozenset({*range(14, 18), *range(27, 32), 36, *range(50, 55), 57, 58})
TIMES = frozenset({18, 19, 20, 21, *range(32, 36), 45, 47, 55, 56})
BOTH, DURATION = 22, 46
# Hours, minutes or seconds in brackets do not begin anew at 24 or 60.
COUNTED_ON = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
NOT_SHOWN = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
WHOLE = re.compile(r"-?\d{1,15}")
OFFSET = struct.Struct("<Q")
# Texts that were just read or asked for: a column asks for texts in their order, or for the same few ones.
TEXTS_KEPT = 4096
MOST_KEPT_CHARACTERS = 512
NOT_A_DATE = as_message("is shown as a date and is none that a workbook has")
NOT_A_CELL = as_message("is not written as a cell of a workbook is")
LAST_DAY = 2_958_466


class SharedTexts(XmlPartReader):
    """Texts by number, read no further than they are asked for and kept on disk, so that many cost no memory."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._steps = self.steps(pieces)
        self._texts = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed with the object
        self._ends = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
        for file in (self._texts, self._ends):
            weakref.finalize(self, file.close)
        self._count = 0
        self._end = 0
        self._within_reading = False
        self._flushed = True
        self._kept: dict[int, str] = {}

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a text, or a run of one."""
        if name == "rPh":
            self._within_reading = True
        elif name == "t":
            self.keep_text(not self._within_reading)

    def closed(self, name: str) -> None:
        """Keep a text once it is whole; how it is read aloud, beside some Japanese ones, is no part of it."""
        if name == "rPh":
            self._within_reading = False
        elif name == "t":
            self.keep_text(False)
        elif name == "si":
            self._keep(self._count, text := self.take_text())
            written = text.encode()
            self._end += len(written)
            self._texts.write(written)
            self._ends.write(OFFSET.pack(self._end))
            self._count += 1
            self._flushed = False

    def text(self, number: int) -> str:
        """Return a text by its number, from 0."""
        if (known := self._kept.get(number)) is not None:
            return known
        while number >= self._count:
            if next(self._steps, None) is None:
                raise BadCell(NOT_A_CELL)
        if (known := self._kept.get(number)) is not None:
            return known
        if not self._flushed:
            self._texts.flush()
            self._ends.flush()
            self._flushed = True
        first = OFFSET.unpack(os.pread(self._ends.fileno(), 8, 8 * (number - 1)))[0] if number else 0
        end = OFFSET.unpack(os.pread(self._ends.fileno(), 8, 8 * number))[0]
        text = os.pread(self._texts.fileno(), end - first, first).decode()
        self._keep(number, text)
        return text

    def _keep(self, number: int, text: str) -> None:
        if len(text) <= MOST_KEPT_CHARACTERS:
            if len(self._kept) >= TEXTS_KEPT:
                self._kept.clear()
            self._kept[number] = text


class NumberShownAs(NamedTuple):
    """What a style makes of a number."""

    day: bool = False
    time: bool = False
    duration: bool = False


class Styles(XmlPartReader):
    """Which styles show a number as a day, a time of day, both, or a duration."""

    def __init__(self) -> None:
        super().__init__()
        self._codes: dict[int, str] = {}
        self._formats: list[int] = []
        self._within = False

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """Note a format, or what a style refers to."""
        if name == "numFmt":
            self._codes[whole(attributes.get("numFmtId"))] = attributes.get("formatCode", "")
        elif name == "cellXfs":
            self._within = True
        elif name == "xf" and self._within:
            self._formats.append(whole(attributes.get("numFmtId", "0")))
        if max(len(self._codes), len(self._formats)) > MOST_STYLES:
            raise InvalidUpload(BENT)

    def closed(self, name: str) -> None:
        """The styles of cells end; those of other things follow."""
        if name == "cellXfs":
            self._within = False

    def shows(self) -> list[NumberShownAs]:
        """Return what each style shows."""
        return [self._shown(number) for number in self._formats]

    def _shown(self, number: int) -> NumberShownAs:
        code = self._codes.get(number)
        if code is None:
            both = number == BOTH
            return NumberShownAs(day=number in DATES or both, time=number in TIMES or both, duration=number == DURATION)
        if COUNTED_ON.search(code):
            return NumberShownAs(duration=True)
        letters = NOT_SHOWN.sub("", code.split(";")[0]).lower()
        if "general" in letters:
            return NumberShownAs()
        day, time = bool(re.search("[yd]", letters)), bool(re.search("[hs]", letters))
        # An m alone is a month; beside hours or seconds it is a minute.
        return NumberShownAs(day=day or ("m" in letters and not time), time=time)


def whole(text: str | None) -> int:
    """Return a number of the format's own: from 0, in plain digits."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise InvalidUpload(DAMAGED)
    return int(text)


def unescaped(text: str) -> str:
    """Return a text with the characters that XML cannot hold, or only as `_x000D_`."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def number_text(text: str) -> str:
    """Return a number as people write it: the shortest digits that mean the same."""
    if WHOLE.fullmatch(text):
        return text
    try:
        number = float(text)
    except ValueError:
        raise BadCell(NOT_A_CELL) from None
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def shown_text(text: str, shown: NumberShownAs, *, since_1904: bool) -> str:
    """Return a number as it is shown: a day and a time by ISO 8601, a duration as hours, minutes and seconds."""
    if not any(shown):
        return number_text(text)
    day, time, duration = shown
    try:
        days = float(text)
    except ValueError:
        raise BadCell(NOT_A_CELL) from None
    if duration and 0 <= days < LAST_DAY:
        minutes, seconds = divmod(round(days * 86_400), 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
    if not 0 <= days < LAST_DAY or (day and not since_1904 and 60 <= days < 61):
        # Day 60 is 29 February 1900, which never was.
        raise BadCell(NOT_A_DATE)
    # In no time zone, as the cell is.
    start = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 31 if days < 60 else 30)  # noqa: DTZ001
    try:
        moment = start + timedelta(seconds=round(days * 86_400))
    except OverflowError:
        raise BadCell(NOT_A_DATE) from None
    if not day:
        return moment.time().isoformat()
    return moment.isoformat() if time else moment.date().isoformat()
