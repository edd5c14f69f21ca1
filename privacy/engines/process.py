"""The engine of a single process: file after file through the kernel, in bounded memory."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa

from privacy.engines.base import PoolFile, ReadFile, Tell, wants_contributors
from privacy.gate.counting import CountingGate
from privacy.gate.spill import DEFAULT_MEMORY_BYTES


class ProcessEngine:
    """Read files one after another; beyond `memory_bytes` of distinct texts, or pairs, they go to a temporary file.

    Parameters
    ----------
    read : callable
        Yields the rows of a file; the second argument says whether contributors are wanted.
    memory_bytes : int
        As for `CountingGate.release`.
    """

    def __init__(self, read: ReadFile, *, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self._read = read
        self._memory_bytes = memory_bytes

    def opened(self, gate: CountingGate, tell: Tell) -> AbstractContextManager[None]:
        """Nothing has to be made ready."""
        return nullcontext()

    def counted(self, gate: CountingGate, files: Sequence[PoolFile], *, key: bytes, tell: Tell) -> list[pa.Table]:
        """Return the texts that reach the gate's minimum, with exact counts, in disjoint tables."""
        texts = gate.texts(self._digests(gate, files, key, tell), key=key, memory_bytes=self._memory_bytes)
        return list(gate.counted(texts, key=key, memory_bytes=self._memory_bytes))

    def _digests(self, gate: CountingGate, files: Sequence[PoolFile], key: bytes, tell: Tell) -> Iterator[pa.Table]:
        for file in files:
            rows = self._read(file, wants_contributors(gate))
            yield from gate.read(_with_progress(rows, file.first_row, tell), key=key, first_record=file.first_row)


def _with_progress(batches: Iterator[pa.RecordBatch], first: int, tell: Tell) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        first += batch.num_rows
        tell(first)
        yield batch
