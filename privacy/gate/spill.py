"""Partial tables in bounded memory: merged while they are small, else kept in a file and merged in shares."""

import io
import math
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import IO, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy.gate.hashing import Words

DEFAULT_MEMORY_BYTES: Final = 2**27
# Every share reads the whole file once.
LARGEST_SHARES: Final = 64
HASH: Final = "hash"


class Spill:
    """Tables in a temporary file that has no name, so nobody else can open it and a crash leaves nothing behind."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the object
        weakref.finalize(self, self._file.close)
        self._places: list[tuple[int, int]] = []
        self.row_bytes = 0

    def append(self, table: pa.Table) -> None:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        start = self._file.seek(0, io.SEEK_END)
        self._places.append((start, self._file.write(sink.getbuffer())))
        self.row_bytes += table.nbytes

    def tables(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        for start, length in self._places:
            self._file.seek(start)
            table = pa.ipc.open_stream(self._file.read(length)).read_all()
            yield table if columns is None else table.select(columns)


class BoundedRows:
    """Rows to be merged by key, in memory or, beyond `memory_bytes`, from a spill file share by share.

    A share holds all rows whose keyed hash lies in one of several equal ranges, so equal keys meet in one share. Hashes
    choose the share and nothing else: rows are equal only if their columns are. `merge` returns a table with equal keys
    merged, and merging in stages must change nothing; `hash_rows` returns the hash of every row's key.
    """

    def __init__(
        self, *, merge: Callable[[pa.Table], pa.Table], hash_rows: Callable[[pa.Table], Words], memory_bytes: int
    ) -> None:
        self._merge, self._hash_rows, self._memory_bytes = merge, hash_rows, memory_bytes
        self._merging = Merging(merge, at_least=memory_bytes // 16)
        self._schema = pa.schema([])
        self.spill: Spill | None = None

    def add(self, table: pa.Table) -> None:
        if self.spill is None:
            self._merging.add(table)
            if self._merging.nbytes > self._memory_bytes:
                self.spill = Spill()
                self._append(self._merging.result())
        else:
            self._append(self._merge(table))

    def shares(
        self, *, keep: Callable[[Words], NDArray[np.bool_]] | None = None, part: float = 1.0
    ) -> Iterator[pa.Table]:
        """Yield the merged rows in disjoint tables; `part` of the spilled rows are expected to pass `keep`."""
        if self.spill is None:
            if not self._merging.empty:
                yield self._merging.result()
            return
        wanted = min(part, 1.0) * self.spill.row_bytes / max(1, self._memory_bytes)
        n_shares = min(LARGEST_SHARES, max(1, math.ceil(wanted)))
        for share in range(n_shares):
            merging = Merging(self._merge, at_least=self._memory_bytes // 16)
            for table in self.spill.tables():
                hashes = table[HASH].combine_chunks().to_numpy()
                chosen = ((hashes >> np.uint64(32)) * np.uint64(n_shares)) >> np.uint64(32) == share
                if keep is not None:
                    chosen[chosen] = keep(hashes[chosen])
                merging.add(encoded_again(table.filter(pa.array(chosen)), self._schema))
            yield merging.result()

    def _append(self, table: pa.Table) -> None:
        assert self.spill is not None
        self._schema = table.schema
        self.spill.append(without_dictionaries(table).append_column(HASH, pa.array(self._hash_rows(table))))


class Merging:
    """Tables to be merged as soon as what waits outgrows what is merged, but not for less than `at_least` bytes."""

    def __init__(self, merge: Callable[[pa.Table], pa.Table], *, at_least: int) -> None:
        self._merge, self._at_least = merge, at_least
        self._waiting: list[pa.Table] = []
        self._settled = self._arrived = 0

    @property
    def empty(self) -> bool:
        return not self._waiting

    @property
    def nbytes(self) -> int:
        """Bytes merged so far; what waits is less than that, or than a sixteenth of the memory."""
        return self._settled

    def add(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._arrived += table.nbytes
        if self._arrived > max(self._settled, self._at_least):
            merged = self.result()
            self._waiting, self._settled, self._arrived = [merged], merged.nbytes, 0
            # The pool keeps what merging freed, and would grow with every merge.
            pa.default_memory_pool().release_unused()

    def result(self) -> pa.Table:
        return self._merge(pa.concat_tables(self._waiting))


def without_dictionaries(table: pa.Table) -> pa.Table:
    """Write dictionary-encoded columns out: a share of the rows needs a share of the values only."""
    types = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


def encoded_again(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        column = table[field.name].combine_chunks()
        columns.append(column.dictionary_encode() if pa.types.is_dictionary(field.type) else column)
    return pa.Table.from_arrays(columns, schema=schema)
