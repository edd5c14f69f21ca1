"""Softmax regression on answers that went through a known channel, by maximum a posteriori."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from dpal.recompute.transcript import Array, Session, Tell, Weights

# Tried by likelihood of held-out responses where none is given.
REGULARIZATIONS = (0.3, 1.0, 3.0, 10.0)
FOLDS = 4
# Penalty on the intercepts.
INTERCEPT_REGULARIZATION = 1.0
# How far the strength of the prior's scores may wander from 1, as a standard deviation.
STRENGTH_SPREAD = 0.3
MOST_STEPS = 80
# Enough to tell penalties apart.
STEPS_TO_COMPARE = 25


class Scored(Protocol):
    """Linear scores and how they become probabilities."""

    @property
    def coef(self) -> Array: ...

    @property
    def intercept(self) -> Array: ...

    @property
    def multiclass(self) -> str: ...


@dataclass(frozen=True)
class ChannelFit:
    """Weights, with the penalty that was used, the strengths of the priors and the log likelihood of the responses."""

    weights: Weights
    regularization: float
    strengths: Array
    log_likelihood: float


def channel(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Learn from `responses`: the probability of what came out for each class, shape (n, K)."""
    chances = session.ask("responses")
    if len(chances):
        return fit_channel(parameters, chances).weights
    if parameters["priors"]:
        return Weights(parameters["priors"][-1]["coef"], parameters["priors"][-1]["intercept"])
    outputs = 1 if chances.shape[1] == 2 else chances.shape[1]
    return Weights(np.zeros((outputs, parameters["rows"].shape[1])), np.zeros(outputs))


def fit_channel(parameters: Mapping[str, Any], chances: Array) -> ChannelFit:
    """Learn from at least one response: `chances`, shape (n, K), has its probability for each class.

    The parameters are `rows` of the questions, shape (n, d); `priors`, mappings with `coef`, `intercept` and
    `multiclass`, the most confident last; `centre` and `scale` of public texts; `regularization`, None to find it.
    """
    rows, centre, scale = parameters["rows"], parameters["centre"], parameters["scale"]
    priors = [Weights(**each) for each in parameters["priors"]]
    with threadpool_limits(limits=1, user_api="blas"), np.errstate(divide="ignore"):
        scores = np.stack([class_scores(each, rows) for each in priors], axis=2) if priors else None
        task = _Task(
            (rows - centre) / scale,
            np.log(chances),
            np.zeros((*chances.shape, 0)) if scores is None else scores,
        )
        penalty = _regularization(parameters["regularization"], task)
        fitted = _fit(task, penalty)
        likelihood = task.log_likelihood(fitted)
    own = about_centre(fitted.weights / scale, fitted.intercept, centre)
    coef, intercept = own.coef, own.intercept
    for strength, prior in zip(fitted.strengths, priors, strict=True):
        coef, intercept = coef + strength * prior.coef, intercept + strength * prior.intercept
    return ChannelFit(Weights(coef, intercept), penalty, fitted.strengths, likelihood)


def class_scores(model: Scored, X: NDArray[np.floating]) -> Array:
    """Return one score a class, shape (n, K), whose softmax are the model's probabilities up to a common shift."""
    values: Array = np.asarray(X, dtype=np.float64) @ model.coef.T + model.intercept
    if values.shape[1] == 1:
        return np.concatenate([-values / 2, values / 2], axis=1)
    scores: Array = values if model.multiclass == "softmax" else -np.logaddexp(0.0, -values)
    return scores


def about_centre(weights: Array, intercept: Array, centre: Array) -> Weights:
    """Return the model whose class scores are ``weights @ (x - centre) + intercept``; `weights` has shape (K, d)."""
    shifted = intercept - weights @ centre
    if len(weights) == 2:
        weights, shifted = weights[1:] - weights[:1], shifted[1:] - shifted[:1]
    return Weights(weights, shifted)


def _regularization(given: float | None, task: "_Task") -> float:
    """Return the given penalty, or the one under which responses that were held out are likeliest."""
    if given is not None:
        return given
    if len(task.rows) < 2 * FOLDS:
        return REGULARIZATIONS[-1]
    fold = np.arange(len(task.rows)) % FOLDS
    found = {
        penalty: sum(
            task.part(fold == held).log_likelihood(_fit(task.part(fold != held), penalty, STEPS_TO_COMPARE))
            for held in range(FOLDS)
        )
        for penalty in REGULARIZATIONS
    }
    return max(found, key=lambda penalty: found[penalty])


@dataclass(frozen=True, slots=True)
class _Fitted:
    """Weights of shape (K, d), intercepts of shape (K,), strengths of shape (J,)."""

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    strengths: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Task:
    """Rows (n, d), log likelihoods (n, K) and the scores of J priors (n, K, J)."""

    rows: NDArray[np.float64]
    logs: NDArray[np.float64]
    scores: NDArray[np.float64]

    def part(self, kept: NDArray[np.bool_]) -> "_Task":
        return _Task(self.rows[kept], self.logs[kept], self.scores[kept])

    def log_classes(self, at: _Fitted) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.rows @ at.weights.T + at.intercept + self.scores @ at.strengths
        found: NDArray[np.float64] = scores - _log_sums(scores)
        return found

    def log_likelihood(self, at: _Fitted) -> float:
        return float(_log_sums(self.log_classes(at) + self.logs).sum())


def _log_sums(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln of the sum of the exponentials of each row, shape (n, 1); scipy's takes longer than all the rest."""
    largest = logs.max(axis=1, keepdims=True)
    sums: NDArray[np.float64] = largest + np.log(np.exp(logs - largest).sum(axis=1, keepdims=True))
    return sums


def _fit(task: _Task, penalty: float, steps: int = MOST_STEPS) -> _Fitted:
    """Minimise the negative log posterior; the more confident prior, the texts' own, starts with all the strength."""
    n_classes, dimension, n_priors = task.logs.shape[1], task.rows.shape[1], task.scores.shape[2]
    expected = np.zeros(n_priors)
    expected[-1:] = 1.0
    edges = np.cumsum([n_classes * dimension, n_classes])

    def unpacked(flat: NDArray[np.float64]) -> _Fitted:
        weights, intercept, strengths = np.split(flat, edges)
        return _Fitted(weights.reshape(n_classes, dimension), intercept, strengths)

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        at = unpacked(flat)
        logs = task.log_classes(at)
        joint = logs + task.logs
        each = _log_sums(joint)
        # Predicted chances of the classes less those after the response.
        slope = np.exp(logs) - np.exp(joint - each)
        moved = (at.strengths - expected) / STRENGTH_SPREAD
        value = (
            -float(each.sum())
            + penalty / 2 * float((at.weights**2).sum())
            + INTERCEPT_REGULARIZATION / 2 * float((at.intercept**2).sum())
            + float((moved**2).sum()) / 2
        )
        gradients = (
            (slope.T @ task.rows + penalty * at.weights).ravel(),
            slope.sum(axis=0) + INTERCEPT_REGULARIZATION * at.intercept,
            np.einsum("nk,nkj->j", slope, task.scores) + moved / STRENGTH_SPREAD,
        )
        return value, np.concatenate(gradients)

    start = np.concatenate([np.zeros(n_classes * dimension + n_classes), expected])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return unpacked(found.x)
