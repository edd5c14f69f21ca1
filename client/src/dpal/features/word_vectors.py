"""Texts to the sum of public vectors of their word pieces, whose table is in the release."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.errors import NotGenuine
from dpal.features.base import Featurizer, Rows, scaled_to
from dpal.features.normal import Words
from dpal.features.pieces import WordPieces
from dpal.files import sha256_of

TABLE = "encoder.npz"
BLOCK_TEXTS = 8192
# Texts summed at a time, so that their sums stay within the processor's cache.
SUMMED_TEXTS = 512
# Words whose vectors are kept between blocks.
MOST_WORDS = 50_000


class WordVectors(Featurizer):
    """Sum of the vectors of a text's word pieces, scaled to the norm bound.

    References
    ----------
    .. [1] Arora, Liang, Ma, "A simple but tough-to-beat baseline for sentence embeddings", ICLR 2017.
    """

    records = "texts"

    def __init__(self, words: Words, table: Path, n_features: int, norm_bound: float) -> None:
        self.words = words
        self.n_features = n_features
        self.norm_bound = norm_bound
        with np.load(table, allow_pickle=False) as held:
            vocabulary = bytes(held["vocabulary"]).decode().split("\n")
            self._vectors: NDArray[np.int8] = held["vectors"]
            self._scales: Rows = held["scales"].astype(np.float64)
        self._pieces = WordPieces({piece: number for number, piece in enumerate(vocabulary)})

    @classmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "WordVectors":
        """Build it with the table of the release, which features.json names by digest."""
        if TABLE not in files:
            raise NotGenuine(f"The release makes its features by a table, and brings no {TABLE}.")
        if sha256_of(files[TABLE]) != parameters["table_sha256"]:
            raise NotGenuine(f"{TABLE} is not the table that features.json names.")
        words = Words.from_release(parameters["normalizer"], files)
        return cls(words, files[TABLE], parameters["n_features"], parameters["norm_bound"])

    def raw_rows(self, records: Sequence[str | None]) -> Iterator[Rows]:
        """Yield rows of a block of texts each."""
        places: dict[bytes, int] = {b"\0": 0}
        vectors = np.zeros((1, self.n_features))
        for start in range(0, len(records), BLOCK_TEXTS):
            texts = records[start : start + BLOCK_TEXTS]
            if len(places) > MOST_WORDS:
                places, vectors = {b"\0": 0}, vectors[:1]
            flat = self.words.flat(texts)
            numbers = np.array([places.setdefault(word, len(places)) for word in flat], dtype=np.intp)
            added = list(islice(places, len(vectors), None))
            vectors = np.concatenate([vectors, *(self._vector(word)[None] for word in added)])
            yield scaled_to(_sums(vectors, numbers), self.norm_bound)

    def _vector(self, word: bytes) -> Rows:
        cut = self._pieces.of_word(word.decode("utf-8", "surrogatepass"))
        vector: Rows = self._scales[cut] @ self._vectors[cut, : self.n_features].astype(np.float64)
        return vector


def _sums(vectors: Rows, numbers: NDArray[np.intp]) -> Rows:
    """Return the sum of each text's vectors, added in the order of its words; the number 0 ends a text."""
    ends = np.flatnonzero(numbers == 0)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts
    sums = np.zeros((len(ends), vectors.shape[1]))
    for first in range(0, len(ends), SUMMED_TEXTS):
        some = slice(first, first + SUMMED_TEXTS)
        # All first words, then all second ones: each text adds up in its own order.
        order = np.argsort(-lengths[some], kind="stable")
        begins, left = starts[some][order], lengths[some][order]
        added = np.zeros((len(order), vectors.shape[1]))
        for place in range(int(left[0])):
            still = int(np.searchsorted(-left, -place, side="left"))
            added[:still] += vectors[numbers[begins[:still] + place]]
        sums[some][order] = added
    return sums
