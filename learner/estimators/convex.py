"""Minimise a regularised sum of losses of a linear model, to a gradient norm that is certified."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from learner.estimators.rows import one_thread_per_call, over_rows
from privacy.arrays import Array
from privacy.errors import CertificateMissed

Preconditioner = Callable[[Array], Array]
BLOCK_ROWS = 4096
ROUNDING = 2.0**-53
# Above this width a Hessian costs more than the iterations it saves.
LARGEST_HESSIAN = 2048
MEMORY = 12
# Rows of the thinned problems: the first for a starting point, the second for a Hessian whose error of
# about sqrt(1 / 256) sets the speed of convergence.
LEAST_ROWS = 2048
FIRST_ROWS_PER_WEIGHT = 32
ROWS_PER_WEIGHT = 256


class MarginLoss(Protocol):
    """A convex loss of the margin ``y <x, w>``; `slope_bound` and `curvature_bound` bound its derivatives."""

    slope_bound: float
    curvature_bound: float

    def slope(self, margins: Array) -> Array:
        """Return the derivative at each margin, accurate to a few units in the last place of one."""
        ...

    def curvature(self, margins: Array) -> Array: ...


class LogisticLoss:
    """``ln(1 + exp(-margin))``."""

    slope_bound = 1.0
    curvature_bound = 0.25

    def slope(self, margins: Array) -> Array:
        """Return minus the probability of the other class."""
        return -special.expit(-margins)

    def curvature(self, margins: Array) -> Array:
        """Return the product of both class probabilities."""
        probability = special.expit(margins)
        return probability * (1 - probability)


@dataclass(frozen=True, slots=True)
class LinearObjective:
    r"""The function :math:`\frac{\Lambda}{2}\|w\|^2 + \langle b, w\rangle + \sum_i \ell(y_i \langle x_i, w\rangle)`.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d)
        Rows; with an intercept each is followed by the constant `intercept_scaling`, which is not stored.
    signs : ndarray of float64, shape (n,)
        Labels -1 or +1.
    loss : MarginLoss
        The loss term.
    ridge : float
        :math:`\Lambda` > 0, sum form: it does not grow with n.
    linear : ndarray of float64, shape (d,) or (d + 1,)
        The vector b.
    row_norm : float
        Bound on the norm of a row, intercept column included.
    intercept_scaling : float
        The constant column, 0 for none.
    """

    X: NDArray[np.floating]
    signs: Array
    loss: MarginLoss
    ridge: float
    linear: Array
    row_norm: float
    intercept_scaling: float = 0.0

    @property
    def size(self) -> int:
        return int(self.X.shape[1]) + bool(self.intercept_scaling)

    def thinned(self, rows: int) -> "LinearObjective":
        """Return about `rows` evenly spaced rows as a float32 problem of their own, the constant column stored."""
        chosen = slice(None, None, max(1, len(self.X) // rows))
        stored = self.X[chosen]
        X = np.empty((len(stored), self.size), dtype=np.float32)
        X[:, : stored.shape[1]] = stored
        X[:, stored.shape[1] :] = self.intercept_scaling
        return LinearObjective(X, self.signs[chosen], self.loss, self.ridge, self.linear, self.row_norm)

    def margins(self, weights: Array) -> Array:
        """Return ``y <x, w>`` for every row, computed in the precision of `X`."""
        raw = self.X @ weights[: self.X.shape[1]].astype(self.X.dtype, copy=False)
        return self.signs * self._with_intercept(raw.astype(np.float64, copy=False), weights)

    def gradient(self, weights: Array, slopes: Array, *, weight: float = 1.0) -> Array:
        signed = slopes * self.signs
        data = (signed.astype(self.X.dtype, copy=False) @ self.X).astype(np.float64, copy=False)
        return self.ridge * weights + self.linear + weight * self._extended(data, signed)

    def hessian(self, margins: Array, *, weight: float = 1.0) -> Array:
        """Return the matrix of second derivatives, with the loss part taken `weight` times; without an intercept."""
        roots = np.sqrt(weight * self.loss.curvature(margins)).astype(self.X.dtype)[:, None]

        def product(rows: slice) -> NDArray[np.floating]:
            scaled = self.X[rows] * roots[rows]
            return scaled.T @ scaled

        result: Array = np.asarray(sum(over_rows(product, len(self.X))), dtype=np.float64)
        result[np.diag_indices_from(result)] += self.ridge
        return result

    def certified_gradient(self, weights: Array) -> tuple[Array, float]:
        r"""Return the gradient in float64, block by block, and a bound on its norm as a real vector.

        Notes
        -----
        With :math:`\gamma_k = k u / (1 - k u)` a margin is off by at most :math:`\gamma_{d+3} R \|w\|`, a slope by the
        curvature bound times that, and a block's sum by :math:`\gamma_B R \sum |slope|`, whatever the
        order of summation [1]_. All enter the returned bound, as does half a unit in the last
        place of every entry of b, which may itself be a rounded real number.

        References
        ----------
        .. [1] Higham, "Accuracy and stability of numerical algorithms", 2002, Section 3.1.
        """
        n, d = self.X.shape
        parts = over_rows(lambda rows: self._loss_gradient(weights, rows), n)
        total: Array = np.sum([part for part, _ in parts], axis=0)
        slope_sum = sum(size for _, size in parts)
        gradient = self.ridge * weights + self.linear + total
        length = float(np.linalg.norm(weights))
        n_blocks = -(-n // BLOCK_ROWS)
        slope_error = self.loss.curvature_bound * _gamma(d + 3) * self.row_norm * length + 16 * ROUNDING
        sum_error = _gamma(min(n, BLOCK_ROWS) + n_blocks + 32) * (slope_sum * (1 + 2.0**-20) + n * slope_error)
        error = self.row_norm * (n * slope_error + sum_error)
        error += (
            8 * ROUNDING * (self.ridge * length + float(np.linalg.norm(self.linear)) + float(np.linalg.norm(total)))
        )
        return gradient, (float(np.linalg.norm(gradient)) + error) * (1 + _gamma(self.size + 8))

    def _loss_gradient(self, weights: Array, rows: slice) -> tuple[Array, float]:
        """Return the gradient of the loss over a range of rows in float64, and the sum of the slopes' sizes."""
        total = np.zeros(self.size)
        slope_sum = 0.0
        wide = None if self.X.dtype == np.float64 else np.empty((BLOCK_ROWS, self.X.shape[1]))
        for start in range(rows.start, rows.stop, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, rows.stop)
            block, signs = self.X[start:stop], self.signs[start:stop]
            if wide is not None:
                block = wide[: len(block)]
                np.copyto(block, self.X[start:stop])
            slopes = self.loss.slope(signs * self._with_intercept(block @ weights[: self.X.shape[1]], weights))
            signed = slopes * signs
            total += self._extended(signed @ block, signed)
            slope_sum += float(np.abs(slopes).sum())
        return total, slope_sum

    def _with_intercept(self, products: Array, weights: Array) -> Array:
        return products + self.intercept_scaling * weights[-1] if self.intercept_scaling else products

    def _extended(self, data: Array, signed: Array) -> Array:
        return np.append(data, self.intercept_scaling * signed.sum()) if self.intercept_scaling else data


