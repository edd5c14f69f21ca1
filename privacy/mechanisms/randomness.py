"""Sources of random bits: the operating system for releases, a seed for simulations only."""

import os
from abc import ABC, abstractmethod
from typing import ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Size = int | tuple[int, ...]


class RandomSource(ABC):
    """The few methods of a numpy generator that mechanisms use, all derived from 64-bit words.

    Attributes
    ----------
    simulated : bool
        True where the words can be predicted. What such a source made carries no guarantee
        and must never be released.
    """

    simulated: ClassVar[bool]

    @abstractmethod
    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` independent uniform 64-bit words, shape (count,)."""

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2**count)."""
        n_words = -(-count // 64)
        return int.from_bytes(self.words(n_words).tobytes(), "little") >> (64 * n_words - count)

    @overload
    def random(self, size: None = None) -> float: ...
    @overload
    def random(self, size: Size) -> NDArray[np.float64]: ...
    def random(self, size: Size | None = None) -> float | NDArray[np.float64]:
        """Return uniform multiples of 2**-53 in [0, 1): below q with probability ceil(q 2**53) / 2**53."""
        if size is None:
            return self.bits(53) * 2.0**-53
        return (self.words(_count(size)) >> np.uint64(11)).astype(np.float64).reshape(size) * 2.0**-53

    @overload
    def integers(self, low: int, high: int | None = None, size: None = None) -> int: ...
    @overload
    def integers(self, low: int, high: int | None = None, *, size: Size) -> NDArray[np.int64]: ...
    def integers(self, low: int, high: int | None = None, size: Size | None = None) -> int | NDArray[np.int64]:
        """Return integers uniform on [low, high), or [0, low) where `high` is missing, without modulo bias."""
        start, stop = (0, low) if high is None else (low, high)
        span = stop - start
        if not 1 <= span <= 2**63:
            raise ValueError(f"the range must hold between 1 and 2**63 integers, got [{start}, {stop})")
        count = 1 if size is None else _count(size)
        shift = np.uint64(64 - max(1, (span - 1).bit_length()))
        kept = self.words(count) >> shift
        # Words past the range are drawn again: each accepted one is uniform.
        while (outside := np.flatnonzero(kept >= np.uint64(span))).size:
            kept[outside] = self.words(outside.size) >> shift
        drawn = kept.astype(np.int64) + start
        return int(drawn[0]) if size is None else drawn.reshape(size)

    def permutation(self, x: int | ArrayLike) -> NDArray[np.generic]:
        """Return ``arange(x)``, or the rows of `x`, in uniform random order."""
        rows: NDArray[np.generic] = np.arange(x) if isinstance(x, int) else np.asarray(x)
        while True:
            keys = self.words(len(rows))
            order = np.argsort(keys)
            ranked = keys[order]
            # A repeated key would leave the order of two rows to the sorting algorithm.
            if not (ranked[1:] == ranked[:-1]).any():
                return rows[order]

    @overload
    def exponential(self, scale: float = 1.0, size: None = None) -> float: ...
    @overload
    def exponential(self, scale: float = 1.0, *, size: Size) -> NDArray[np.float64]: ...
    def exponential(self, scale: float = 1.0, size: Size | None = None) -> float | NDArray[np.float64]:
        """Return exponential draws with mean `scale`, rounded to float64: for simulations, not for release noise."""
        drawn = -np.log1p(-self.random(1 if size is None else size)) * scale
        return float(drawn[0]) if size is None else drawn


class SecureRandom(RandomSource):
    """Words from the operating system's cryptographic generator; no state, so safe across forks and threads."""

    simulated = False

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


class SimulationRandom(RandomSource):
    """Simulation without guarantee: a numpy generator of a seed >= 0, or of a seed drawn from one."""

    simulated = True

    def __init__(self, seed: int | np.random.Generator) -> None:
        # Always the default kind of generator, whose raw words have 64 bits.
        self.generator = np.random.default_rng(
            int(seed.integers(2**63)) if isinstance(seed, np.random.Generator) else seed
        )

    def words(self, count: int) -> NDArray[np.uint64]:
        return self.generator.bit_generator.random_raw(count)


def random_source(random_state: RandomSource | int | np.integer | np.random.Generator | None) -> RandomSource:
    """Return the source that scikit-learn's `random_state` stands for: secure for None, simulated for a seed."""
    if random_state is None:
        return SecureRandom()
    if isinstance(random_state, RandomSource):
        return random_state
    return SimulationRandom(random_state if isinstance(random_state, np.random.Generator) else int(random_state))


def _count(size: Size) -> int:
    return size if isinstance(size, int) else int(np.prod(size))
