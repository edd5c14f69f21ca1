"""Texts to the sum of public vectors of their word pieces, whose table is in the release."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpal.errors import NotGenuine
from dpal.features.base import Featurizer, Rows, scaled_to
from dpal.features.normal import Words
from dpal.features.pieces import uncased_tokenizer
from dpal.files import sha256_of

TABLE = "encoder.npz"
Text = TypeVar("Text")
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

    def __init__(self, words: Words, table: "PieceTable", n_features: int, norm_bound: float) -> None:
        self.words = words
        self.table = table
        self.n_features = n_features
        self.norm_bound = norm_bound

    @classmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "WordVectors":
        if TABLE not in files:
            raise NotGenuine(f"The release makes its features by a table, and brings no {TABLE}.")
        if sha256_of(files[TABLE]) != parameters["table_sha256"]:
            raise NotGenuine(f"{TABLE} is not the table that features.json names.")
        words = Words.from_release(parameters["normalizer"], files)
        return cls(words, PieceTable.read(files[TABLE]), parameters["n_features"], parameters["norm_bound"])

    def raw_rows(self, records: Sequence[str | None]) -> Iterator[Rows]:
        for sums in sums_of(self.table, self.n_features, map(self.words.flat, blocks_of(records))):
            yield scaled_to(sums, self.norm_bound)


class PieceTable(NamedTuple):
    vocabulary: bytes
    tokenizer: Any
    vectors: NDArray[np.int8]
    scales: Rows

    @classmethod
    def read(cls, path: Path) -> "PieceTable":
        with np.load(path, allow_pickle=False) as held:
            vocabulary = bytes(held["vocabulary"])
            tokenizer = uncased_tokenizer(vocabulary.decode().split("\n"))
            return cls(vocabulary, tokenizer, held["vectors"], held["scales"].astype(np.float64))

    def vector(self, word: bytes, n_features: int) -> Rows:
        cut = self.tokenizer.encode(word.decode("utf-8", "replace"), add_special_tokens=False).ids
        vector: Rows = self.scales[cut] @ self.vectors[cut, :n_features].astype(np.float64)
        return vector


def blocks_of(texts: Sequence[Text]) -> Iterator[Sequence[Text]]:
    return (texts[start : start + BLOCK_TEXTS] for start in range(0, len(texts), BLOCK_TEXTS))


def sums_of(table: PieceTable, n_features: int, blocks: Iterable[Sequence[bytes]]) -> Iterator[Rows]:
    """Yield sums of word vectors, shape (n_texts, n_features), block by block, independent of the block to the last
    bit.
    """
    places: dict[bytes, int] = {b"\0": 0}
    vectors = np.zeros((1, n_features))
    for flat in blocks:
        if len(places) > MOST_WORDS:
            places, vectors = {b"\0": 0}, vectors[:1]
        numbers = np.array([places.setdefault(word, len(places)) for word in flat], dtype=np.intp)
        added = list(islice(places, len(vectors), None))
        vectors = np.concatenate([vectors, *(table.vector(word, n_features)[None] for word in added)])
        yield _sums(vectors, numbers)


def _sums(vectors: Rows, numbers: NDArray[np.intp]) -> Rows:
    # The number 0 ends a text.
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
