"""Exact counts of contributions by text, whole or in stages that any number of workers may share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy.contributions.capping import bounded_pairs, capping
from privacy.contributions.coins import check_key, share_key
from privacy.contributions.recount import frequent_texts, summing
from privacy.contributions.spill import DEFAULT_MEMORY_BYTES, Merging
from privacy.sketches.hashing import hash_texts

MERGED_AT_LEAST: Final = DEFAULT_MEMORY_BYTES // 16


class CountingGate(ABC):
    """What both gates share: reading, capping and counting, by one process or by many.

    In stages: `collect` digests a range of records; `shares_of` says by the keyed hash of the contributor, or of the
    text once there are no contributors any more, where each row goes; `texts` caps what came together of a share of the
    contributors; `counted` adds up a share of the texts. How many ranges, shares and workers there are changes no
    count, because every coin and rank belongs to a place in the records, and all rows of a contributor, and of a text,
    meet in one share.
    """

    __slots__ = ()
    texts_per_contributor: int | None

    @property
    @abstractmethod
    def minimum(self) -> int:
        """Smallest exact count that is looked at further, >= 1."""

    @property
    @abstractmethod
    def counts_schema(self) -> pa.Schema:
        """Columns of text rows."""

    @property
    @abstractmethod
    def _digest_schema(self) -> pa.Schema:
        """Columns of a digest."""

    @abstractmethod
    def read(self, batches: Iterable[pa.RecordBatch], *, key: bytes, first_record: int = 0) -> Iterator[pa.Table]:
        """Yield digests batch by batch: text rows, or pairs of text and contributor where these are capped."""

    @abstractmethod
    def _texts_of(self, pairs: pa.Table) -> pa.Table:
        """Return text rows of capped pairs, all those of their contributors together."""

    def collect(self, batches: Iterable[pa.RecordBatch], *, key: bytes, first_record: int = 0) -> pa.Table:
        """Digest one range of records; the result is as private as the records themselves.

        `first_record` is the number of records in all earlier ranges, so that ranges can be
        collected apart and in any order.
        """
        check_key(key)
        merge = summing if self.texts_per_contributor is None else capping(self.texts_per_contributor)
        merging = Merging(merge, at_least=MERGED_AT_LEAST)
        merging.add(self._digest_schema.empty_table())
        for part in self.read(batches, key=key, first_record=first_record):
            merging.add(part)
        return merging.result()

    def shares_of(self, table: pa.Table, *, key: bytes, shares: int) -> NDArray[np.int32]:
        """Return the share of each row of a digest, or of text rows; equal contributors, or texts, meet in one."""
        column = table["contributor" if "contributor" in table.column_names else "text"].combine_chunks()
        if pa.types.is_dictionary(column.type):
            hashes = hash_texts(column.dictionary, key=share_key(key))[column.indices.to_numpy()]
        else:
            hashes = hash_texts(column, key=share_key(key))
        place: NDArray[np.int32] = (((hashes >> np.uint64(32)) * np.uint64(shares)) >> np.uint64(32)).astype(np.int32)
        return place

    def texts(
        self, parts: Iterable[pa.Table], *, key: bytes, memory_bytes: int = DEFAULT_MEMORY_BYTES
    ) -> Iterator[pa.Table]:
        """Yield text rows of digests, given in record order; contributors are capped on the way."""
        if self.texts_per_contributor is None:
            yield from parts
            return
        kept = bounded_pairs(self.texts_per_contributor, key=key, memory_bytes=memory_bytes)
        for part in parts:
            kept.add(part)
        for share in kept.shares():
            yield self._texts_of(share)

    def counted(
        self, rows: Iterable[pa.Table], *, key: bytes, memory_bytes: int = DEFAULT_MEMORY_BYTES
    ) -> Iterator[pa.Table]:
        """Yield the texts that reach `minimum`, with exact sums, in disjoint tables."""
        return frequent_texts(rows, minimum=self.minimum, key=key, memory_bytes=memory_bytes)

    def merged_texts(self, parts: Iterable[pa.Table], *, key: bytes) -> pa.Table:
        """Return the text rows of one share of the contributors as one table."""
        merging = Merging(summing, at_least=MERGED_AT_LEAST)
        empty = True
        for part in self.texts(parts, key=key):
            merging.add(part)
            empty = False
        return self.counts_schema.empty_table() if empty else merging.result()
