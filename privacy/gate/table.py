"""Exact counts of 64-bit hashes, twelve bytes a key: smaller than a sketch while there are few keys."""

import struct
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from privacy.gate.hashing import Words

BYTES_PER_KEY: Final = 12
LARGEST_COUNT: Final = 2**32 - 1
_HEADER: Final = struct.Struct("<4sQ")
_MAGIC: Final = b"TAB1"


class CountTable:
    """A sorted table of hashes and their counts; two texts with one hash share a count, so it is never too low."""

    def __init__(self) -> None:
        self.hashes: Words = np.empty(0, dtype=np.uint64)
        self.counts: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def total(self) -> int:
        return int(self.counts.sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes + self.counts.nbytes)

    def update(self, hashes: Words, counts: NDArray[np.integer] | None = None) -> None:
        """Add `counts` (default 1 each) to the keys with these hashes, shape (n,); a hash may repeat.

        Raises
        ------
        ValueError
            If a count is negative.
        OverflowError
            If a count would pass 2**32 - 1; nothing is added then.
        """
        hashes, counts = combined(hashes, counts)
        if not hashes.size:
            return
        order = np.argsort(hashes)
        hashes, counts = hashes[order], counts[order]
        places = np.searchsorted(self.hashes, hashes)
        known = np.zeros(len(hashes), dtype=np.bool_)
        inside = places < len(self.hashes)
        known[inside] = self.hashes[places[inside]] == hashes[inside]
        raised = self.counts[places[known]] + counts[known]
        if max(int(raised.max(initial=0)), int(counts[~known].max(initial=0))) > LARGEST_COUNT:
            raise OverflowError(f"a count would pass {LARGEST_COUNT}")
        self.counts[places[known]] = raised.astype(np.uint32)
        self._insert(places[~known], hashes[~known], counts[~known].astype(np.uint32))

    def estimate(self, hashes: Words) -> NDArray[np.int64]:
        """Return the count of every key, shape (n,); zero for one that was never added."""
        found = np.zeros(len(hashes), dtype=np.int64)
        if not len(self):
            return found
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self) - 1)
        known = self.hashes[places] == hashes
        found[known] = self.counts[places[known]]
        return found

    def merge(self, other: Self) -> None:
        self.update(other.hashes, other.counts)

    def to_bytes(self) -> bytes:
        header = _HEADER.pack(_MAGIC, len(self))
        return header + self.hashes.astype("<u8").tobytes() + self.counts.astype("<u4").tobytes()

    @classmethod
    def from_bytes(cls, state: bytes) -> Self:
        magic, size = _HEADER.unpack_from(state)
        if magic != _MAGIC or len(state) != _HEADER.size + BYTES_PER_KEY * size:
            raise ValueError(f"these {len(state)} bytes are not the state of a {cls.__name__}")
        table = cls()
        table.hashes = np.frombuffer(state, "<u8", count=size, offset=_HEADER.size).astype(np.uint64)
        table.counts = np.frombuffer(state, "<u4", offset=_HEADER.size + 8 * size).astype(np.uint32)
        return table

    def _insert(self, places: NDArray[np.int64], hashes: Words, counts: NDArray[np.uint32]) -> None:
        if not hashes.size:
            return
        taken = places + np.arange(len(places))
        old = np.ones(len(self) + len(hashes), dtype=np.bool_)
        old[taken] = False
        grown_hashes, grown_counts = np.empty(len(old), dtype=np.uint64), np.empty(len(old), dtype=np.uint32)
        grown_hashes[taken], grown_counts[taken] = hashes, counts
        grown_hashes[old], grown_counts[old] = self.hashes, self.counts
        self.hashes, self.counts = grown_hashes, grown_counts


def combined(hashes: Words, counts: NDArray[np.integer] | None) -> tuple[Words, NDArray[np.int64]]:
    """Return every hash once with the sum of its counts."""
    summed = np.ones(len(hashes), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    if hashes.ndim != 1 or summed.shape != hashes.shape:
        raise ValueError(f"hashes and counts must be vectors of one length, got {hashes.shape} and {summed.shape}")
    if summed.size and int(summed.min()) < 0:
        raise ValueError(f"counts must not be negative, got {int(summed.min())}")
    if not _repeats(hashes):
        return hashes, summed
    # Added one by one in a batch, the same key twice would count as the larger of the two only.
    distinct, places = np.unique(hashes, return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, places, summed)
    return distinct, sums


def _repeats(hashes: Words) -> bool:
    rows = np.arange(len(hashes), dtype=np.int32)
    slots = (hashes & np.uint64((2 << len(hashes).bit_length()) - 1)).astype(np.int64)
    holders = np.empty(2 << len(hashes).bit_length(), dtype=np.int32)
    holders[slots] = rows
    # Equal hashes meet in one slot: either one of them holds it, or both are among those that lost it.
    lost = np.flatnonzero(holders[slots] != rows)
    if (hashes[holders[slots[lost]]] == hashes[lost]).any():
        return True
    losers = np.sort(hashes[lost])
    return bool((losers[1:] == losers[:-1]).any())
