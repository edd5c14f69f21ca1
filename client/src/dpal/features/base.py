"""Base class of featurisers: rows of bounded norm, the same numbers on the site and here."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.features.clipping import clip_rows

Rows = NDArray[np.float64]


class Featurizer(ABC):
    """Map records to rows of numbers, each from its own record alone.

    Attributes
    ----------
    records : {"texts", "rows", "images"}
        What it reads.
    numbers : set of str
        Columns of rows that hold numbers.
    norm_bound : float
        Largest L2 norm of a row.
    tolerance : float
        How far probabilities may be from the site's; rows are the same numbers but for those of a network.
    """

    records: str
    numbers: Set[str] = frozenset()
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
            yield clip_rows(rows, norm_bound=self.norm_bound).astype(np.float64)

    def transform(self, records: Any) -> NDArray[np.float32]:
        return np.concatenate([block.astype(np.float32) for block in self.blocks(records)])


def scaled_to(rows: Rows, norm_bound: float) -> Rows:
    """Stretch every row other than zero to the bound."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    factors: Rows = np.divide(norm_bound, norms, out=np.zeros_like(norms), where=norms > 0)
    return rows * factors
