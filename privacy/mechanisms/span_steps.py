"""Noisy gradients of a conditional random field over the tokens of records, each record clipped as a whole."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpal.spans.crf import (
    BLOCK,
    TRANSITION,
    Marginals,
    best_tags,
    blocks_of,
    marginals,
    scores_of,
    transitions_of,
    whole_weights,
)
from dpal.spans.features import FEATURE_NORM, FEATURE_STEPS
from dpal.spans.text import MAX_TOKENS
from privacy.accounting.counts import PickedFitEvent
from privacy.accounting.steps import SpanStepsEvent
from privacy.arrays import Array
from privacy.mechanisms.pick import release_counts
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Measurement, Queries, rounded
from privacy.mechanisms.sums import released_steps

# Residuals become multiples of 2**-16. A block's products with features add up exactly in float64.
RESIDUAL_STEPS = 2**16
MOST_RECORDS = 2**20


@dataclass(frozen=True, slots=True)
class TaggedRecords:
    """Tokens of records one after the other.

    `features`, shape (tokens, d), are whole numbers of steps; `lengths`, shape (n,), says how many tokens each record
    has, at most 32; `tags`, shape (tokens,), lie in [0, K).
    """

    features: NDArray[np.int16]
    lengths: NDArray[np.int64]
    tags: NDArray[np.int64]

    def block(self, some: slice) -> "Block":
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        first, last = ends[some.start], ends[some.stop]
        lengths = self.lengths[some]
        records = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(last - first) - (ends[some] - first)[records]
        return Block(self.features[first:last].astype(np.float64), places, records, self.tags[first:last])


class Block(NamedTuple):
    """Tokens of a block: features, place of each in its record, place of the record in the block, and tag."""

    features: Array
    places: NDArray[np.int64]
    records: NDArray[np.int64]
    tags: NDArray[np.int64]

    def scores(self, whole: Array) -> Array:
        """Return the scores of each tag of each token, shape (32, K, 128), at whole weights."""
        scores = np.zeros((MAX_TOKENS, len(whole), BLOCK))
        scores[self.places, :, self.records] = scores_of(self.features, whole)
        return scores


def rounding_slack(n_tags: int) -> float:
    """Return how far rounding of residuals can carry a record's gradient, in emissions and transitions together."""
    return (MAX_TOKENS * math.sqrt(n_tags) * FEATURE_NORM + n_tags) / RESIDUAL_STEPS


class NoisySpanSteps:
    """Records that answer one noisy gradient after the other, as many as their event pays for."""

    def __init__(self, records: TaggedRecords, event: SpanStepsEvent, *, rng: RandomSource) -> None:
        self._n_tags = event.n_classes
        _check(records, event)
        self._records, self._event, self._rng = records, event, rng
        self._products = [self._inner_products(some) for some, _present in blocks_of(records.lengths)]
        self._made = 0
        counted = released_steps(np.array([len(records.lengths)], dtype=np.int64), 1.0, event.count_sigma, rng)
        self.count = float(counted[0])

    def release(self, weights: Array) -> Array:
        """Return the noisy gradient of the log-likelihood at `weights`, shape (K, d + K), transitions last.

        `ValueError` if every step that was paid for is made.
        """
        event = self._event
        if self._made == event.steps:
            raise ValueError(f"only {event.steps} steps are paid for")
        if weights.shape != (event.n_classes, event.dimension):
            raise ValueError(f"weights must have shape {(event.n_classes, event.dimension)}, got {weights.shape}")
        self._made += 1
        whole = whole_weights(weights)
        sums = np.zeros(weights.shape, dtype=np.int64)
        for number, (some, present) in enumerate(blocks_of(self._records.lengths)):
            sums += self._block(whole, some, present, self._products[number])
        unit = 1 / FEATURE_STEPS / RESIDUAL_STEPS
        return released_steps(sums.ravel(), unit, event.sigma, self._rng).reshape(sums.shape)

    def _block(self, whole: Array, some: slice, present: NDArray[np.bool_], products: Array) -> NDArray[np.int64]:
        """Return the sum of the clipped gradients of a block in whole steps, exact in whatever order it is added up."""
        n_tags = self._n_tags
        block = self._records.block(some)
        said = marginals(block.scores(whole), present, transitions_of(whole))
        residuals, moves = _residuals(said, block)
        squares = _squares(residuals, moves, products)
        # Residuals and moves are whole steps of the same size once rounded, and slack covers what rounding adds.
        bound = (self._event.residual_bound - rounding_slack(n_tags)) * (1 - 1e-9)
        scale = RESIDUAL_STEPS * np.minimum(1.0, bound / np.sqrt(np.maximum(squares, 1e-300)))
        emissions = np.rint(residuals * scale)[block.places, :, block.records].T @ block.features
        moved = np.rint(moves * scale).astype(np.int64).sum(axis=2).T
        return np.hstack([emissions.astype(np.int64), moved * FEATURE_STEPS])

    def _inner_products(self, some: slice) -> Array:
        """Return the inner products of the features of each record's tokens, shape (128, 32, 32)."""
        block = self._records.block(some)
        filled = np.zeros((BLOCK, MAX_TOKENS, block.features.shape[1]))
        filled[block.records, block.places] = block.features
        products: Array = filled @ filled.transpose(0, 2, 1)
        return products / FEATURE_STEPS**2


