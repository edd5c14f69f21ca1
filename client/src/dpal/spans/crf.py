"""Linear-chain conditional random field over the tokens of a text: marginals, best tags and their probabilities."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpal.spans.features import FEATURE_STEPS
from dpal.spans.text import MAX_TOKENS

Array = NDArray[np.float64]
# Records that go through the chain together, filled up with empty ones, so that each is added up in one order.
BLOCK = 128
LEAST = 1e-300
# A record has a transition for nearly every token, so these weigh less than its features, and steps can be as long.
TRANSITION = 0.2
# Weights become multiples of 2**-16 below 2**10: their products with features add up exactly.
WEIGHT_STEPS, LARGEST_WEIGHT = 2**16, 2**10


class Marginals(NamedTuple):
    """Marginals of a chain over records.

    `tags`, shape (32, K, n), holds the probability of each tag of a token, zeros behind a record's end; `pairs`, shape
    (K, K, n), the expected number of each pair of neighbouring tags; `stays`, shape (32, K, n), the probability that a
    token and the one after it both have a tag.
    """

    tags: Array
    pairs: Array
    stays: Array


def whole_weights(weights: Array) -> Array:
    """Return weights, shape (K, d + K), as whole numbers of steps."""
    return np.rint(np.clip(weights, -LARGEST_WEIGHT, LARGEST_WEIGHT) * WEIGHT_STEPS)


def scores_of(features: Array, whole: Array) -> Array:
    """Return the scores of tokens, shape (tokens, K), from features in whole steps and whole weights."""
    scores: Array = features @ whole[:, : features.shape[1]].T * (1 / FEATURE_STEPS / WEIGHT_STEPS)
    return scores


def transitions_of(whole: Array) -> Array:
    """Return the scores of a tag, the column, behind another, the row: the last K weights of each tag."""
    scores: Array = TRANSITION / WEIGHT_STEPS * whole[:, -len(whole) :].T
    return scores


def blocks_of(lengths: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Yield blocks of records and which of their tokens there are, shape (32, 128)."""
    for start in range(0, len(lengths), BLOCK):
        filled = np.zeros(BLOCK, dtype=np.int64)
        some = slice(start, min(start + BLOCK, len(lengths)))
        filled[: some.stop - start] = lengths[some]
        yield some, np.arange(MAX_TOKENS)[:, None] < filled


def marginals(scores: Array, present: NDArray[np.bool_], transitions: Array) -> Marginals:
    """Run forward and backward over a block of records.

    Parameters
    ----------
    scores : ndarray of shape (32, K, 128)
        Of each tag of each token; those that are not present count for nothing.
    present : ndarray of bool, shape (32, 128)
        Which tokens there are; those of a record come first.
    transitions : ndarray of shape (K, K)
        Score of a tag, the column, behind another, the row.

    Notes
    -----
    All arrays have one shape and records lie along the last axis, so that the numbers of one are the same, bit for bit,
    whatever others lie beside it.
    """
    steps, odds = np.exp(transitions - transitions.max()), np.exp(scores - scores.max(axis=1, keepdims=True))
    longest = int(present.any(axis=1).sum())
    forward, backward = np.zeros_like(scores), np.ones_like(scores)
    stays = np.zeros_like(scores)
    pairs = np.zeros((*transitions.shape, scores.shape[2]))
    forward[0] = _shares(odds[0])
    for place in range(1, longest):
        reached = (steps[:, :, None] * forward[place - 1][:, None, :]).sum(axis=0)
        forward[place] = np.where(present[place], _shares(reached * odds[place]), forward[place - 1])
    for place in range(longest - 2, -1, -1):
        ahead = odds[place + 1] * backward[place + 1]
        moved = steps[:, :, None] * ahead
        backward[place] = np.where(present[place + 1], _shares(moved.sum(axis=1)), 1.0)
        both = forward[place][:, None, :] * moved
        both *= present[place + 1] / np.maximum(both.sum(axis=1).sum(axis=0), LEAST)
        pairs += both
        stays[place] = both[np.arange(len(steps)), np.arange(len(steps))]
    tags = np.zeros_like(scores)
    for place in range(longest):
        tags[place] = _shares(forward[place] * backward[place]) * present[place]
    return Marginals(tags, pairs, stays)


def _shares(odds: Array) -> Array:
    shares: Array = odds / np.maximum(odds.sum(axis=0), LEAST)
    return shares


def best_tags(scores: Array, present: NDArray[np.bool_], transitions: Array) -> NDArray[np.int64]:
    """Return the likeliest tags of each record of a block, shape (32, 128), by Viterbi; arguments as in `marginals`."""
    back = np.zeros(scores.shape, dtype=np.int64)
    best = scores[0]
    for place in range(1, len(scores)):
        options = transitions[:, :, None] + best[:, None, :]
        back[place] = np.where(present[place], options.argmax(axis=0), np.arange(len(best))[:, None])
        best = np.where(present[place], options.max(axis=0) + scores[place], best)
    found = np.zeros(present.shape, dtype=np.int64)
    found[-1] = best.argmax(axis=0)
    records = np.arange(scores.shape[2])
    for place in range(len(scores) - 1, 0, -1):
        found[place - 1] = back[place, found[place], records]
    return found


def run_probability(said: Marginals, record: int, *, first: int, last: int, tag: int) -> float:
    """Return the probability that all tokens of a record from `first` to `last` have one tag."""
    probability = float(said.tags[first, tag, record])
    for place in range(first, last):
        here = max(float(said.tags[place, tag, record]), LEAST)
        probability *= min(1.0, float(said.stays[place, tag, record]) / here)
    return probability
