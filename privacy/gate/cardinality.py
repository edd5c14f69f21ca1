"""HyperLogLog: how many distinct texts there are, in a few kilobytes."""

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privacy.gate.hashing import Words


class Cardinality:
    """Number of distinct keys: registers filled a batch at a time, state and estimate those of datasketch.

    Parameters
    ----------
    precision : int
        The base-2 logarithm of the number of registers, in [4, 16]; one standard error is 1.04 / 2**(precision / 2).

    References
    ----------
    .. [1] Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog", 2007.
    .. [2] Heule, Nunkesser, Hall, "HyperLogLog in practice", 2013.
    """

    def __init__(self, precision: int = 14) -> None:
        if not 4 <= precision <= 16:
            raise ValueError(f"precision must lie in [4, 16], got {precision}")
        self.precision = int(precision)
        self.registers: NDArray[np.int8] = np.zeros(1 << self.precision, dtype=np.int8)

    @property
    def standard_error(self) -> float:
        return 1.04 / math.sqrt(len(self.registers))

    @property
    def nbytes(self) -> int:
        return int(self.registers.nbytes)

    def update(self, hashes: Words, counts: NDArray[np.integer] | None = None) -> None:
        """Add the keys with these hashes, shape (n,); how often each comes (`counts`) makes no difference."""
        del counts
        places = (hashes & np.uint64(len(self.registers) - 1)).astype(np.int64)
        rest = hashes >> np.uint64(self.precision)
        ranks = (64 - self.precision + 1 - _bit_lengths(rest)).astype(np.int8)
        np.maximum.at(self.registers, places, ranks)

    def count(self) -> float:
        from datasketch import HyperLogLogPlusPlus  # noqa: PLC0415  # slow import

        return float(HyperLogLogPlusPlus(reg=self.registers).count())

    def merge(self, other: Self) -> None:
        if self.precision != other.precision:
            raise ValueError(f"precisions must be equal, got {self.precision} and {other.precision}")
        np.maximum(self.registers, other.registers, out=self.registers)

    def to_bytes(self) -> bytes:
        """Return the state as `datasketch.HyperLogLogPlusPlus` writes and reads it; as private as the records."""
        return bytes([self.precision]) + self.registers.tobytes()

    @classmethod
    def from_bytes(cls, state: bytes) -> Self:
        sketch = cls(state[0])
        if len(state) != 1 + len(sketch.registers):
            raise ValueError(f"these {len(state)} bytes are not the state of a {cls.__name__}")
        sketch.registers = np.frombuffer(state, dtype=np.int8, offset=1).copy()
        return sketch


def _bit_lengths(words: Words) -> NDArray[np.int64]:
    """Return the position of the highest bit of every word, counted from 1; 0 for 0."""
    high = words >> np.uint64(32)
    # Halves are exact as float64, whole words would round up to the next power of two.
    upper = np.frexp(high.astype(np.float64))[1]
    lower = np.frexp((words & np.uint64(0xFFFFFFFF)).astype(np.float64))[1]
    return np.where(high > 0, upper + 32, lower).astype(np.int64)
