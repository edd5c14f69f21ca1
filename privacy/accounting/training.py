r"""Sensitivities and losses of convex empirical risk minimisation.

Two forms of the objective are used. ``sum``: :math:`\sum_i \ell_i(w) + (\Lambda/2)\lVert w\rVert^2`, where
:math:`\Lambda` is public and the number of records need not be. ``mean``:
:math:`\frac1n \sum_i \ell_i(w) + (\lambda/2)\lVert w\rVert^2` with public `n`; it is the sum form with
:math:`\Lambda = n\lambda`. Proofs are in docs/privacy.md, training.
"""

import math
from functools import lru_cache
from typing import Literal

from privacy.accounting import checks
from privacy.accounting.composition import gaussian_delta
from privacy.accounting.cost import ADJACENCIES, Adjacency, no_proof
from privacy.wording import as_message

ObjectiveForm = Literal["mean", "sum"]
Norm = Literal["l1", "l2"]
Jacobian = Literal["published", "rank_one"]

# Calibrations stay below the target by more than `units.outward` adds when the event is priced again.
_SLACK = 1 - 2.0**-45
_DELTA_SLACK = 1 - 1e-9


def records_moved(adjacency: Adjacency) -> int:
    """Return how many gradient terms differ between neighbours: two for a replacement, else one."""
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    return 2 if adjacency == "replace" else 1


def sum_regularization(regularization: float, n: int, form: ObjectiveForm) -> float:
    """Return the regularisation constant of the equivalent sum form."""
    checks.positive("regularization", regularization)
    checks.one_of("form", form, ("mean", "sum"))
    if form == "sum":
        return regularization
    checks.at_least("n", n, 1)
    return n * regularization


def erm_sensitivity(
    n: int,
    regularization: float,
    gradient_bound: float = 1.0,
    *,
    form: ObjectiveForm = "mean",
    adjacency: Adjacency = "replace",
    gradient_tolerance: float = 0.0,
) -> float:
    r"""Return the L2 sensitivity of a regularised minimiser.

    Parameters
    ----------
    n : int
        Public number of records, >= 1; ignored in the sum form.
    regularization : float
        :math:`\lambda` (mean form) or :math:`\Lambda` (sum form), > 0.
    gradient_bound : float
        Bound `G` on the gradient norm of one loss term, > 0.
    form : {"mean", "sum"}
        Which objective is minimised.
    adjacency : {"replace", "null", "add_remove"}
        `add_remove` needs the sum form, since it changes `n`.
    gradient_tolerance : float
        Certified bound `g` on the gradient norm of the objective (in its own form) at the returned point, >= 0;
        adds :math:`2g/\lambda`.

    Returns
    -------
    float
        :math:`2G/(n\lambda)` by default, half of it under `null`; :math:`G/\Lambda` and :math:`2G/\Lambda` in the sum
        form.

    Raises
    ------
    NoProof
        For `add_remove` in the mean form.

    References
    ----------
    .. [1] Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization", 2011, Corollary 8.
    """
    checks.positive("gradient_bound", gradient_bound)
    checks.not_negative("gradient_tolerance", gradient_tolerance)
    total = sum_regularization(regularization, n, form)
    if form == "mean" and adjacency == "add_remove":
        raise no_proof("the mean-form minimiser", adjacency, as_message("n must be public; use the sum form"))
    return records_moved(adjacency) * gradient_bound / total + solver_slack(gradient_tolerance, regularization)


def logistic_gradient_bound(regularization: float, norm_bound: float = 1.0) -> float:
    r"""Return the tight gradient bound of logistic loss at the mean-form minimiser.

    The minimiser has norm at most :math:`G/\lambda`, margins are therefore at least :math:`-MG/\lambda`, and the
    slope of the loss there is below one: `G` is the solution of :math:`G = M / (1 + e^{-MG/\lambda})`.

    Parameters
    ----------
    regularization : float
        :math:`\lambda` of the mean form, > 0.
    norm_bound : float
        Bound `M` on the norm of a record, > 0.

    Returns
    -------
    float
        A bound between M/2 and M; only for output perturbation, whose proof looks at gradients at exact minimisers.
    """
    checks.positive("regularization", regularization)
    checks.positive("norm_bound", norm_bound)
    bound = norm_bound
    # The iteration falls monotonically from M, so stopping early leaves a valid, slightly larger bound.
    for _ in range(200):
        bound = min(bound, norm_bound / (1 + math.exp(-min(700.0, norm_bound * bound / regularization))))
    return min(norm_bound, bound * (1 + 1e-15))


