"""Minimise a regularised sum of losses of a linear model, to a gradient norm that is certified."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from privacy.errors import CertificateMissed

Array = NDArray[np.float64]
BLOCK_ROWS = 2048
ROUNDING = 2.0**-53
# Above this width a Hessian costs more than the iterations it saves.
LARGEST_HESSIAN = 2048
MEMORY = 12
LEAST_ROWS = 4096
ROWS_PER_WEIGHT = 64


class MarginLoss(Protocol):
    """A convex loss of the margin ``y <x, w>`` with bounded slope and curvature.

    Attributes
    ----------
    slope_bound : float
        Largest absolute slope.
    curvature_bound : float
        Largest second derivative.
    """

    slope_bound: float
    curvature_bound: float

    def slope(self, margins: Array) -> Array:
        """Return the derivative at each margin, accurate to a few units in the last place of one."""
        ...

    def curvature(self, margins: Array) -> Array:
        """Return the second derivative at each margin."""
        ...


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
        """Number of weights, intercept included."""
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
        """Return the gradient whose loss part has the given `slopes`, in the precision of `X`."""
        signed = slopes * self.signs
        data = (signed.astype(self.X.dtype, copy=False) @ self.X).astype(np.float64, copy=False)
        return self.ridge * weights + self.linear + weight * self._extended(data, signed)

    def hessian(self, margins: Array, *, weight: float = 1.0) -> Array:
        """Return the matrix of second derivatives, with the loss part taken `weight` times; without an intercept."""
        scaled = self.X * np.sqrt(weight * self.loss.curvature(margins)).astype(self.X.dtype)[:, None]
        result: Array = (scaled.T @ scaled).astype(np.float64)
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
        total = np.zeros(self.size)
        slope_sum = 0.0
        for block, signs in self._blocks():
            margins = signs * self._with_intercept(block @ weights[:d], weights)
            slopes = self.loss.slope(margins)
            signed = slopes * signs
            total += self._extended(signed @ block, signed)
            slope_sum += float(np.abs(slopes).sum())
        gradient = self.ridge * weights + self.linear + total
        length = float(np.linalg.norm(weights))
        n_blocks = -(-n // BLOCK_ROWS)
        slope_error = self.loss.curvature_bound * _gamma(d + 3) * self.row_norm * length + 16 * ROUNDING
        sum_error = _gamma(min(n, BLOCK_ROWS) + n_blocks + 4) * (slope_sum * (1 + 2.0**-20) + n * slope_error)
        error = self.row_norm * (n * slope_error + sum_error)
        error += (
            8 * ROUNDING * (self.ridge * length + float(np.linalg.norm(self.linear)) + float(np.linalg.norm(total)))
        )
        return gradient, (float(np.linalg.norm(gradient)) + error) * (1 + _gamma(self.size + 8))

    def _blocks(self) -> Iterator[tuple[Array, Array]]:
        for start in range(0, len(self.X), BLOCK_ROWS):
            stop = start + BLOCK_ROWS
            yield self.X[start:stop].astype(np.float64, copy=False), self.signs[start:stop]

    def _with_intercept(self, products: Array, weights: Array) -> Array:
        return products + self.intercept_scaling * weights[-1] if self.intercept_scaling else products

    def _extended(self, data: Array, signed: Array) -> Array:
        return np.append(data, self.intercept_scaling * signed.sum()) if self.intercept_scaling else data


def minimise(objective: LinearObjective, *, tolerance: float, max_iterations: int = 500) -> Array:
    """Return weights at which the norm of the exact gradient is certified to be at most `tolerance`.

    A thinned problem is solved first by Newton steps; its Hessian then preconditions a
    limited-memory quasi-Newton search over all rows, in the precision of the rows. Each step
    reads the rows twice; the line search needs margins only. The last steps and the
    certificate are in float64.

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
    weights, precondition = _start(objective)
    search = _Search(precondition)
    weights = _search_in_row_precision(objective, weights, search, tolerance, max_iterations)
    gradient, bound = objective.certified_gradient(weights)
    for _ in range(max_iterations):
        if bound <= tolerance:
            return weights
        if bound - float(np.linalg.norm(gradient)) > tolerance:
            break  # rounding alone exceeds the tolerance: no step can help
        step = search.direction(gradient)
        length = 1.0
        while True:
            moved = weights + length * step
            new_gradient, new_bound = objective.certified_gradient(moved)
            # Near the optimum the objective is quadratic; halving ends long before this many steps.
            if float(np.linalg.norm(new_gradient)) < float(np.linalg.norm(gradient)) or length < 2.0**-20:
                break
            length /= 2
        search.remember(moved - weights, new_gradient - gradient)
        weights, gradient, bound = moved, new_gradient, new_bound
    raise CertificateMissed(f"the solver could not certify a gradient norm of at most {tolerance}")


class _Search:
    """Limited-memory BFGS directions around a preconditioner."""

    def __init__(self, precondition: Callable[[Array], Array]) -> None:
        self._precondition = precondition
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
        result = self._precondition(result)
        for (step, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            result += (share - float(change @ result) / product) * step
        return -result


def _start(objective: LinearObjective) -> tuple[Array, Callable[[Array], Array]]:
    """Solve a thinned problem and return its weights and its inverse Hessian, as a function."""
    n = len(objective.X)
    width = objective.size
    weights = np.zeros(width)
    small = objective.thinned(max(LEAST_ROWS, ROWS_PER_WEIGHT * width))
    weight = n / len(small.X) if n else 1.0
    margins = small.margins(weights)
    if width > LARGEST_HESSIAN:
        curvature = weight * small.loss.curvature(margins)
        diagonal = curvature @ small.X**2
        return weights, lambda vector: vector / (diagonal + objective.ridge)
    for _ in range(30):
        factor = linalg.cho_factor(small.hessian(margins, weight=weight), check_finite=False)
        gradient = small.gradient(weights, small.loss.slope(margins), weight=weight)
        step = -linalg.cho_solve(factor, gradient, check_finite=False)
        weights, margins = _advance(small, weights, margins, step, gradient, weight=weight)
        # The thinned problem differs from the whole by far more than this decrement.
        if -float(step @ gradient) < 0.01 * width:
            break

    def precondition(vector: Array) -> Array:
        solved: Array = linalg.cho_solve(factor, vector, check_finite=False)
        return solved

    return weights, precondition


def _search_in_row_precision(
    objective: LinearObjective, weights: Array, search: _Search, tolerance: float, max_iterations: int
) -> Array:
    margins = objective.margins(weights)
    slopes = objective.loss.slope(margins)
    gradient = objective.gradient(weights, slopes)
    rounding = float(np.finfo(objective.X.dtype).eps)
    for _ in range(max_iterations):
        # Below this the gradient is rounding noise of the rows' own precision.
        floor = 2 * rounding * objective.row_norm * float(np.abs(slopes).sum())
        if float(np.linalg.norm(gradient)) <= max(tolerance / 2, floor):
            break
        step = search.direction(gradient)
        moved, margins = _advance(objective, weights, margins, step, gradient)
        slopes = objective.loss.slope(margins)
        new_gradient = objective.gradient(moved, slopes)
        search.remember(moved - weights, new_gradient - gradient)
        weights, gradient = moved, new_gradient
    return weights


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
