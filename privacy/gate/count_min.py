"""Count-min sketch: counts of any number of keys in fixed memory, never too low."""

import math
import struct
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from privacy.gate.hashing import Words
from privacy.gate.table import combined

LARGEST_COUNT: Final = 2**32 - 1
LARGEST_DEPTH: Final = 16
_HEADER: Final = struct.Struct("<4sIIQ")
# Odd multipliers, one a row: the high half of hash times multiplier is the row's own hash.
_MULTIPLIERS: Final = np.array(
    [(0x9E3779B97F4A7C15 * (2 * row + 1) ^ (0xD1B54A32D192ED03 << row)) % 2**64 | 1 for row in range(LARGEST_DEPTH)],
    dtype=np.uint64,
)


class CountMinSketch:
    """Counters in `depth` rows; every key has one counter a row, and the smallest bounds its count from above.

    Batches are added conservatively: a counter rises only as far as some key's new bound demands. Whatever the
    order of updates and merges, an estimate is at least the true count.

    Parameters
    ----------
    width : int
        Counters a row, in [1, 2**32 - 1].
    depth : int
        Rows, in [1, 16].

    References
    ----------
    .. [1] Cormode, Muthukrishnan, "An improved data stream summary: the count-min sketch and its applications",
       2005, Theorem 1.
    .. [2] Estan, Varghese, "New directions in traffic measurement and accounting", 2002: conservative update.
    """

    magic: bytes = b"CMS1"

    def __init__(self, width: int, depth: int = 4) -> None:
        if not 1 <= width <= LARGEST_COUNT:
            raise ValueError(f"width must lie in [1, {LARGEST_COUNT}], got {width}")
        if not 1 <= depth <= LARGEST_DEPTH:
            raise ValueError(f"depth must lie in [1, {LARGEST_DEPTH}], got {depth}")
        self.width, self.depth = int(width), int(depth)
        self.total = 0
        self.counters = np.zeros((self.depth, self.width), dtype=np.uint32)

    @classmethod
    def for_error(cls, total: int, error: float, *, failure: float = 0.02) -> Self:
        """Return an empty sketch whose estimates are too high by more than `error` with chance <= `failure` each.

        `total` is the sum of all counts to come. The width is e total / error, the depth ln(1 / failure).
        """
        return cls(*_shape_for_error(total, error, failure))

    @staticmethod
    def bytes_for_error(total: int, error: float, *, failure: float = 0.02) -> int:
        width, depth = _shape_for_error(total, error, failure)
        return width * depth * np.dtype(np.uint32).itemsize

    @property
    def nbytes(self) -> int:
        return int(self.counters.nbytes)

    def update(self, hashes: Words, counts: NDArray[np.integer] | None = None) -> None:
        """Add `counts` (default 1 each) to the keys with these hashes, shape (n,); a hash may repeat.

        `OverflowError` if a counter would pass 2**32 - 1; nothing is added then.
        """
        hashes, counts = combined(hashes, counts)
        if not hashes.size:
            return
        places = self._places(hashes)
        bounds = self._smallest(places) + counts
        if int(bounds.max()) > LARGEST_COUNT:
            raise OverflowError(f"a counter would pass {LARGEST_COUNT}")
        raised = bounds.astype(np.uint32)
        for row, place in zip(self.counters, places, strict=True):
            np.maximum.at(row, place, raised)
        self.total += int(counts.sum())

    def estimate(self, hashes: Words) -> NDArray[np.int64]:
        return self._smallest(self._places(hashes))

    def merge(self, other: Self) -> None:
        if (type(self), self.counters.shape) != (type(other), other.counters.shape):
            raise ValueError(f"shapes must be equal, got {self.counters.shape} and {other.counters.shape}")
        merged = self.counters.astype(np.uint64) + other.counters
        if int(merged.max()) > LARGEST_COUNT:
            raise OverflowError(f"a counter would pass {LARGEST_COUNT}")
        self.counters = merged.astype(np.uint32)
        self.total += other.total

    def to_bytes(self) -> bytes:
        header = _HEADER.pack(self.magic, self.width, self.depth, self.total)
        return header + self.counters.astype("<u4").tobytes()

    @classmethod
    def from_bytes(cls, state: bytes) -> Self:
        magic, width, depth, total = _HEADER.unpack_from(state)
        if magic != cls.magic or len(state) != _HEADER.size + 4 * width * depth:
            raise ValueError(f"these {len(state)} bytes are not the state of a {cls.__name__}")
        sketch = cls(width, depth)
        sketch.total = total
        counters = np.frombuffer(state, dtype="<u4", offset=_HEADER.size)
        sketch.counters = counters.astype(np.uint32).reshape(depth, width)
        return sketch

    def _places(self, hashes: Words) -> list[NDArray[np.int64]]:
        width, half = np.uint64(self.width), np.uint64(32)
        return [
            ((((hashes * multiplier) >> half) * width) >> half).astype(np.int64)
            for multiplier in _MULTIPLIERS[: self.depth]
        ]

    def _smallest(self, places: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        smallest = self.counters[0][places[0]]
        for row, place in zip(self.counters[1:], places[1:], strict=True):
            np.minimum(smallest, row[place], out=smallest)
        bounds: NDArray[np.int64] = smallest.astype(np.int64)
        return bounds


def _shape_for_error(total: int, error: float, failure: float) -> tuple[int, int]:
    if not error > 0:
        raise ValueError(f"error must be > 0, got {error}")
    if not 0 < failure < 1:
        raise ValueError(f"failure must lie in (0, 1), got {failure}")
    return max(1, math.ceil(math.e * max(1, total) / error)), min(LARGEST_DEPTH, math.ceil(-math.log(failure)))
