"""Shape of a file before anybody said which column is which."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from dpal.errors import Unreadable
from dpal.reading.cells import BadCell, check_storable
from dpal.reading.delimited import DELIMITERS
from dpal.reading.encodings import Encoding
from dpal.reading.foreign import FastTextReader
from dpal.reading.formats import Format
from dpal.reading.heads import read_head
from dpal.reading.json_lines import read_object
from dpal.reading.label_studio import LabelStudioReader
from dpal.reading.rows import Answer, Layout, refuse_wide
from dpal.reading.sources import TextSource
from dpal.wording import as_message

HEAD_LINES = 100
HEAD_CHARACTERS = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileShape:
    """Format of a file and names of its columns.

    `controls` are what may have been answered in a list of tasks, and `people` who did, as far as its beginning shows;
    `sheets` those of a workbook, and `sheet` the one that was looked at.
    """

    format: Format
    columns: tuple[str, ...] = ()
    delimiter: str | None = None
    controls: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    sheets: tuple[str, ...] = ()
    sheet: str | None = None

    def __post_init__(self) -> None:
        refuse_wide(len(self.columns))
        try:
            for name in (*self.columns, *self.controls, *self.people, *self.sheets):
                check_storable(name)
        except BadCell as error:
            raise Unreadable(as_message("encoding: a name in the file {reason}", reason=error.args[0])) from None


def read_shape(
    file: BinaryIO,
    *,
    kind: str,
    compressed: bool,
    maximum_bytes: int,
    encoding: str,
    has_header: bool,
    delimiter: str | None,
    quoting: bool,
    skip_rows: int = 0,
    member: str | None = None,
) -> Iterator[Answer]:
    """Yield the shape of a text file; a job of a limited process."""
    source = TextSource(
        file, member=member, compressed=compressed, maximum_bytes=maximum_bytes, encoding=Encoding(encoding)
    )
    if kind == Format.TASKS:
        tasks = LabelStudioReader(source, Layout(kind="text"))
        shape = FileShape(Format.TASKS, tasks.fields(), controls=tasks.controls(), people=tasks.people())
    elif kind == Format.FASTTEXT:
        shape = FileShape(Format.FASTTEXT, FastTextReader.header)
    elif kind in (Format.CSV, Format.TSV):
        default = "\t" if kind == Format.TSV else ","
        candidates = [delimiter] if delimiter else list(dict.fromkeys([default, *DELIMITERS]))
        head, _ = read_head(
            source.lines(),
            candidates,
            has_header=has_header,
            quoting=quoting,
            skip=skip_rows,
            is_given=delimiter is not None,
        )
        names = head.names if has_header else [str(place) for place in range(1, len(head.names) + 1)]
        shape = FileShape(Format(kind), tuple(names), head.delimiter)
    elif not (lines := [line for line in _head(source) if line.strip()]):
        raise Unreadable("file: holds no rows")
    else:
        shape = FileShape(Format.JSON_LINES, _fields(lines))
    yield {name: getattr(shape, name) for name in ("columns", "delimiter", "controls", "people")}, b""


def _head(source: TextSource) -> Iterator[str]:
    held = 0
    for line in islice(source.lines(), HEAD_LINES):
        yield line
        held += len(line)
        if held > HEAD_CHARACTERS:
            break


def _fields(lines: list[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for line in lines:
        with suppress(ValueError):
            found |= dict.fromkeys(read_object(line))
    return tuple(found)