def minimise(objective: LinearObjective, *, tolerance: float, max_iterations: int = 500) -> Array:
    """Return weights at which the norm of the exact gradient is certified to be at most `tolerance`.

    Newton steps solve a thinned problem; the Hessian of a wider sample, taken one step closer to
    the optimum, then preconditions a limited-memory quasi-Newton search over all rows. Every
    step of the search reads the rows once, in float64, and yields a certificate; where the full
    step fails, a line search on the margins finds its length.

    Parameters
    ----------
    objective : LinearObjective
        What to minimise.
    tolerance : float
        Public bound on the gradient norm, > 0, rounding errors included.
    max_iterations : int
        Steps before giving up.

    Raises
    ------
    CertificateMissed
        If the certificate is not reached; the message holds nothing learned from the rows.
    """
    with one_thread_per_call():
        return _minimise(objective, tolerance, max_iterations)


def _minimise(objective: LinearObjective, tolerance: float, max_iterations: int) -> Array:
    weights, precondition = _start(objective)
    search = _Search(precondition)
    gradient, bound = objective.certified_gradient(weights)
    for iteration in range(max_iterations):
        norm = float(np.linalg.norm(gradient))
        if bound <= tolerance:
            return weights
        if bound - norm > tolerance:
            break  # rounding alone exceeds the tolerance: no step can help
        step = search.direction(gradient)
        moved = weights + step
        new_gradient, bound = objective.certified_gradient(moved)
        if not np.linalg.norm(new_gradient) < norm:
            moved, _ = _advance(objective, weights, objective.margins(weights), step, gradient)
            new_gradient, bound = objective.certified_gradient(moved)
        search.remember(moved - weights, new_gradient - gradient)
        weights, gradient = moved, new_gradient
        if iteration == 0 and objective.size <= LARGEST_HESSIAN:
            search.precondition = _inverse_hessian(
                objective.thinned(ROWS_PER_WEIGHT * objective.size), weights, objective
            )
    raise CertificateMissed(f"the solver could not certify a gradient norm of at most {tolerance}")