def solver_slack(gradient_tolerance: float, regularization: float) -> float:
    r"""Return :math:`2g/\lambda`: how far two certified points can lie apart while their exact minimisers agree."""
    checks.not_negative("gradient_tolerance", gradient_tolerance)
    checks.positive("regularization", regularization)
    return 2 * gradient_tolerance / regularization


def grid_slack(grid: float, dimension: int, norm: Norm = "l2") -> float:
    r"""Return what rounding to a grid adds to the sensitivity: :math:`h\sqrt d` in L2, :math:`hd` in L1."""
    checks.not_negative("grid", grid)
    checks.at_least("dimension", dimension, 1)
    checks.one_of("norm", norm, ("l1", "l2"))
    return grid * (math.sqrt(dimension) if norm == "l2" else dimension)


def curvature_loss(curvature: float, norm_bound: float, regularization: float) -> float:
    r"""Return the loss of the change of variables, :math:`\ln(1 + cM^2/\Lambda)`, for one rank-one Hessian term.

    Parameters
    ----------
    curvature : float
        Bound `c` on the second derivative of the loss in its margin: 1/4 logistic, 1/(2h) Huber-SVM.
    norm_bound : float
        Bound `M` on the norm of a record, > 0.
    regularization : float
        Total sum-form regularisation, extra included, > 0.
    """
    checks.positive("curvature", curvature)
    checks.positive("norm_bound", norm_bound)
    checks.positive("regularization", regularization)
    return math.log1p(curvature * norm_bound**2 / regularization)


def objective_perturbation(
    epsilon: float,
    n: int,
    regularization: float,
    curvature: float = 0.25,
    *,
    norm_bound: float = 1.0,
    form: ObjectiveForm = "mean",
    jacobian: Jacobian = "published",
) -> tuple[float, float]:
    r"""Return the noise parameter and the extra regularisation of objective perturbation.

    Parameters
    ----------
    epsilon : float
        Loss of the exact minimiser, > 0; the solver's output noise comes on top.
    n : int
        Public number of records, >= 1; ignored in the sum form.
    regularization : float
        :math:`\lambda` (mean form) or :math:`\Lambda` (sum form), > 0.
    curvature : float
        Bound `c` on the second derivative of the loss in its margin, > 0.
    norm_bound : float
        Bound `M` on the norm of a record, > 0.
    form : {"mean", "sum"}
        Which objective is minimised; the extra regularisation comes back in the same form.
    jacobian : {"published", "rank_one"}
        `published`: :math:`\varepsilon' = \varepsilon - \ln(1 + 2c/(n\lambda) + c^2/(n\lambda)^2)`. `rank_one`:
        :math:`\varepsilon' = \varepsilon - \ln(1 + c/(n\lambda))`, which is enough because a neighbour changes one
        rank-one Hessian term on either side of a common remainder.

    Returns
    -------
    (epsilon_prime, extra_regularization) : tuple of float
        The norm of the noise vector in the sum-form objective is Gamma(d, G/epsilon_prime) under `null` and
        Gamma(d, 2G/epsilon_prime) under `replace`. Where the change of variables alone would use up `epsilon`, the
        regularisation is raised until it takes half of it, as published. `epsilon_prime` is rounded down so that
        the cost computed back from it does not exceed `epsilon`.

    References
    ----------
    .. [1] Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 2 and Theorem 9. The 2008 form leaves the change of
       variables out and does not reach its epsilon.
    """
    checks.positive("epsilon", epsilon)
    checks.one_of("jacobian", jacobian, ("published", "rank_one"))
    total = sum_regularization(regularization, n, form)
    terms = 2 if jacobian == "published" else 1
    left = epsilon * _SLACK - terms * curvature_loss(curvature, norm_bound, total)
    if left > 0:
        return left, 0.0
    raised = curvature * norm_bound**2 / math.expm1(epsilon / 2 / terms)
    extra = max(0.0, raised / total - 1) * regularization
    return epsilon / 2 * _SLACK, extra * (1 + 2.0**-40)


