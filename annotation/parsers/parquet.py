"""Parquet files, by row group and batch."""

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from annotation.errors import InvalidUpload
from annotation.parsers.parquet_pages import FirstPages
from annotation.parsers.rows import FirstRows, Layout, RawBatch
from annotation.parsers.sources import MAXIMUM_LINE_BYTES
from privacy.wording import as_message

BATCH_ROWS = 16_384
IMAGE_BATCH_ROWS = 512


class ParquetReader:
    """Read the columns asked for; text stays dictionary-encoded until it is checked, so repeats cost no memory.

    `groups` are the first row group to read and the one to stop before; without them all are read. With `look` only so
    many rows are, from pages that unpack to no more than its bytes.
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
        self._maximum_bytes = maximum_bytes
        self._look = look
        try:
            metadata = pq.read_metadata(file)
            schema = metadata.schema.to_arrow_schema()
            layout.require(schema.names)
            # A list of names is a column of another name to the reader, and has no dictionary.
            named = [name for name in (layout.text, layout.contributor, layout.label) if name]
            texts = [name for name in named if not pa.types.is_nested(schema.field(name).type)]
            shown: BinaryIO | FirstPages = file
            if look is not None and metadata.num_rows:
                names = list(layout.columns())
                shown = FirstPages(file, metadata, names, rows=look.rows, most_bytes=look.most_bytes)
            self._file = pq.ParquetFile(
                shown, metadata=metadata, read_dictionary=texts, buffer_size=1024 * 1024, pre_buffer=False
            )
        except (pa.ArrowException, OSError):
            raise InvalidUpload("file: the Parquet file is damaged or cut off") from None
        if metadata.num_rows == 0:
            raise InvalidUpload("file: holds no rows")
        self.group_bytes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
        self._groups = list(range(*groups)) if groups else None
        self.lines_read = 0
        self.unpacked_bytes = 0
        unpacked = sum(self.group_bytes)
        if unpacked > maximum_bytes:
            raise InvalidUpload(as_message("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))

    def batches(self) -> Iterator[RawBatch]:
        """Yield the rows in order; their "line" is the row number, from 1."""
        names = list(self._layout.columns())
        size = IMAGE_BATCH_ROWS if self._layout.kind == "image" else BATCH_ROWS
        size = size if self._look is None else self._look.rows
        line = 1
        try:
            for batch in self._file.iter_batches(batch_size=size, row_groups=self._groups, columns=names):
                # The footer counts a word that a million rows repeat once, and it may lie.
                self.unpacked_bytes += sum(written_bytes(batch.column(name)) for name in names)
                if self.unpacked_bytes > self._maximum_bytes:
                    raise InvalidUpload(
                        as_message("file: holds more than {most:,} bytes once unpacked", most=self._maximum_bytes)
                    )
                if max(map(longest_cell, (batch.column(name) for name in names)), default=0) > MAXIMUM_LINE_BYTES:
                    raise InvalidUpload(
                        as_message("file: has a cell longer than {most:,} bytes", most=MAXIMUM_LINE_BYTES)
                    )
                columns = {name: python_values(batch.column(name)) for name in names}
                yield RawBatch(list(range(line, line + batch.num_rows)), columns)
                line += batch.num_rows
                self.lines_read = line - 1
        except (pa.ArrowException, OSError):
            raise InvalidUpload(
                as_message("file: the Parquet file is damaged after row {line}", line=line - 1)
            ) from None


def written_bytes(column: pa.Array) -> int:
    """Return what the cells take when each is written out, as in a file of lines: at least a byte and its line end."""
    cells = 2 * len(column)
    if not pa.types.is_dictionary(column.type):
        return cells + int(column.nbytes)
    words = column.dictionary
    if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type) or pa.types.is_binary(words.type)):
        return cells + int(column.nbytes)
    lengths = pc.binary_length(words).take(column.indices)
    return cells + int(pc.sum(lengths).as_py() or 0)


def longest_cell(column: pa.Array) -> int:
    """Return the bytes of the longest text or bytes in a column, 0 where it holds neither."""
    words = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type) or pa.types.is_binary(words.type)):
        return 0
    return int(pc.max(pc.binary_length(words)).as_py() or 0)


def python_values(column: pa.Array) -> list[Any]:
    """Return the cells as Python values; bytes that are no UTF-8 become lone surrogates, which the checks find."""
    if pa.types.is_dictionary(column.type):
        # Only the words of this batch: the dictionary may be that of a whole row group.
        used = column.indices.drop_null().unique()
        words = dict(zip(used.to_pylist(), python_values(column.dictionary.take(used)), strict=True))
        return [words.get(place) for place in column.indices.to_pylist()]
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if cell is None else cell.decode("utf-8", "surrogateescape") for cell in raw]
    return values
