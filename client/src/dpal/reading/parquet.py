"""Parquet files as batches of Arrow streams."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpal.errors import Unreadable
from dpal.reading.rows import Answer
from dpal.reading.sources import MAXIMUM_LINE_BYTES
from dpal.wording import as_message

# A batch whose cells take more when written out is handed on in pieces.
BATCH_BYTES = 32 * 1024 * 1024
DAMAGED = "file: the Parquet file is damaged or cut off"


def read_parquet(
    file: BinaryIO,
    *,
    wanted: Sequence[str],
    texts: Sequence[str],
    batch_rows: int,
    groups: tuple[int, int] | None,
    maximum_bytes: int,
) -> Iterator[Answer]:
    """Yield names of columns and sizes of row groups, then batches as Arrow streams; a job of a limited process."""
    line = unpacked = 0
    try:
        metadata = pq.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
        classes = classes_of(metadata.metadata or {})
        sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
        yield {"columns": schema.names, "rows": metadata.num_rows, "group_bytes": sizes}, b""
        # A list of names is a column of another name to the reader, and has no dictionary.
        words = [name for name in texts if not pa.types.is_nested(schema.field(name).type)]
        opened = pq.ParquetFile(
            file, metadata=metadata, read_dictionary=words, buffer_size=1024 * 1024, pre_buffer=False
        )
        chosen = list(range(*groups)) if groups else None
        for batch in opened.iter_batches(
            batch_size=batch_rows, row_groups=chosen, columns=list(wanted), use_threads=False
        ):
            columns = [_named_classes(batch.column(name), classes.get(name, ())) for name in wanted]
            # The footer counts a word that a million rows repeat once, and it may lie.
            written = sum(map(written_bytes, columns))
            unpacked += written
            if unpacked > maximum_bytes:
                raise Unreadable(as_message("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))
            if max(map(longest_cell, columns), default=0) > MAXIMUM_LINE_BYTES:
                raise Unreadable(as_message("file: has a cell longer than {most:,} bytes", most=MAXIMUM_LINE_BYTES))
            pieces = min(1 + written // BATCH_BYTES, batch.num_rows)
            cuts = [batch.num_rows * piece // pieces for piece in range(pieces + 1)]
            for start, stop in pairwise(cuts):
                yield {"unpacked": unpacked}, _stream_of([column.slice(start, stop - start) for column in columns])
            line += batch.num_rows
    except MemoryError:
        raise
    # A name of a column that is no UTF-8 shows where pyarrow decodes it.
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise Unreadable(
            as_message("file: the Parquet file is damaged after row {line}", line=line) if line else DAMAGED
        ) from None


def classes_of(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Return the names of classes by column, as Hugging Face's `ClassLabel` keeps them; columns of others have none."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        found = {name: said["names"] for name, said in features.items() if said.get("_type") == "ClassLabel"}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return {name: list(map(str, names)) for name, names in found.items() if isinstance(names, list)}


def _named_classes(column: pa.Array, names: Sequence[str]) -> pa.Array:
    """Return names for whole numbers that count through classes; another number, as -1 for none, is an empty cell."""
    if not names or not pa.types.is_integer(column.type):
        return column
    known = pc.and_(pc.greater_equal(column, 0), pc.less(column, len(names)))
    return pa.array(names, pa.string()).take(pc.if_else(known, column, pa.scalar(None, column.type)))


def _stream_of(columns: Sequence[pa.Array]) -> bytes:
    """Return columns as bytes; of a dictionary only the words that they use, which may be those of a whole group."""
    made = [_used_words(column) if pa.types.is_dictionary(column.type) else column for column in columns]
    batch = pa.record_batch(made, names=[str(place) for place in range(len(made))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _used_words(column: pa.DictionaryArray) -> pa.Array:
    used = column.indices.drop_null().unique()
    if 2 * len(used) > len(column):
        return column.dictionary.take(column.indices)
    return pa.DictionaryArray.from_arrays(pc.index_in(column.indices, used), column.dictionary.take(used))


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
    words = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type) or pa.types.is_binary(words.type)):
        return 0
    return int(pc.max(pc.binary_length(words)).as_py() or 0)


def python_values(column: pa.Array) -> list[Any]:
    """Return the cells as Python values; bytes that are no UTF-8 become lone surrogates, which the checks find."""
    if pa.types.is_dictionary(column.type):
        words = python_values(column.dictionary)
        return [None if place is None else words[place] for place in column.indices.to_pylist()]
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if cell is None else cell.decode("utf-8", "surrogateescape") for cell in raw]
    return values
