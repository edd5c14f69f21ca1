"""What every featuriser does: rows of bounded norm, rounded as the site rounds them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
UNIT_ROUNDOFF = 2.0**-53


class Featurizer(ABC):
    """Map records to rows of numbers, each from its own record alone.

    Attributes
    ----------
    records : {"texts", "rows", "images"}
        What it reads.
    norm_bound : float
        Largest L2 norm of a row.
    tolerance : float
        How far probabilities may be from the site's; rows are the same numbers but for those of a network.
    """

    records: str
    norm_bound: float
    tolerance: float = 1e-6

    @classmethod
    @abstractmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "Featurizer":
        """Build it from its parameters and the other files of the release."""

    @abstractmethod
    def raw_rows(self, records: Any) -> Iterator[Rows]:
        """Yield rows of norm up to rounding, shape (m, d), a block of records at a time and in their order."""

    def blocks(self, records: Any) -> Iterator[Rows]:
        """Yield rows as the model was trained on them: the numbers of float32 that keep the bound exactly."""
        for rows in self.raw_rows(records):
            yield clipped(rows, self.norm_bound)

    def transform(self, records: Any) -> NDArray[np.float32]:
        """Return all rows at once, shape (n, d)."""
        return np.concatenate([block.astype(np.float32) for block in self.blocks(records)])


def scaled_to(rows: Rows, norm_bound: float) -> Rows:
    """Stretch every row other than zero to the bound."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    factors: Rows = np.divide(norm_bound, norms, out=np.zeros_like(norms), where=norms > 0)
    return rows * factors


def clipped(rows: Rows, norm_bound: float) -> Rows:
    """Shorten rows to the bound with room for rounding, then round towards zero to float32.

    Rows come from bounded parts, so there are no infinities to look after.
    """
    room = 4 * (rows.shape[1] + 8) * UNIT_ROUNDOFF
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    long = norms > norm_bound * (1 - room)
    if long.any():
        rows = rows.copy()
        rows[long] *= (norm_bound * (1 - 2 * room) / norms[long])[:, None]
    narrow = rows.astype(np.float32)
    grown = np.abs(narrow) > np.abs(rows)
    narrow[grown] = np.nextafter(narrow[grown], np.float32(0))
    return narrow.astype(np.float64)
