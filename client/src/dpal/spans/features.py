"""Features of the tokens of a text: its public word vectors, those of its neighbours, their means, and its shape."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpal.features.normal import Words
from dpal.features.word_vectors import PieceTable
from dpal.spans.text import MAX_TOKENS, tokens

Array = NDArray[np.float64]
# Features are whole multiples of 2**-13, and a token has a norm of at most 2.
FEATURE_STEPS, FEATURE_NORM = 2**13, 2.0
# Leading columns and weight of a token's own vector, of those next to it and two away, of the mean of all, and of the
# means of those before and after it; then the weight of its shape. Found on public tasks, see docs/results/spans.md.
OWN, NEXT, SECOND, ALL, SIDES, SHAPE = (256, 1.0), (96, 0.5), (32, 0.35), (32, 0.35), (32, 0.35), 0.3
N_SHAPES = 8
N_FEATURES = OWN[0] + 2 * NEXT[0] + 2 * SECOND[0] + ALL[0] + 2 * SIDES[0] + N_SHAPES
SHORT, LONG = 3, 8
MOST_WORDS = 50_000


class Whitening(NamedTuple):
    """Mean of word vectors, shape (256,), and directions in which they differ, (256, 256), the widest first."""

    mean: Array
    directions: Array

    @classmethod
    def read(cls, path: Path) -> "Whitening":
        with np.load(path, allow_pickle=False) as held:
            return cls(held["mean"].astype(np.float64), held["directions"].astype(np.float64))


class SpanFeatures:
    """Rows of whole numbers for the first 32 tokens of a text, from that text and public tables alone.

    Each word is turned by itself and each text is added up in its own order, so its rows are the same, bit for bit,
    whatever else is asked for.
    """

    n_features = N_FEATURES

    def __init__(self, table: PieceTable, whitening: Whitening) -> None:
        self._table, self._whitening = table, whitening
        self._words = Words("L1")
        self._known: dict[str, Array] = {}

    def rows(self, text: str) -> NDArray[np.int16]:
        """Return the features of a text's tokens, shape (tokens, n_features), in steps of 2**-13."""
        words = [text[start:end] for start, end in tokens(text)[:MAX_TOKENS]]
        if not words:
            return np.zeros((0, N_FEATURES), dtype=np.int16)
        own = np.stack([self._vector(word) for word in words])
        before = np.cumsum(own, axis=0) - own
        after = own.sum(axis=0) - before - own
        places = np.arange(len(words))[:, None]
        parts = [
            _part(own, OWN),
            *(_part(_moved(own, by), NEXT) for by in (1, -1)),
            *(_part(_moved(own, by), SECOND) for by in (2, -2)),
            _part(np.tile(own.sum(axis=0) / len(words) ** 0.5, (len(words), 1)), ALL),
            _part(before / np.sqrt(np.maximum(places, 1)), SIDES),
            _part(after / np.sqrt(np.maximum(len(words) - 1 - places, 1)), SIDES),
            SHAPE * _shapes(words),
        ]
        rows = np.hstack(parts)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        shortened = rows * np.minimum(1.0, FEATURE_NORM / np.maximum(lengths, 1e-300))
        # Towards zero, so that none becomes longer.
        whole: NDArray[np.int16] = np.trunc(shortened * (1 - 1e-12) * FEATURE_STEPS).astype(np.int16)
        return whole

    def _vector(self, word: str) -> Array:
        if word not in self._known:
            if len(self._known) >= MOST_WORDS:
                self._known.clear()
            columns = len(self._whitening.mean)
            found = np.zeros(columns)
            for part in self._words.flat([word])[:-1]:
                found += self._table.vector(part, columns)
            turned = (found - self._whitening.mean) @ self._whitening.directions
            self._known[word] = turned / max(float(np.linalg.norm(turned)), 1e-9)
        return self._known[word]


def _part(vectors: Array, shape: tuple[int, float]) -> Array:
    columns, weight = shape
    return weight * vectors[:, :columns]


def _moved(own: Array, by: int) -> Array:
    """Return the vectors of the tokens `by` places before each token, zeros where there are none."""
    moved = np.zeros_like(own)
    if abs(by) < len(own):
        moved[max(by, 0) : len(own) + min(by, 0)] = own[max(-by, 0) : len(own) - max(by, 0)]
    return moved


def _shapes(words: Sequence[str]) -> Array:
    last = len(words) - 1
    return np.array(
        [
            [
                1,
                any(character.isdigit() for character in word),
                word[:1].isupper(),
                word.isupper(),
                place == 0,
                place == last,
                len(word) <= SHORT,
                len(word) >= LONG,
            ]
            for place, word in enumerate(words)
        ],
        dtype=np.float64,
    )
