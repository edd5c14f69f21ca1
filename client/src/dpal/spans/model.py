"""Model that finds spans: weights of a conditional random field over the tokens of a text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.features.word_vectors import PieceTable
from dpal.spans.crf import (
    BLOCK,
    best_tags,
    blocks_of,
    marginals,
    run_probability,
    scores_of,
    transitions_of,
    whole_weights,
)
from dpal.spans.features import SpanFeatures, Whitening
from dpal.spans.text import MAX_TOKENS, OUTSIDE, tokens

# Tables of a release.
TABLE, WHITENING = "encoder.npz", "encoder.spans.npz"


@dataclass(frozen=True)
class FoundSpan:
    """A span that a model finds, and the probability that all its tokens have its type."""

    start: int
    end: int
    type: str
    score: float


@dataclass(frozen=True)
class SpanModel:
    """Weights of shape (K, d + K): of each tag, 0 for outside, its features and the tags before it."""

    types: tuple[str, ...]
    coef: NDArray[np.float64]
    features: SpanFeatures

    def __post_init__(self) -> None:
        n_tags = len(self.types) + 1
        if self.coef.shape != (n_tags, self.features.n_features + n_tags):
            raise ValueError(f"coef must have {n_tags} rows of {self.features.n_features + n_tags}")

    @classmethod
    def of_release(cls, types: Sequence[str], coef: NDArray[np.float64], files: Mapping[str, Path]) -> "SpanModel":
        """Return the model of a release with the tables among its files."""
        features = SpanFeatures(PieceTable.read(files[TABLE]), Whitening.read(files[WHITENING]))
        return cls(tuple(types), coef, features)

    def best_scores(self, found: Sequence[Sequence[FoundSpan]]) -> NDArray[np.float64]:
        """Return the score of the surest span of each type in each text, 0 without one, shape (n, n_types)."""
        best = np.zeros((len(found), len(self.types)))
        for record, spans in enumerate(found):
            for span in spans:
                place = self.types.index(span.type)
                best[record, place] = max(best[record, place], span.score)
        return best

    def predict(self, texts: Sequence[str]) -> list[tuple[FoundSpan, ...]]:
        """Return the spans of each text, none beyond its first 32 tokens."""
        found: list[tuple[FoundSpan, ...]] = []
        for start in range(0, len(texts), BLOCK):
            found += self._of_block(texts[start : start + BLOCK])
        return found

    def _of_block(self, texts: Sequence[str]) -> Iterator[tuple[FoundSpan, ...]]:
        rows = [self.features.rows(text) for text in texts]
        whole = whole_weights(self.coef)
        scores = np.zeros((MAX_TOKENS, len(whole), BLOCK))
        for record, own in enumerate(rows):
            scores[: len(own), :, record] = scores_of(own.astype(np.float64), whole)
        _some, present = next(blocks_of(np.array([len(own) for own in rows])))
        transitions = transitions_of(whole)
        said, tagged = marginals(scores, present, transitions), best_tags(scores, present, transitions)
        for record, text in enumerate(texts):
            cut = tokens(text)[:MAX_TOKENS]
            spans = []
            for tag, group in groupby(range(len(cut)), lambda place: tagged[place, record]):  # noqa: B023  # used at once
                run = list(group)
                if tag != OUTSIDE:
                    sure = run_probability(said, record, first=run[0], last=run[-1], tag=int(tag))
                    spans.append(FoundSpan(cut[run[0]][0], cut[run[-1]][1], self.types[tag - 1], sure))
            yield tuple(spans)
