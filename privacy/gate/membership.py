"""Bloom filter: whether a (contributor, text) pair was seen before, in about ten bits a pair."""

import math
import struct
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from privacy.gate.hashing import Words

_HEADER: Final = struct.Struct("<4sQI")
_MAGIC: Final = b"BLM1"


class MembershipSketch:
    """A set of 64-bit hashes that may claim to hold one it does not, and never forgets one it holds.

    New pairs counted with it are therefore too few, by at most the false positive rate: good for a plan, not for a
    count that must never be too low. `bits`, >= 64, is rounded up to whole bytes; a key has `probes` bits, in [1, 32].
    (Kirsch, Mitzenmacher, "Less hashing, same performance: building a better Bloom filter", 2006.)
    """

    def __init__(self, bits: int, probes: int = 7) -> None:
        if bits < 64:
            raise ValueError(f"bits must be >= 64, got {bits}")
        if not 1 <= probes <= 32:
            raise ValueError(f"probes must lie in [1, 32], got {probes}")
        self.bits, self.probes = -(-int(bits) // 8) * 8, int(probes)
        self.filled: NDArray[np.uint8] = np.zeros(self.bits // 8, dtype=np.uint8)

    @classmethod
    def for_error(cls, keys: int, error: float) -> Self:
        if not 0 < error < 1:
            raise ValueError(f"error must lie in (0, 1), got {error}")
        bits = math.ceil(max(1, keys) * -math.log(error) / math.log(2) ** 2)
        return cls(max(64, bits), min(32, max(1, round(-math.log2(error)))))

    @property
    def nbytes(self) -> int:
        return int(self.filled.nbytes)

    def contains(self, hashes: Words) -> NDArray[np.bool_]:
        """Return for every key whether it may have been added, shape (n,); False is certain."""
        found = np.ones(len(hashes), dtype=np.bool_)
        for place, bit in self._probes(hashes):
            found &= (self.filled[place] & bit) != 0
        return found

    def update(self, hashes: Words, counts: NDArray[np.integer] | None = None) -> NDArray[np.bool_]:
        """Add keys; return which of them were certainly new, the first of equal ones in a batch included."""
        del counts
        fresh = ~self.contains(hashes)
        _, first = np.unique(hashes, return_index=True)
        leading = np.zeros(len(hashes), dtype=np.bool_)
        leading[first] = True
        for place, bit in self._probes(hashes):
            np.bitwise_or.at(self.filled, place, bit)
        return fresh & leading

    def merge(self, other: Self) -> None:
        if (self.bits, self.probes) != (other.bits, other.probes):
            shapes = f"{(self.bits, self.probes)} and {(other.bits, other.probes)}"
            raise ValueError(f"(bits, probes) must be equal, got {shapes}")
        self.filled |= other.filled

    def to_bytes(self) -> bytes:
        return _HEADER.pack(_MAGIC, self.bits, self.probes) + self.filled.tobytes()

    @classmethod
    def from_bytes(cls, state: bytes) -> Self:
        magic, bits, probes = _HEADER.unpack_from(state)
        if magic != _MAGIC or len(state) != _HEADER.size + bits // 8:
            raise ValueError(f"these {len(state)} bytes are not the state of a {cls.__name__}")
        restored = cls(bits, probes)
        restored.filled = np.frombuffer(state, dtype=np.uint8, offset=_HEADER.size).copy()
        return restored

    def _probes(self, hashes: Words) -> list[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        start = hashes % np.uint64(self.bits)
        # An odd step taken from the other half of the word.
        step = (hashes >> np.uint64(32)) | np.uint64(1)
        probes = []
        for number in range(self.probes):
            bit = (start + np.uint64(number) * step) % np.uint64(self.bits)
            probes.append(
                ((bit >> np.uint64(3)).astype(np.int64), np.uint8(1) << (bit & np.uint64(7)).astype(np.uint8))
            )
        return probes
