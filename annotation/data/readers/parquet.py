"""Parquet files, by row group and batch, read in a limited process."""

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from annotation.errors import InvalidUpload
from annotation.work.limits import LOOK, WHOLE, run
from dpal.reading.parquet import python_values, read_parquet
from dpal.reading.rows import FirstRows, Layout, RawBatch
from privacy.wording import as_message

BATCH_ROWS = 16_384
IMAGE_BATCH_ROWS = 512


class ParquetReader:
    """Read the columns asked for, dictionary-encoded; `groups` are the first row group to read and the one to stop
    before.
    """

    def __init__(
        self,
        file: BinaryIO,
        layout: Layout,
        *,
        maximum_bytes: int,
        groups: tuple[int, int] | None = None,
        look: FirstRows | None = None,
    ) -> None:
        self._layout = layout
        size = IMAGE_BATCH_ROWS if layout.kind == "image" else BATCH_ROWS
        self._answers = run(
            read_parquet,
            file,
            WHOLE if look is None else LOOK,
            wanted=layout.columns(),
            texts=[name for name in (layout.text, layout.contributor, layout.label) if name],
            batch_rows=size if look is None else look.rows,
            groups=groups,
            maximum_bytes=maximum_bytes,
        )
        opening, _ = next(self._answers)
        layout.require(opening["columns"])
        self.group_bytes: list[int] = opening["group_bytes"]
        if not opening["rows"]:
            raise InvalidUpload("file: holds no rows")
        if sum(self.group_bytes) > maximum_bytes:
            raise InvalidUpload(as_message("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))
        self.lines_read = 0
        self.unpacked_bytes = 0

    def batches(self) -> Iterator[RawBatch]:
        """Yield the rows in order; their "line" is the row number, from 1."""
        names = self._layout.columns()
        for found, content in self._answers:
            with pa.ipc.open_stream(content) as stream:
                batch = stream.read_next_batch()
            columns = {name: python_values(batch.column(place)) for place, name in enumerate(names)}
            first = self.lines_read + 1
            self.lines_read += batch.num_rows
            self.unpacked_bytes = found["unpacked"]
            yield RawBatch(list(range(first, self.lines_read + 1)), columns)


def parquet_columns(file: BinaryIO) -> tuple[str, ...]:
    nothing: dict[str, Any] = {"wanted": (), "texts": (), "batch_rows": 1, "groups": None, "maximum_bytes": 0}
    return tuple(next(run(read_parquet, file, LOOK, **nothing))[0]["columns"])