def _residuals(said: Marginals, block: Block) -> tuple[Array, Array]:
    """Return observed minus expected tags, shape (32, K, 128), and weighted pairs of tags, shape (K, K, 128)."""
    residuals, moves = -said.tags, -TRANSITION * said.pairs
    residuals[block.places, block.tags, block.records] += 1
    later = np.flatnonzero(block.places > 0)
    np.add.at(moves, (block.tags[later - 1], block.tags[later], block.records[later]), TRANSITION)
    return residuals, moves


def _squares(residuals: Array, moves: Array, products: Array) -> Array:
    """Return the squared norm of each record's gradient in emissions and transitions, shape (128,)."""
    by_record = np.ascontiguousarray(residuals.transpose(2, 0, 1))
    together = by_record @ by_record.transpose(0, 2, 1)
    squares: Array = (together * products).sum(axis=(1, 2)) + (moves**2).sum(axis=1).sum(axis=0)
    return squares


def _check(records: TaggedRecords, event: SpanStepsEvent) -> None:
    n_tokens, lengths = int(records.lengths.sum()), records.lengths
    if len(lengths) > MOST_RECORDS:
        raise ValueError(f"at most {MOST_RECORDS} records can be summed exactly")
    if len(lengths) and not (int(lengths.min()) >= 0 and int(lengths.max()) <= MAX_TOKENS):
        raise ValueError(f"a record has at most {MAX_TOKENS} tokens")
    if records.features.shape != (n_tokens, event.dimension - event.n_classes) or records.tags.shape != (n_tokens,):
        raise ValueError(f"{n_tokens} tokens must have {event.dimension - event.n_classes} features and a tag each")
    wide = records.features.astype(np.float64)
    if not (np.einsum("ij,ij->i", wide, wide) <= (FEATURE_NORM * FEATURE_STEPS) ** 2).all():
        raise ValueError(f"the features of a token must have a norm of at most {FEATURE_NORM}: clip them first")
    if n_tokens and not (int(records.tags.min()) >= 0 and int(records.tags.max()) < event.n_classes):
        raise ValueError(f"tags must lie in [0, {event.n_classes})")
    if not event.residual_bound > rounding_slack(event.n_classes):
        raise ValueError(f"{event.n_classes} tags are too many for a clip of {event.residual_bound}")


def span_queries(records: TaggedRecords, event: SpanStepsEvent, *, rng: RandomSource) -> Queries:
    """Return the queries of a conditional random field by gradient steps: `count` and ``gradient(weights)``."""
    noisy = NoisySpanSteps(records, event, rng=rng)

    def count() -> Measurement:
        return Measurement("count", 1.0, event.count_sigma, np.array([noisy.count]))

    def gradient(weights: Array) -> Measurement:
        return Measurement("gradient", event.residual_bound, event.sigma, rounded(noisy.release(weights)))

    return {"count": count, "gradient": gradient}


def right_records(records: TaggedRecords, models: Sequence[Array]) -> NDArray[np.int64]:
    """Return in how many records each model tags every token right, (n_models,), each record judged alone."""
    right = np.zeros(len(models), dtype=np.int64)
    for some, present in blocks_of(records.lengths):
        block = records.block(some)
        for number, weights in enumerate(models):
            whole = whole_weights(weights)
            found = best_tags(block.scores(whole), present, transitions_of(whole))
            wrong = np.zeros(BLOCK, dtype=np.bool_)
            wrong[block.records[found[block.places, block.records] != block.tags]] = True
            right[number] += int((~wrong[: some.stop - some.start]).sum())
    return right


def span_pick_queries(records: TaggedRecords, event: PickedFitEvent, *, rng: RandomSource) -> Queries:
    """Return the query of a pick: `right_records` of public models, as `release_counts` releases them."""

    def counted(models: Sequence[tuple[Array, Array]]) -> Measurement:
        answer = release_counts(right_records(records, [coef for coef, _intercept in models]), event, rng=rng)
        return Measurement("right_answers", math.sqrt(len(answer)), event.scale, answer)

    return {"right_answers": counted}
