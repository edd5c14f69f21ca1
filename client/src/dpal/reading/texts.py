"""Text files, read row by row."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from dpal.reading.delimited import DelimitedReader
from dpal.reading.encodings import Encoding
from dpal.reading.foreign import FastTextReader
from dpal.reading.json_lines import JsonLinesReader
from dpal.reading.label_studio import LabelStudioReader
from dpal.reading.rows import Answer, Layout, TextKind
from dpal.reading.sources import FileRange, TextSource
from dpal.wording import message_of

AnyReader = DelimitedReader | JsonLinesReader | LabelStudioReader | FastTextReader


def read_text(
    file: BinaryIO,
    *,
    kind: TextKind,
    layout: dict[str, Any],
    maximum_bytes: int,
    delimiter: str,
    compressed: bool,
    encoding: str,
    chunk_bytes: int,
    line_bytes: int,
    part: tuple[int, int] | None,
    header: list[str] | None,
    member: str | None = None,
    rows: int | None = None,
) -> Iterator[Answer]:
    """Yield header and delimiter, then rows, of each batch `rows` at most; a job of a limited process."""
    wanted = Layout(**layout)
    source = TextSource(
        file if part is None else FileRange(file, *part),
        compressed=compressed,
        member=member,
        maximum_bytes=maximum_bytes,
        from_start=part is None or part[0] == 0,
        encoding=Encoding(encoding),
        chunk_bytes=chunk_bytes,
        line_bytes=line_bytes,
    )
    reader: AnyReader
    if kind == "lines":
        reader = JsonLinesReader(source, wanted, follows=header is not None)
    elif kind == "marked":
        reader = FastTextReader(source, wanted)
    elif kind == "tasks":
        reader = LabelStudioReader(source, wanted)
    else:
        reader = DelimitedReader(source, wanted, default_delimiter=delimiter, header=header)
    yield {"header": list(getattr(reader, "header", [])), "delimiter": getattr(reader, "delimiter", delimiter)}, b""
    for batch in reader.batches():
        bad = [(row.line, row.column, message_of(row.reason).as_json()) for row in batch.bad]
        columns = {name: cells[:rows] for name, cells in batch.columns.items()}
        yield _state(reader) | {"lines": batch.lines[:rows], "columns": columns, "bad": bad[:rows]}, b""
    yield _state(reader), b""


def _state(reader: AnyReader) -> dict[str, Any]:
    return {"lines_read": getattr(reader, "lines_read", 0), "ends_within": getattr(reader, "ends_within", False)}
