"""Candidates of a pool without a list of them: in row order, a block at a time, and any of them by its place."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Rows64 = NDArray[np.int64]
NO_ROWS: Rows64 = np.empty(0, dtype=np.int64)


class Rows(Protocol):
    """Distinct rows of a feature file, each at a place from 0."""

    def __len__(self) -> int:
        """Return how many there are."""

    def at(self, places: Rows64) -> Rows64:
        """Return the rows at these places."""

    def blocks(self, size: int) -> Iterator[Rows64]:
        """Yield all rows in order, `size` at once; the last block may be shorter."""


class ListedRows:
    """Rows that somebody has listed, shape (m,)."""

    def __init__(self, rows: Rows64) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Rows64) -> Rows64:
        return self.rows[places]

    def blocks(self, size: int) -> Iterator[Rows64]:
        for start in range(0, len(self.rows), size):
            yield self.rows[start : start + size]


class OpenRows:
    """All rows from 0 to `total` but those that are `taken`, in any order: 8 bytes for each of these."""

    def __init__(self, total: int, taken: Rows64) -> None:
        self.taken: Rows64 = np.unique(taken)
        if self.taken.size and not (self.taken[0] >= 0 and self.taken[-1] < total):
            raise ValueError(f"taken rows must be among the {total} there are")
        self.total = int(total)
        # How many open rows lie before each taken one.
        self._before: Rows64 = self.taken - np.arange(len(self.taken), dtype=np.int64)

    def __len__(self) -> int:
        return self.total - len(self.taken)

    def at(self, places: Rows64) -> Rows64:
        return places + np.searchsorted(self._before, places, side="right")

    def blocks(self, size: int) -> Iterator[Rows64]:
        for start in range(0, len(self), size):
            places = np.arange(start, min(start + size, len(self)), dtype=np.int64)
            first, last = self.at(places[[0, -1]]).tolist()
            if last - first == len(places) - 1:
                places += first - start
                yield places
            else:
                yield self.at(places)

    def only(self, rows: Rows64) -> Rows64:
        kept: Rows64 = rows[np.append(self.taken, -1)[np.searchsorted(self.taken, rows)] != rows]
        return kept

    def mask(self) -> NDArray[np.bool_]:
        is_open = np.ones(self.total, dtype=np.bool_)
        is_open[self.taken] = False
        return is_open


class WatchedRows:
    """Rows that tell how many of them were taken out, each time before a block is."""

    def __init__(self, rows: Rows, heard: Callable[[int], None]) -> None:
        self._rows, self._heard = rows, heard

    def __len__(self) -> int:
        return len(self._rows)

    def at(self, places: Rows64) -> Rows64:
        return self._rows.at(places)

    def blocks(self, size: int) -> Iterator[Rows64]:
        taken = 0
        for block in self._rows.blocks(size):
            self._heard(taken)
            yield block
            taken += len(block)
