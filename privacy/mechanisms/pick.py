"""Pick one of several models by noisy counts of the rows that each gets right."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.counts import PickedFitEvent
from privacy.arrays import Array
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Measurement, Queries
from privacy.mechanisms.shortening import shortened_rows
from privacy.mechanisms.sums import MOST_ROWS, STEPS, released_steps
from privacy.mechanisms.top_c import select_top_c

# Weights become whole numbers up to this: products with rows add up exactly for up to 2**13 columns.
LARGEST_WEIGHT = 2**26
BLOCK_ROWS = 65_536
# A candidate that is drawn must be so far ahead of the first that chance alone passes in one case of ten.
ODDS = 10.0


def right_answers(
    rows: NDArray[np.floating], places: NDArray[np.int64], models: Sequence[tuple[Array, Array]], *, norm_bound: float
) -> NDArray[np.int64]:
    """Return how many rows each model gets right, shape (n_models,).

    Whether a row is right does not depend on the rows around it: rows and weights are whole numbers whose products add
    up exactly in any order. `rows`, shape (n, d), have at most `norm_bound` and the classes `places`. Models have
    shapes (K, d) and (K,); of one row, a positive score speaks for class 1, else for class 0.
    """
    if len(rows) > MOST_ROWS:
        raise ValueError(f"at most {MOST_ROWS} rows can be counted")
    right = np.zeros(len(models), dtype=np.int64)
    whole_models = [_whole(*model, norm_bound=norm_bound) for model in models]
    for start in range(0, len(rows), BLOCK_ROWS):
        steps = shortened_rows(rows[start : start + BLOCK_ROWS], norm_bound=norm_bound, steps=STEPS)
        wanted = places[start : start + BLOCK_ROWS]
        for number, (coef, intercept) in enumerate(whole_models):
            scores = steps @ coef.T + intercept
            leaders = scores[:, 0] > 0 if len(coef) == 1 else scores.argmax(axis=1)
            right[number] += int((leaders == wanted).sum())
    return right


def _whole(coef: Array, intercept: Array, *, norm_bound: float) -> tuple[Array, Array]:
    """Return a model of whole numbers; one factor for all of it changes no leader."""
    largest = max(float(np.abs(coef).max()), float(np.abs(intercept).max()) / norm_bound, 1e-300)
    return np.rint(coef * (LARGEST_WEIGHT / largest)), np.rint(
        intercept * (LARGEST_WEIGHT * STEPS / norm_bound / largest)
    )


def bar_of(event: PickedFitEvent, *, deviations: float = 2.0) -> float:
    """Return what a noisy difference must exceed; 0 where the number of a candidate is drawn.

    At two deviations noise alone passes for one of four candidates in one case of ten.
    """
    return deviations * event.scale if event.noise == "gaussian" else 0.0


def release_counts(right: NDArray[np.int64], event: PickedFitEvent, *, rng: RandomSource) -> NDArray[np.float64]:
    """Return noisy differences of all counts to the first, or the number of the candidate that was drawn.

    `right`, shape (event.candidates,), says how many rows each candidate gets right; `ValueError` if there are more or
    fewer candidates than are paid for.
    """
    if right.shape != (event.candidates,):
        raise ValueError(f"{event.candidates} candidates are paid for, got {right.shape}")
    if event.noise == "gaussian":
        return released_steps(right[1:] - right[0], 1.0, event.scale, rng)
    ahead = math.ceil(math.log(ODDS * (len(right) - 1)) / event.scale)
    counts = right + ahead * (np.arange(len(right)) == 0)
    # Parts of a power of two are exact floats in [0, 1].
    whole = 2 ** max(1, int(counts.max())).bit_length()
    return select_top_c(counts / whole, picks=1, scale=event.scale * whole, rng=rng).astype(np.float64)


def pick_queries(
    rows: NDArray[np.floating],
    places: NDArray[np.int64],
    event: PickedFitEvent,
    *,
    norm_bound: float,
    rng: RandomSource,
) -> Queries:
    """Return the query of a pick: `right_answers` of public models, as `release_counts` releases them."""

    def counted(models: Sequence[tuple[Array, Array]]) -> Measurement:
        right = right_answers(rows, places, models, norm_bound=norm_bound)
        answer = release_counts(right, event, rng=rng)
        return Measurement("right_answers", math.sqrt(len(answer)), event.scale, answer)

    return {"right_answers": counted}
