"""Parquet files, by row group and batch."""

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from annotation.errors import InvalidUpload
from annotation.parsers.rows import Layout, RawBatch
from privacy.wording import say

BATCH_ROWS = 16_384
IMAGE_BATCH_ROWS = 512


class ParquetReader:
    """Read the columns asked for; text stays dictionary-encoded until it is checked, so repeats cost no memory."""

    def __init__(self, file: BinaryIO, layout: Layout, *, maximum_bytes: int) -> None:
        self._layout = layout
        self._maximum_bytes = maximum_bytes
        try:
            metadata = pq.read_metadata(file)
            layout.require(metadata.schema.to_arrow_schema().names)
            texts = [name for name in (layout.text, layout.contributor, layout.label) if name]
            self._file = pq.ParquetFile(
                file, metadata=metadata, read_dictionary=texts, buffer_size=1024 * 1024, pre_buffer=False
            )
        except (pa.ArrowException, OSError):
            raise InvalidUpload("file: the Parquet file is damaged or cut off") from None
        if metadata.num_rows == 0:
            raise InvalidUpload("file: holds no rows")
        unpacked = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
        if unpacked > maximum_bytes:
            raise InvalidUpload(say("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))

    def batches(self) -> Iterator[RawBatch]:
        """Yield the rows in order; their "line" is the row number, from 1."""
        names = list(self._layout.columns())
        size = IMAGE_BATCH_ROWS if self._layout.kind == "image" else BATCH_ROWS
        line = 1
        unpacked = 0
        try:
            for batch in self._file.iter_batches(batch_size=size, columns=names):
                # The footer counts a word that a million rows repeat once, and it may lie.
                unpacked += sum(written_bytes(batch.column(name)) for name in names)
                if unpacked > self._maximum_bytes:
                    raise InvalidUpload(
                        say("file: holds more than {most:,} bytes once unpacked", most=self._maximum_bytes)
                    )
                columns = {name: python_values(batch.column(name)) for name in names}
                yield RawBatch(list(range(line, line + batch.num_rows)), columns)
                line += batch.num_rows
        except (pa.ArrowException, OSError):
            raise InvalidUpload(say("file: the Parquet file is damaged after row {line}", line=line - 1)) from None


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
