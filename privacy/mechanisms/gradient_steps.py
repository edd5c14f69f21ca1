"""Noisy sums of residuals times rows, released with exact discrete noise, one step after the other."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privacy.accounting.steps import CenteredStepsEvent, GradientStepsEvent
from privacy.arrays import Array
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Measurement, Queries, rounded
from privacy.mechanisms.shortening import shortened_rows
from privacy.mechanisms.sums import MOST_ROWS, STEPS, released_steps

# Weights become multiples of 2**-16 below 2**10: their products with rows add up exactly for up to 2**13 columns.
WEIGHT_STEPS = 2**16
LARGEST_WEIGHT = 2**10


class NoisySteps:
    """Rows that answer one noisy gradient after the other, as many as their event pays for.

    `rows`, shape (n, d), include the constant column and have a norm of at most ``event.norm_bound``. `count` is the
    noisy number of rows, `row_sum` their noisy sum, shape (d,), where the event pays for it.
    """

    def __init__(self, rows: Array, event: GradientStepsEvent, *, rng: RandomSource) -> None:
        if len(rows) > MOST_ROWS:
            raise ValueError(f"at most {MOST_ROWS} rows can be summed exactly")
        self._event, self._rng = event, rng
        self._rows = self._whole(rows)
        self._made = 0
        counted = released_steps(np.array([len(rows)], dtype=np.int64), 1.0, event.count_sigma, rng)
        self.count = float(counted[0])
        self.row_sum: NDArray[np.float64] | None = None
        if isinstance(event, CenteredStepsEvent):
            # Whole numbers of at most 2**13, and at most 2**26 rows of them: exact in float64 in any order.
            total = self._rows.sum(axis=0).astype(np.int64)
            self.row_sum = released_steps(total, event.norm_bound / STEPS, event.center_sigma, rng)

    def replace_rows(self, rows: Array) -> None:
        """Take other rows of the same records, each made of its own record and of what was released alone."""
        if len(rows) != len(self._rows):
            raise ValueError(f"there must be {len(self._rows)} rows as before, got {len(rows)}")
        self._rows = self._whole(rows)

    def _whole(self, rows: Array) -> Array:
        event = self._event
        if rows.shape[1:] != (event.dimension,):
            raise ValueError(f"rows must have {event.dimension} columns, got {rows.shape}")
        return shortened_rows(rows, norm_bound=event.norm_bound, steps=STEPS)

    def scores(self, weights: Array) -> Array:
        """Return rows times `weights`, shape (K, d): what a record gets is the same whatever others lie beside it.

        A product that a library adds up in an order of its own would differ in the last place with the rows around, and
        then so would their rounded residuals.
        """
        whole = np.rint(np.clip(weights, -LARGEST_WEIGHT, LARGEST_WEIGHT) * WEIGHT_STEPS)
        exact: Array = self._rows @ whole.T
        return exact * (self._event.norm_bound / STEPS / WEIGHT_STEPS)

    def release(self, residuals: Array) -> Array:
        """Return the noisy sum of residuals, shape (n, K), times rows, shape (K, d); longer residuals are clipped.

        `ValueError` if every step that was paid for is made, or a residual is not finite.
        """
        event = self._event
        if self._made == event.steps:
            raise ValueError(f"only {event.steps} steps are paid for")
        if residuals.shape != (len(self._rows), event.n_classes):
            raise ValueError(f"residuals must have {event.n_classes} entries a row, got {residuals.shape}")
        self._made += 1
        lengths = np.linalg.norm(residuals, axis=1, keepdims=True)
        # A little below the bound, so that what is rounded is never above it.
        clipped = residuals * np.minimum(1.0, event.residual_bound * (1 - 1e-12) / np.maximum(lengths, 1e-300))
        whole = shortened_rows(clipped, norm_bound=event.residual_bound, steps=STEPS)
        # Products of whole numbers of which each record adds 2**26 at most are exact in float64.
        sums = (whole.T @ self._rows).astype(np.int64)
        unit = event.norm_bound * event.residual_bound / STEPS**2
        return released_steps(sums.ravel(), unit, event.sigma, self._rng).reshape(sums.shape)


def step_queries(
    rows: Array,
    members: NDArray[np.bool_],
    event: GradientStepsEvent,
    *,
    norm_bound: float,
    constant: float,
    rng: RandomSource,
) -> Queries:
    """Return the queries of softmax regression by gradient steps.

    `rows`, shape (n, d - 1), have at most `norm_bound`, to which rows about a centre are clipped; `members`, shape (n,
    K), says which classes they are of; `constant` is the column beside them. The queries are `count` and, where the
    event pays for it, `row_sum`; ``gradient(weights, center, reach)`` is for rows about a public centre in units of a
    public reach, both the same in every step.
    """

    def beside(part: Array) -> Array:
        return np.hstack([part, np.full((len(part), 1), constant)])

    noisy, targets = NoisySteps(beside(rows), event, rng=rng), members.astype(np.float64)
    moved = False

    def count() -> Measurement:
        return Measurement("count", 1.0, event.count_sigma, np.array([noisy.count]))

    def row_sum() -> Measurement:
        if not isinstance(event, CenteredStepsEvent) or noisy.row_sum is None:
            raise ValueError("the sum of the rows is not paid for")
        return Measurement("row_sum", event.norm_bound, event.center_sigma, noisy.row_sum)

    def gradient(weights: Array, center: Array, reach: float) -> Measurement:
        nonlocal moved
        if not moved and reach != 1.0:
            noisy.replace_rows(beside(about(rows, center, reach, norm_bound=norm_bound)))
        moved = True
        released = noisy.release(targets - softmax(noisy.scores(weights), axis=1))
        return Measurement("gradient", event.norm_bound * event.residual_bound, event.sigma, rounded(released))

    return {"count": count, "row_sum": row_sum, "gradient": gradient}


def about(rows: Array, center: Array, reach: float, *, norm_bound: float) -> Array:
    """Return rows about a public centre, in units of a public reach, clipped to the norm bound.

    What rounding adds lies within the slack of the event's bound, beyond which no row is summed.
    """
    moved = (rows - center) / reach
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    clipped: Array = moved * np.minimum(1.0, norm_bound / np.maximum(lengths, 1e-300))
    return clipped
