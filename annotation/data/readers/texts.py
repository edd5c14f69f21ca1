"""Text files, read in a limited process."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, BinaryIO, Literal

from annotation.data.readers import sources
from annotation.data.readers.delimited import DelimitedReader
from annotation.data.readers.encodings import Encoding
from annotation.data.readers.json_lines import JsonLinesReader
from annotation.data.readers.label_studio import LabelStudioReader
from annotation.data.readers.rows import BadRow, FirstRows, Layout, RawBatch
from annotation.data.readers.sources import FileRange, TextSource
from annotation.work.limits import LOOK, WHOLE, Answer, run
from privacy.wording import message_from, message_of

TextKind = Literal["delimited", "lines", "tasks"]


class TextReader:
    """Cells of a text file; of a `part` those between two bytes, under the header that the one it `follows` found.

    After the last batch `lines_read` counts the lines, and `ends_within` says whether the last row is cut off.
    """

    def __init__(
        self,
        file: BinaryIO,
        layout: Layout,
        kind: TextKind,
        *,
        maximum_bytes: int,
        delimiter: str = ",",
        compressed: bool = False,
        encoding: Encoding = Encoding.UTF_8,
        look: FirstRows | None = None,
        part: tuple[int, int] | None = None,
        follows: "TextReader | None" = None,
    ) -> None:
        self.kind = kind
        self.lines_read, self.ends_within = 0, False
        self._answers = run(
            read_text,
            file,
            WHOLE if look is None else LOOK,
            kind=kind,
            layout=_as_json(layout),
            maximum_bytes=maximum_bytes if look is None else min(maximum_bytes, look.most_bytes),
            delimiter=delimiter,
            compressed=compressed,
            encoding=encoding,
            chunk_bytes=sources.CHUNK_BYTES,
            line_bytes=sources.MAXIMUM_LINE_BYTES,
            part=part,
            header=None if follows is None else follows.header,
        )
        opening, _ = next(self._answers)
        self.header: list[str] = opening["header"]
        self.delimiter: str = opening["delimiter"]

    def batches(self) -> Iterator[RawBatch]:
        for found, _ in self._answers:
            self.lines_read, self.ends_within = found["lines_read"], found["ends_within"]
            if "lines" not in found:
                return
            bad = [BadRow(line, column, message_from(reason)) for line, column, reason in found["bad"]]
            yield RawBatch(found["lines"], found["columns"], bad)


def _as_json(layout: Layout) -> dict[str, Any]:
    """Return what of a layout the readers of cells look at."""
    said = {each.name: getattr(layout, each.name) for each in fields(layout)}
    declared = [{"name": column["name"]} for column in layout.declared]
    return said | {"classes": (), "declared": declared, "sources": dict(layout.sources), "sets": layout.sets and True}


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
) -> Iterator[Answer]:
    """Yield header and delimiter, then rows; a job of a limited process."""
    wanted = Layout(**layout)
    source = TextSource(
        file if part is None else FileRange(file, *part),
        compressed=compressed,
        maximum_bytes=maximum_bytes,
        from_start=part is None or part[0] == 0,
        encoding=Encoding(encoding),
        chunk_bytes=chunk_bytes,
        line_bytes=line_bytes,
    )
    reader: DelimitedReader | JsonLinesReader | LabelStudioReader
    if kind == "lines":
        reader = JsonLinesReader(source, wanted, follows=header is not None)
    elif kind == "tasks":
        reader = LabelStudioReader(source, wanted)
    else:
        reader = DelimitedReader(source, wanted, default_delimiter=delimiter, header=header)
    yield {"header": getattr(reader, "header", []), "delimiter": getattr(reader, "delimiter", delimiter)}, b""
    for batch in reader.batches():
        bad = [(row.line, row.column, message_of(row.reason).as_json()) for row in batch.bad]
        yield _state(reader) | {"lines": batch.lines, "columns": batch.columns, "bad": bad}, b""
    yield _state(reader), b""


def _state(reader: DelimitedReader | JsonLinesReader | LabelStudioReader) -> dict[str, Any]:
    return {"lines_read": getattr(reader, "lines_read", 0), "ends_within": getattr(reader, "ends_within", False)}
