"""Texts to signed hashed word counts, as scikit-learn's HashingVectorizer makes them, many words at a time."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.features.base import Featurizer, Rows, scaled_to
from dpal.features.normal import Words

# Numbers of a block of rows, so that temporaries stay within tens of MiB.
BLOCK_NUMBERS = 2**20


class HashedWords(Featurizer):
    """Signed hashed counts of word n-grams, each text scaled to the norm bound.

    References
    ----------
    .. [1] Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009, eq. 1.
    """

    records = "texts"

    def __init__(self, words: Words, n_features: int, ngram_range: tuple[int, int], norm_bound: float) -> None:
        self.words = words
        self.n_features = n_features
        self.ngram_range = ngram_range
        self.norm_bound = norm_bound

    @classmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "HashedWords":
        smallest, largest = parameters["ngram_range"]
        words = Words.from_release(parameters["normalizer"], files)
        return cls(words, parameters["n_features"], (smallest, largest), parameters["norm_bound"])

    def raw_rows(self, records: Sequence[str | None]) -> Iterator[Rows]:
        step = max(1, BLOCK_NUMBERS // self.n_features)
        for start in range(0, len(records), step):
            yield self._rows(records[start : start + step])

    def _rows(self, texts: Sequence[str | None]) -> Rows:
        counts = hashed_counts(self.words.flat(texts), self.n_features, self.ngram_range)
        return scaled_to(counts, self.norm_bound)


def hashed_counts(flat: Sequence[bytes], n_features: int, ngram_range: tuple[int, int]) -> Rows:
    r"""Return signed counts of hashed n-grams, shape (n_texts, n_features), of words as `Words.flat` gives them."""
    places: dict[bytes, int] = {b"\0": 0}
    if ngram_range != (1, 1):
        flat = list(_ngrams(flat, *ngram_range))
    numbers = np.array([places.setdefault(word, len(places)) for word in flat], dtype=np.intp)
    is_end = numbers == 0
    n_texts = int(is_end.sum())
    rows = np.cumsum(is_end)[~is_end]
    numbers = numbers[~is_end]
    hashes = murmur3(list(places))
    # As scikit-learn takes the absolute value of a signed hash, whose smallest number has none.
    columns = np.abs(hashes.astype(np.int64)) % n_features
    columns[hashes == -(2**31)] = (2**31 - 1 - (n_features - 1)) % n_features
    signs = np.where(hashes >= 0, 1.0, -1.0)
    cells = rows * n_features + columns[numbers]
    counts = np.bincount(cells, signs[numbers], minlength=n_texts * n_features).astype(np.float64)
    return counts.reshape(n_texts, n_features)


def _ngrams(flat: Sequence[bytes], smallest: int, largest: int) -> Iterator[bytes]:
    text: list[bytes] = []
    for word in flat:
        if word != b"\0":
            text.append(word)
            continue
        for length in range(smallest, min(largest, len(text)) + 1):
            for start in range(len(text) - length + 1):
                yield b" ".join(text[start : start + length])
        yield word
        text = []


def murmur3(words: Sequence[bytes]) -> NDArray[np.int32]:
    """Return MurmurHash3 of 32 bits, seed 0, of each word; words of one length go through together."""
    lengths = np.array([len(word) for word in words], dtype=np.intp)
    found = np.empty(len(words), dtype=np.uint32)
    for length in np.unique(lengths):
        where = np.flatnonzero(lengths == length)
        together = b"".join([words[place] for place in where.tolist()])
        found[where] = _murmur3_of(np.frombuffer(together, dtype=np.uint8).reshape(len(where), length))
    return found.view(np.int32)


def _murmur3_of(words: NDArray[np.uint8]) -> NDArray[np.uint32]:
    first, second = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
    number, length = words.shape
    hashes = np.zeros(number, dtype=np.uint32)
    whole = length // 4
    blocks = np.ascontiguousarray(words[:, : whole * 4]).view("<u4").astype(np.uint32)
    for place in range(whole):
        hashes ^= _turned(blocks[:, place] * first, 15) * second
        hashes = _turned(hashes, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    if length % 4:
        rest = np.zeros(number, dtype=np.uint32)
        for place in range(length - 1, whole * 4 - 1, -1):
            rest = (rest << np.uint32(8)) | words[:, place]
        hashes ^= _turned(rest * first, 15) * second
    hashes ^= np.uint32(length)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes ^= hashes >> np.uint32(shift)
        hashes *= np.uint32(factor)
    mixed: NDArray[np.uint32] = hashes ^ (hashes >> np.uint32(16))
    return mixed


def _turned(values: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    turned: NDArray[np.uint32] = (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
    return turned
