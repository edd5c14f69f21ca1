"""Texts to hashed word counts, without a vocabulary."""

from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpal.features.clipping import check_norm_bound
from dpal.features.hashing import hashed_counts
from learner.features.base import TextFeaturizer, flat_words
from privacy.gate.normalizers import Normalizer


class HashingTextFeaturizer(TextFeaturizer):
    """Signed hashed counts of word n-grams, each text scaled to the norm bound.

    Parameters
    ----------
    n_features : int
        Columns, >= 2. Few columns mean little training noise, many mean few collisions.
    ngram_range : tuple of int
        Smallest and largest number of words in a feature, 1 <= smallest <= largest.
    norm_bound : float
        L2 norm of every text with at least one word.
    normalizer : str
        Rule of `privacy.gate.normalizers` applied first, so texts that the gate counts together also
        share their features.

    References
    ----------
    .. [1] Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009, eq. 1.
    """

    kind = "hashing_text"
    is_quick = True

    def __init__(
        self,
        n_features: int = 2**7,
        ngram_range: tuple[int, int] = (1, 1),
        norm_bound: float = 1.0,
        normalizer: str = "L1",
    ) -> None:
        smallest, largest = ngram_range
        if n_features < 2:
            raise ValueError(f"n_features must be >= 2, got {n_features}")
        if not 1 <= smallest <= largest:
            raise ValueError(f"ngram_range must satisfy 1 <= smallest <= largest, got {ngram_range}")
        self.n_features = int(n_features)
        self.ngram_range = (int(smallest), int(largest))
        self.norm_bound = check_norm_bound(norm_bound)
        self.normalizer = Normalizer(normalizer)

    def parameters(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "ngram_range": list(self.ngram_range),
            "norm_bound": self.norm_bound,
            "normalizer": self.normalizer.value,
        }

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        smallest, largest = parameters["ngram_range"]
        return cls(**{**parameters, "ngram_range": (smallest, largest)})

    def normal_rows(self, texts: pa.Array) -> NDArray[np.float64]:
        return hashed_counts(flat_words(texts), self.n_features, self.ngram_range)
