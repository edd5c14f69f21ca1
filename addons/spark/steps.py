"""Steps that executors run: the kernel of one process on the rows of a file, of some contributors, or of some texts."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from addons.spark.jobs import FileReader
from privacy.gate.counting import CountingGate
from privacy.gate.engine import PoolFile, wants_contributors
from privacy.gate.reading import PAIRS
from privacy.gate.spill import encoded_again, without_dictionaries

# What a task sends on at once.
BATCH_ROWS: Final = 65_536
# Before the class of an error, so that the driver finds it in what Spark says.
FAILED_WITH: Final = "step failed with "
SHARE: Final = pa.field("share", pa.int32())
# The place of a row among all digests: ties between ranks fall as they do in one process.
PLACE: Final = pa.field("place", pa.int64())
# What Spark knows of Arrow's types: no dictionaries, no unsigned numbers.
SENT: Final = {
    pa.large_string(): (pa.string(), "string"),
    pa.large_binary(): (pa.binary(), "binary"),
    pa.uint32(): (pa.int64(), "bigint"),
    pa.int64(): (pa.int64(), "bigint"),
    pa.int32(): (pa.int32(), "int"),
    pa.bool_(): (pa.bool_(), "boolean"),
}
PLAIN_PAIRS: Final = without_dictionaries(PAIRS.empty_table()).schema
PLACED_PAIRS: Final = PLAIN_PAIRS.insert(0, PLACE).insert(0, SHARE)
BatchStream = Iterator[pa.RecordBatch]


class StepFailed(Exception):
    """A step ended with an error, whose class it names."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of one gate over one pool; the key lives in the memory of driver and executors as long as the job."""

    gate: CountingGate
    files: Sequence[PoolFile]
    reader: FileReader
    key: bytes
    shares: int

    @property
    def texts_schema(self) -> pa.Schema:
        return self.gate.counts_schema.insert(0, SHARE)

    def digest(self, numbers: BatchStream) -> BatchStream:
        """Read files by number and yield their digests: text rows, or pairs where contributors are capped."""
        return _quietly(self._digests(numbers))

    def cap(self, pairs: pa.Table) -> pa.Table:
        return _quiet(self._capped, pairs)

    def count(self, rows: pa.Table) -> pa.Table:
        return _quiet(self._counted, rows)

    def _digests(self, numbers: BatchStream) -> BatchStream:
        named, read = wants_contributors(self.gate), self.reader.ready()
        for number in (each for batch in numbers for each in batch.column(0).to_pylist()):
            file = self.files[number]
            table = self.gate.collect(read(file, named), key=self.key, first_record=file.first_row)
            shared = self._shared(table)
            if named:
                places = pa.array(np.arange(table.num_rows) + file.first_row)
                shared = shared.add_column(1, PLACE, places)
            yield from shared.to_batches(max_chunksize=BATCH_ROWS)

    def _capped(self, pairs: pa.Table) -> pa.Table:
        digests = pairs.sort_by(PLACE.name).select(PAIRS.names).cast(PLAIN_PAIRS)
        return self._shared(self.gate.merged_texts([encoded_again(digests, PAIRS)], key=self.key))

    def _counted(self, rows: pa.Table) -> pa.Table:
        schema = self.gate.counts_schema
        texts = rows.select(schema.names).cast(schema)
        return _sent(pa.concat_tables([schema.empty_table(), *self.gate.counted([texts], key=self.key)]))

    def _shared(self, table: pa.Table) -> pa.Table:
        shares = self.gate.shares_of(table, key=self.key, shares=self.shares)
        return _sent(without_dictionaries(table).add_column(0, SHARE, pa.array(shares)))


def seen(reader: FileReader, file: PoolFile, numbers: BatchStream) -> BatchStream:
    """Yield one row once a file was opened here; no row of it is read."""

    def looked() -> BatchStream:
        for batch in numbers:
            reader.see(file)
            yield pa.record_batch([batch.column(0)], names=["id"])

    return _quietly(looked())


def versions(batches: BatchStream) -> BatchStream:
    for _ in batches:
        found = " ".join((".".join(map(str, sys.version_info[:3])), np.__version__, pa.__version__))
        yield pa.record_batch([pa.array([found])], names=["found"])


def spark_schema(schema: pa.Schema) -> str:
    return ", ".join(f"{each.name} {SENT[each.type][1]}" for each in schema)


def _sent(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([(each.name, SENT[each.type][0]) for each in table.schema]))


def _quietly(batches: BatchStream) -> BatchStream:
    try:
        yield from batches
    except Exception as error:  # noqa: BLE001 - whatever it is, its words may quote a row
        raise StepFailed(f"{FAILED_WITH}{type(error).__name__}") from None


def _quiet(step: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
    try:
        return step(table)
    except Exception as error:  # noqa: BLE001 - whatever it is, its words may quote a row
        raise StepFailed(f"{FAILED_WITH}{type(error).__name__}") from None
