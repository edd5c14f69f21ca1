"""Engines that run a gate's kernel over the files of a pool, and the one of a single process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from privacy.gate.counting import CountingGate
from privacy.gate.spill import DEFAULT_MEMORY_BYTES

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class PoolFile:
    """Some rows of a pool, in one file of columns, or in some row groups of one.

    Its content is found by `number`, however often it is rewritten. `first_row` counts the rows in all files before it:
    coins and ranks belong to the place of a row in the pool. Empty slots are among the rows.
    """

    number: int
    name: str
    sha256: str
    first_row: int
    row_count: int
    first_group: int = 0
    end_group: int | None = None


# The rows of a file as it stands now, with contributors or without.
ReadFile = Callable[[PoolFile, bool], Iterator[pa.RecordBatch]]


class GateEngine(Protocol):
    """Counts a pool for a gate; under one key the counts of all engines are the same.

    `tell` is called now and then with the rows read so far, and raises where the work shall stop.
    """

    def opened(self, gate: CountingGate, tell: Tell) -> AbstractContextManager[None]:
        """Make ready to count without reading a row; `EngineFailed` before anything is paid."""

    def counted(self, gate: CountingGate, files: Sequence[PoolFile], *, key: bytes, tell: Tell) -> list[pa.Table]:
        """Return the texts that reach the gate's minimum, with exact counts, in disjoint tables.

        `PoolDamaged` if a file is not the one that was written; `FileNotFoundError` if it was rewritten meanwhile, and
        the catalogue knows its new name.
        """


class ProcessEngine:
    """Read files one after another; beyond `memory_bytes` of distinct texts, or pairs, they go to a temporary file."""

    def __init__(self, read: ReadFile, *, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self._read = read
        self._memory_bytes = memory_bytes

    def opened(self, gate: CountingGate, tell: Tell) -> AbstractContextManager[None]:
        return nullcontext()

    def counted(self, gate: CountingGate, files: Sequence[PoolFile], *, key: bytes, tell: Tell) -> list[pa.Table]:
        texts = gate.texts(self._digests(gate, files, key, tell), key=key, memory_bytes=self._memory_bytes)
        return list(gate.counted(texts, key=key, memory_bytes=self._memory_bytes))

    def _digests(self, gate: CountingGate, files: Sequence[PoolFile], key: bytes, tell: Tell) -> Iterator[pa.Table]:
        for file in files:
            rows = self._read(file, wants_contributors(gate))
            yield from gate.read(_with_progress(rows, file.first_row, tell), key=key, first_record=file.first_row)


def wants_contributors(gate: CountingGate) -> bool:
    return gate.texts_per_contributor is not None


def _with_progress(batches: Iterator[pa.RecordBatch], first: int, tell: Tell) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        first += batch.num_rows
        tell(first)
        yield batch
