"""Exact counts of texts in bounded memory: a sketch that never counts too low goes first, exact counts decide."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy.gate.cardinality import Cardinality
from privacy.gate.count_min import CountMinSketch
from privacy.gate.hashing import Words, hash_key, hash_texts
from privacy.gate.spill import HASH, BoundedRows, Spill
from privacy.gate.table import BYTES_PER_KEY, CountTable

# A text that misses the minimum by half of it is taken for a candidate with at most this chance.
FAILURE: Final = 0.02
# Rows whose distinct texts, with a table of them, about fill a core's own cache.
CACHED_ROWS: Final = 2**16


def frequent_texts(parts: Iterable[pa.Table], *, minimum: int, key: bytes, memory_bytes: int) -> Iterator[pa.Table]:
    """Yield the texts whose counts add up to `minimum` or more, in disjoint tables with exact sums.

    `parts` have the columns text (large_string), sample_count (int64, >= 1), and more to be summed; texts may repeat.
    Beyond `memory_bytes` the merged rows go to a file.
    """
    rows = BoundedRows(merge=summing, hash_rows=_text_hashes(hash_key(key)), memory_bytes=memory_bytes)
    for part in parts:
        rows.add(part)
    if rows.spill is None or minimum == 1:
        shares = rows.shares()
    else:
        counts, distinct = prefilter(rows.spill, minimum)
        # At most this many texts can reach the minimum, and the sketch lets few others through.
        candidates = counts.total / minimum + FAILURE * distinct
        shares = rows.shares(
            keep=lambda hashes: counts.estimate(hashes) >= minimum, part=2 * candidates / max(1.0, distinct)
        )
    for share in shares:
        yield share.filter(pc.greater_equal(share["sample_count"], minimum))


def prefilter(spill: Spill, minimum: int) -> tuple[CountMinSketch | CountTable, float]:
    """Return bounds on the counts of all spilled texts, from the smaller of two structures, and how many there are.

    The sketch is sized so that an estimate exceeds its count by half the minimum with chance at most `FAILURE`; the
    number of distinct texts comes from a HyperLogLog.
    """
    cardinality, total = Cardinality(14), 0
    for table in spill.tables(columns=[HASH, "sample_count"]):
        cardinality.update(table[HASH].combine_chunks().to_numpy())
        total += pc.sum(table["sample_count"]).as_py() or 0
    distinct = cardinality.count()
    counts = sized_counts(distinct, total, error=minimum / 2, failure=FAILURE)
    for table in spill.tables(columns=[HASH, "sample_count"]):
        counts.update(table[HASH].combine_chunks().to_numpy(), table["sample_count"].combine_chunks().to_numpy())
    return counts, distinct


def sized_counts(distinct: float, total: int, *, error: float, failure: float) -> CountMinSketch | CountTable:
    sketch_bytes = CountMinSketch.bytes_for_error(total, error, failure=failure)
    if distinct * (1 + 5 * Cardinality(14).standard_error) * BYTES_PER_KEY <= sketch_bytes:
        return CountTable()
    return CountMinSketch.for_error(total, error, failure=failure)


def summing(table: pa.Table) -> pa.Table:
    """Add up all columns but text, which are int64, over equal texts."""
    parts = 1 << (table.num_rows // CACHED_ROWS).bit_length()
    if parts == 1:
        return _summed(table)
    # The table is never copied as a whole: beside it there is one part of it, and what was summed of the others.
    batches = table.to_batches(max_chunksize=CACHED_ROWS)
    places = [_parts_of(batch.column("text"), parts) for batch in batches]
    return pa.concat_tables(
        _summed(
            pa.Table.from_batches(
                batch.take(pa.array(np.flatnonzero(place == part)))
                for batch, place in zip(batches, places, strict=True)
            )
        )
        for part in range(parts)
    )


def _summed(table: pa.Table) -> pa.Table:
    # Half the time of a group_by, which hashes rows and not one column.
    encoded = table["text"].combine_chunks().dictionary_encode()
    summed = {"text": encoded.dictionary}
    for name in table.column_names[1:]:
        sums = np.zeros(len(encoded.dictionary), dtype=np.int64)
        np.add.at(sums, encoded.indices.to_numpy(), table[name].to_numpy())
        summed[name] = pa.array(sums)
    return pa.table(summed)


def _parts_of(texts: pa.Array, parts: int) -> NDArray[np.uint16]:
    _, offsets, data = texts.buffers()
    edges = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(data or b"\0", dtype=np.uint8)
    lengths = np.diff(edges)
    # A text's length, its last byte and the one in the middle tell it from most others and cost next to nothing.
    last = letters[np.maximum(edges[1:] - 1, 0)].astype(np.int64)
    middle = letters[np.minimum(edges[:-1] + lengths // 2, len(letters) - 1)].astype(np.int64)
    mixed = np.where(lengths > 0, lengths * 7 + last * 5 + middle * 11, 0)
    place: NDArray[np.uint16] = ((mixed ^ (mixed >> 4)) & (parts - 1)).astype(np.uint16)
    return place


def _text_hashes(key: bytes) -> Callable[[pa.Table], Words]:
    return lambda table: hash_texts(table["text"].combine_chunks(), key=key)
