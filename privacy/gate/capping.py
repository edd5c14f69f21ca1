"""At most m texts of each contributor, chosen without a look at what others said."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy.gate.hashing import Words, hash_key, hash_texts
from privacy.gate.spill import BoundedRows


def bounded_pairs(cap: int, *, key: bytes, memory_bytes: int) -> BoundedRows:
    """Return where pairs are kept: each contributor's `cap` texts of lowest rank, every text once."""
    return BoundedRows(merge=capping(cap), hash_rows=_contributor_hashes(hash_key(key)), memory_bytes=memory_bytes)


def capping(cap: int) -> Callable[[pa.Table], pa.Table]:
    return lambda pairs: capped(pairs, cap)


def capped(pairs: pa.Table, cap: int) -> pa.Table:
    """Return each contributor's `cap` texts of lowest rank, every (contributor, text) once, by contributor code and
    rank.

    The rank of a pair is the lowest among its records, and its coin is that record's. Which pairs stay depends on the
    contributor's own records and their secret words alone, and capping in stages gives the same as capping once.
    `pairs` has the columns text and contributor (dictionary-encoded), rank (uint32) and others that go along; rows in
    record order, or ranges of records capped before, in order.
    """
    pairs = pairs.unify_dictionaries().combine_chunks()
    if not pairs.num_rows:
        return pairs
    texts, contributors = (pairs[name].combine_chunks() for name in ("text", "contributor"))
    codes = contributors.indices.to_numpy().astype(np.int64)
    order = _order(codes.astype(np.uint64) << np.uint64(32) | pairs["rank"].combine_chunks().to_numpy())
    codes = codes[order]
    first = _first_of_each(codes * len(texts.dictionary) + texts.indices.to_numpy()[order])
    kept = order[first][places_within(codes[first]) < cap]
    return pairs.take(pa.array(kept))


def places_within(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each row among the rows of its group, from 0; equal groups stand together."""
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    return np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))


def _order(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    order = np.argsort(keys)
    ordered = keys[order]
    # Ranks of 32 bits are seldom equal, and the faster sort does not keep row order where they are.
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(keys, kind="stable")
    return order


def _first_of_each(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    # Equal values lie near each other, among the rows of one contributor, which this sort turns to account.
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.zeros(len(values), dtype=np.bool_)
    first[order[np.r_[True, ordered[1:] != ordered[:-1]]]] = True
    return first


def _contributor_hashes(key: bytes) -> Callable[[pa.Table], Words]:
    def hash_rows(pairs: pa.Table) -> Words:
        contributors = pairs["contributor"].combine_chunks()
        hashes: Words = hash_texts(contributors.dictionary, key=key)[contributors.indices.to_numpy()]
        return hashes

    return hash_rows