def gamma_norm_scale(epsilon_prime: float, gradient_bound: float, adjacency: Adjacency) -> float:
    r"""Return the scale of the Gamma-distributed norm: :math:`G/\varepsilon'`, twice that for a replacement."""
    checks.positive("epsilon_prime", epsilon_prime)
    checks.positive("gradient_bound", gradient_bound)
    return records_moved(adjacency) * gradient_bound / epsilon_prime


def gaussian_objective_delta(
    epsilon: float,
    sigma: float,
    regularization: float,
    *,
    gradient_bound: float = 1.0,
    curvature: float = 0.25,
    norm_bound: float = 1.0,
) -> float:
    r"""Return the delta, under `null`, of objective perturbation with Gaussian noise.

    Parameters
    ----------
    epsilon : float
        Total loss at which delta is evaluated, >= 0.
    sigma : float
        Standard deviation of every coordinate of the noise vector in the sum-form objective, > 0.
    regularization : float
        Sum-form regularisation, extra included, > 0.
    gradient_bound, curvature, norm_bound : float
        `G`, `c` and `M` of a loss that is a monotone function of the margin (logistic, Huber-SVM).

    Returns
    -------
    float
        The Gaussian mechanism's delta at ratio G/sigma and loss ``epsilon - ln(1 + c M^2 / Lambda)``; one where the
        change of variables alone exceeds `epsilon`.

    Notes
    -----
    The gradient of one term is a scalar of fixed sign and size at most G times a direction that does not depend on
    the noise, so the loss is governed by one Gaussian coordinate.

    References
    ----------
    .. [1] Kifer, Smith, Thakurta, "Private convex empirical risk minimization and high-dimensional regression", 2012,
       Algorithm 1 (a looser constant).
    """
    checks.not_negative("epsilon", epsilon)
    checks.positive("sigma", sigma)
    checks.positive("gradient_bound", gradient_bound)
    left = epsilon - curvature_loss(curvature, norm_bound, regularization)
    return gaussian_delta(gradient_bound / sigma, left) if left >= 0 else 1.0


@lru_cache(maxsize=64)
def gaussian_objective_perturbation(
    epsilon: float,
    delta: float,
    regularization: float,
    *,
    gradient_bound: float = 1.0,
    curvature: float = 0.25,
    norm_bound: float = 1.0,
) -> tuple[float, float]:
    r"""Return the noise and the extra regularisation of objective perturbation with Gaussian noise, under `null`.

    Parameters
    ----------
    epsilon, delta : float
        What the exact minimiser may cost, epsilon > 0, 0 < delta < 1; the solver's output noise comes on top.
    regularization : float
        Sum-form :math:`\Lambda` > 0.
    gradient_bound, curvature, norm_bound : float
        `G`, `c` and `M` of the loss.

    Returns
    -------
    (sigma, extra_regularization) : tuple of float
        The smallest standard deviation, up to rounding, at which `gaussian_objective_delta` is at most `delta`. Where
        the change of variables alone would use up more than half of `epsilon`, the regularisation is raised until
        it takes half, as in `objective_perturbation`.
    """
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    extra = 0.0
    if 2 * curvature_loss(curvature, norm_bound, regularization) > epsilon:
        raised = curvature * norm_bound**2 / math.expm1(epsilon / 2)
        extra = max(0.0, raised - regularization) * (1 + 2.0**-40)
    left = epsilon - curvature_loss(curvature, norm_bound, regularization + extra)
    low, high = 0.0, 1.0
    while gaussian_delta(high, left) < delta:
        low, high = high, 2 * high
    # The ratio G / sigma; bisection ends on the side whose delta is the smaller.
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if gaussian_delta(middle, left) <= delta * _DELTA_SLACK else (low, middle)
    return gradient_bound / low, extra
