"""Formats of files by their content, and by their name where content cannot tell."""

import json
import os
import re
import zlib
from enum import Enum
from pathlib import PurePath
from typing import BinaryIO, NamedTuple

from dpal.errors import Unreadable
from dpal.reading.archives import head_of_member, member_of
from dpal.reading.encodings import Encoding, head_as_utf8, settled_encoding
from dpal.reading.rows import TextKind
from dpal.reading.sources import BYTE_ORDER_MARK

HEAD_BYTES = 4096
OBJECTS = re.compile(rb"\[\s*[\[{]")
JSON_NAMES = (".json", ".jsonl", ".ndjson")
FASTTEXT_MARK = b"__label__"
# PNG, JPEG and PDF, whose first lines would pass for text.
OTHER_MARKS = (b"\x89PNG", b"\xff\xd8\xff", b"%PDF")
OLD_EXCEL = b"\xd0\xcf\x11\xe0"
# Names of entries, which stand in an archive as they are.
IN_A_WORKBOOK = (b"[Content_Types].xml", b"xl/workbook.xml", b"xl/_rels/")
IN_A_BINARY_WORKBOOK = b"xl/workbook.bin"
IN_A_SHEET = b"application/vnd.oasis.opendocument.spreadsheet"
# The list of a workbook's entries stands at its end.
TAIL_BYTES = 64 * 1024


class Format(str, Enum):
    CSV = ".csv"
    TSV = ".tsv"
    JSON_LINES = ".jsonl"
    PARQUET = ".parquet"
    IMAGES = ".zip"
    TASKS = ".json"
    FASTTEXT = ".txt"
    WORKBOOK = ".xlsx"

    def __str__(self) -> str:
        return self.value


TEXTS: dict[Format, TextKind] = {
    Format.CSV: "delimited",
    Format.TSV: "delimited",
    Format.JSON_LINES: "lines",
    Format.TASKS: "tasks",
    Format.FASTTEXT: "marked",
}


class Detected(NamedTuple):
    """Format of a file, whether it is packed, its encoding if it is text, and its name in a zip."""

    format: Format
    compressed: bool = False
    encoding: Encoding = Encoding.UTF_8
    member: str | None = None


def detect_format(file: BinaryIO, name: str, encoding: str | None = None, member: str | None = None) -> Detected:
    """Return the format by content, else by name; `encoding` is that of a text, `member` the file of a zip."""
    found = _detected(file, name, encoding, member)
    if encoding is not None and found.format not in TEXTS:
        raise Unreadable("encoding: only for text files")
    return found


def _detected(file: BinaryIO, name: str, declared: str | None, chosen: str | None) -> Detected:
    head = file.read(HEAD_BYTES)
    file.seek(-min(TAIL_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
    tail = file.read() if head.startswith(b"PK") else b""
    file.seek(0)
    if not head:
        raise Unreadable("file: is empty")
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    if head.startswith(b"PAR1"):
        return Detected(Format.PARQUET)
    _refuse_other_sheets(head, tail)
    member = None
    if head.startswith(b"PK\x03\x04"):
        if any(name in head + tail for name in IN_A_WORKBOOK):
            return Detected(Format.WORKBOOK)
        if (found := member_of(file, tail, chosen)) is None:
            return Detected(Format.IMAGES)
        head, member = head_of_member(file, found, HEAD_BYTES), found.name
        suffixes = [suffix.lower() for suffix in PurePath(member).suffixes]
        file.seek(0)
    compressed = member is not None or head.startswith(b"\x1f\x8b")
    if compressed and member is None:
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error:
            raise Unreadable("file: the gzip archive is damaged or cut off") from None
        suffixes = [suffix for suffix in suffixes if suffix != ".gz"]
    other = head.startswith(OTHER_MARKS)
    encoding = settled_encoding(head, declared)
    head = head_as_utf8(head, encoding)
    # A control character other than tab, newline, form feed and return, before any line ends, is no text file.
    first_line = head.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n").split(b"\n", 1)[0]
    if other or any(byte < 9 or 13 < byte < 32 for byte in first_line[:64]):
        raise Unreadable(
            "file: must be CSV, TSV, JSON lines, a list of tasks, .xlsx, Parquet or a zip of PNG, JPEG or WebP images"
        )
    last = suffixes[-1] if suffixes else ""
    opening = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if opening.startswith(FASTTEXT_MARK) and last not in (".csv", ".tsv"):
        return Detected(Format.FASTTEXT, compressed, encoding, member)
    # Without a name that says so, square brackets may begin anything.
    if opening[:1] == b"[" and (last == ".json" or (last not in (".csv", ".tsv") and OBJECTS.match(opening))):
        return Detected(Format.TASKS, compressed, encoding, member)
    if last in JSON_NAMES or (last not in (".csv", ".tsv") and opening.startswith(b"{")):
        values = opening.startswith(b"{") and not _has_object_a_line(opening, last, is_whole=len(head) < HEAD_BYTES)
        return Detected(Format.TASKS if values else Format.JSON_LINES, compressed, encoding, member)
    return Detected(Format.TSV if last == ".tsv" else Format.CSV, compressed, encoding, member)


def _has_object_a_line(opening: bytes, last: str, *, is_whole: bool) -> bool:
    """Say whether the first line is a row; a whole file on one line may also be an object that holds the rows."""
    first, end, later = opening.partition(b"\n")
    if not end and not is_whole:
        return last != ".json"
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        # One bad line of many is a bad row; an object that only began is no line.
        return bool(later.lstrip().startswith(b"{")) and first.rstrip().endswith(b"}")
    if later.strip() or not isinstance(row, dict):
        return True
    lists = [value for value in row.values() if isinstance(value, list)]
    if last == ".json":
        return not lists and not any(isinstance(value, dict) for value in row.values())
    return not any(isinstance(one, dict) for value in lists for one in value[:1])


def _refuse_other_sheets(head: bytes, tail: bytes) -> None:
    if head.startswith(OLD_EXCEL):
        raise Unreadable("file: is an old workbook (.xls) or has a password; save it as .xlsx without one")
    if head.startswith(b"PK") and IN_A_BINARY_WORKBOOK in head + tail:
        raise Unreadable("file: is a binary workbook (.xlsb); save it as .xlsx")
    if head.startswith(b"PK") and IN_A_SHEET in head:
        raise Unreadable("file: is an OpenDocument sheet; save it as .xlsx or CSV")
