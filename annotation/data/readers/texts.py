"""Text files, read in a limited process."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, BinaryIO

from annotation.work.limits import LOOK, WHOLE, run
from dpal.reading import sources
from dpal.reading.encodings import Encoding
from dpal.reading.rows import BadRow, FirstRows, Layout, RawBatch, TextKind
from dpal.reading.texts import read_text
from privacy.wording import message_from


class TextReader:
    """Cells of a text file, or of the `part` between two bytes, under the header that the one it `follows` found."""

    def __init__(
        self,
        file: BinaryIO,
        layout: Layout,
        kind: TextKind,
        *,
        maximum_bytes: int,
        delimiter: str = ",",
        compressed: bool = False,
        member: str | None = None,
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
            layout=layout_as_json(layout),
            maximum_bytes=maximum_bytes if look is None else min(maximum_bytes, look.most_bytes),
            delimiter=delimiter,
            compressed=compressed,
            member=member,
            encoding=encoding,
            chunk_bytes=sources.CHUNK_BYTES,
            line_bytes=sources.MAXIMUM_LINE_BYTES,
            part=part,
            header=None if follows is None else follows.header,
            rows=None if look is None else look.rows,
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


def layout_as_json(layout: Layout) -> dict[str, Any]:
    """Return what of a layout the readers of cells look at."""
    said = {each.name: getattr(layout, each.name) for each in fields(layout)}
    declared = [{"name": column["name"]} for column in layout.declared]
    return said | {"classes": (), "declared": declared, "sources": dict(layout.sources), "sets": layout.sets and True}