class _Search:
    """Limited-memory BFGS directions around a preconditioner."""

    def __init__(self, precondition: Preconditioner) -> None:
        self.precondition = precondition
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

    def remember(self, step: Array, change: Array) -> None:
        product = float(step @ change)
        if product > 0:
            self._pairs.append((step, change, product))

    def direction(self, gradient: Array) -> Array:
        result = gradient.copy()
        shares = []
        for step, change, product in reversed(self._pairs):
            share = float(step @ result) / product
            shares.append(share)
            result -= share * change
        result = self.precondition(result)
        for (step, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            result += (share - float(change @ result) / product) * step
        return -result


def _start(objective: LinearObjective) -> tuple[Array, Preconditioner]:
    """Solve a thinned problem and return its weights and its inverse Hessian."""
    width = objective.size
    weights = np.zeros(width)
    small = objective.thinned(max(LEAST_ROWS, FIRST_ROWS_PER_WEIGHT * width))
    weight = _share(objective, small)
    margins = small.margins(weights)
    if width > LARGEST_HESSIAN:
        diagonal = objective.ridge + (weight * small.loss.curvature(margins)) @ small.X**2
        return weights, lambda vector: vector / diagonal
    for _ in range(30):
        precondition = _inverse_hessian(small, weights, objective)
        gradient = small.gradient(weights, small.loss.slope(margins), weight=weight)
        step = -precondition(gradient)
        weights, margins = _advance(small, weights, margins, step, gradient, weight=weight)
        # The thinned problem differs from the whole by far more than this decrement.
        if -float(step @ gradient) < 0.1 * width:
            break
    return weights, precondition


def _share(objective: LinearObjective, small: LinearObjective) -> float:
    return len(objective.X) / len(small.X) if len(small.X) else 1.0


def _inverse_hessian(small: LinearObjective, weights: Array, objective: LinearObjective) -> Preconditioner:
    hessian = small.hessian(small.margins(weights), weight=_share(objective, small))
    factor = linalg.cho_factor(hessian, check_finite=False)

    def solve(vector: Array) -> Array:
        return linalg.cho_solve(factor, vector, check_finite=False)

    return solve


def _advance(
    objective: LinearObjective, weights: Array, margins: Array, step: Array, gradient: Array, *, weight: float = 1.0
) -> tuple[Array, Array]:
    """Move along `step` to where the directional derivative has lost at least half its size."""
    change = objective.margins(step)
    fixed = float((objective.ridge * weights + objective.linear) @ step)
    quadratic = objective.ridge * float(step @ step)
    start = float(gradient @ step)
    shortest, longest = 0.0, np.inf
    length = 1.0
    for _ in range(60):
        slopes = objective.loss.slope(margins + length * change)
        derivative = fixed + length * quadratic + weight * float(slopes @ change)
        if derivative > -0.5 * start:
            longest = length
        elif derivative < 0.5 * start:
            shortest = length
        else:
            break
        length = 2 * length if np.isinf(longest) else (shortest + longest) / 2
    return weights + length * step, margins + length * change


def _gamma(terms: int) -> float:
    return terms * ROUNDING / (1 - terms * ROUNDING)
