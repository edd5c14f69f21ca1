"""Noisy counts of spans that a model gets right, misses and makes up, on records that it did not learn from."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpal.spans.scoring import counted
from dpal.spans.text import Span
from privacy.accounting.counts import MeasuredFitEvent, counts_sensitivity
from privacy.arrays import Array
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Measurement, Queries
from privacy.mechanisms.sums import released_steps

# Finds the spans of each text with public weights; those of one text must not depend on the others.
Find = Callable[[Array, Sequence[str]], Sequence[Sequence[Span]]]


def span_counts(
    truths: Sequence[Sequence[Span]], found: Sequence[Sequence[Span]], types: Sequence[str], *, most: int
) -> NDArray[np.int64]:
    """Return how many spans are right, missed and spurious, shape (3,); of a record the first `most` of each side."""
    counts: NDArray[np.int64] = counted(truths, found, types, most=most).sum(axis=(0, 1))
    return counts


def span_counts_queries(
    texts: Sequence[str],
    truths: Sequence[Sequence[Span]],
    types: Sequence[str],
    event: MeasuredFitEvent,
    *,
    find: Find,
    rng: RandomSource,
) -> Queries:
    """Return the query of an evaluation: `span_counts` of public weights, asked once, with noise of `event.scale`."""
    asked = False

    def counts(weights: Array) -> Measurement:
        nonlocal asked
        if asked:
            raise ValueError("one evaluation is paid for")
        asked = True
        cap = event.spans_per_record
        exact = span_counts(truths, find(weights, texts), types, most=cap)
        answer = released_steps(exact, 1.0, event.scale, rng)
        return Measurement("span_counts", counts_sensitivity(cap), event.scale, answer)

    return {"span_counts": counts}
