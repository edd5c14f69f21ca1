"""Learn classes from answers that went through a known channel: softmax regression by maximum a posteriori."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator

from learner.estimators.adaptation import (
    adapt_to_texts,
    checked_rows,
    checked_weights,
    class_scores,
    linear_model,
    middle_of,
)
from learner.estimators.rows import one_thread_per_call
from learner.linear_model import LinearModel

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


@dataclass(eq=False, repr=False)
class ChannelClassifier(BaseEstimator):  # type: ignore[misc]
    r"""Softmax regression on responses whose law given the true class is public.

    A question with features x was answered, the consensus c went through a channel, and z came out. The log likelihood
    of z is :math:`\ln \sum_c P(z \mid c)\, p_w(c \mid x)`, whatever prior the channel of this question used; several
    responses to one question multiply. Everything it reads is public or was paid with the responses, so it may be
    fitted any number of times.

    The scores are those of a prior model, times a strength that is learned, plus weights of their own that are kept
    small. Where texts without answers are given, the prior moved to them (`adapt_to_texts`) is a second such model.

    Parameters
    ----------
    classes : sequence of str
        Declared classes, at least two.
    prior : LinearModel, optional
        A model at epsilon 0, such as one made from descriptions, or an earlier release.
    regularization : float, optional
        Penalty on the weights of its own, for rows scaled to a mean square of 1; by default the one of
        `REGULARIZATIONS` under which held-out responses are likeliest.

    Attributes
    ----------
    model_ : LinearModel
        What was learned.
    regularization_ : float
        The penalty that was used.
    strengths_ : ndarray, shape (0,), (1,) or (2,)
        Of the prior and of the prior moved to the texts.
    log_likelihood_ : float
        Of the responses it was fitted to, in nats.

    References
    ----------
    .. [1] Ghazi, Golowich, Kumar, Manurangsi, Zhang, "Deep learning with label differential privacy", 2021 (the
       responses, from which it learns as if they were true).
    .. [2] Patrini, Rozza, Menon, Nock, Qu, "Making deep neural networks robust to label noise: a loss correction
       approach", 2017, Theorem 2 (the forward correction).
    """

    _: KW_ONLY
    classes: Sequence[str]
    prior: LinearModel | None = None
    regularization: float | None = None

    def fit(
        self,
        X: NDArray[np.floating],
        likelihoods: NDArray[np.floating],
        *,
        texts: NDArray[np.floating] | None = None,
        weights: NDArray[np.floating] | None = None,
        moved: LinearModel | None = None,
    ) -> Self:
        """Learn from responses.

        Parameters
        ----------
        X : ndarray of floats, shape (n, d)
            Features of the questions, n >= 1.
        likelihoods : ndarray of floats, shape (n, K)
            P(z | c) of what came out, for each class c in the order of `classes`: >= 0, some of them > 0.
        texts : ndarray of floats, shape (m, d), optional
            Features of everything that passed the gate, asked about or not.
        weights : ndarray of floats, shape (m,), optional
            How often each of these was said.
        moved : LinearModel, optional
            What `adapt_to_texts` made of the prior and these texts, where it is known already.

        Raises
        ------
        ValueError
            If shapes do not fit, a number is out of range, or the prior has other classes.
        """
        classes = self._checked_classes()
        rows = checked_rows(X, np.shape(X)[1] if np.ndim(X) == 2 else 0)
        chances = np.asarray(likelihoods, dtype=np.float64)
        if chances.shape != (len(rows), len(classes)):
            raise ValueError(f"likelihoods must have shape {(len(rows), len(classes))}, got {chances.shape}")
        if not (np.isfinite(chances).all() and (chances >= 0).all() and (chances.max(axis=1) > 0).all()):
            raise ValueError("likelihoods must be finite numbers >= 0, and not all 0 for a question")
        public = rows if texts is None else checked_rows(texts, rows.shape[1])
        counts = checked_weights(weights if texts is not None else None, len(public))
        centre, scale = middle_of(public, counts)
        with one_thread_per_call():
            priors = self._priors(None if texts is None else public, counts, moved)
            with np.errstate(divide="ignore"):
                task = _Task(
                    (rows - centre) / scale,
                    np.log(chances),
                    np.stack([class_scores(model, rows) for model in priors], axis=2)
                    if priors
                    else np.zeros((*chances.shape, 0)),
                )
            self.regularization_ = self._regularization(task)
            fitted = _fit(task, self.regularization_)
            self.strengths_, self.log_likelihood_ = fitted.strengths, task.log_likelihood(fitted)
            self.model_ = self._model(fitted, priors, centre, scale, classes)
        return self

    def _checked_classes(self) -> tuple[str, ...]:
        classes = tuple(self.classes)
        if len(classes) < 2 or len(set(classes)) != len(classes):
            raise ValueError(f"classes must be distinct, at least two, got {len(classes)}")
        if self.prior is not None and self.prior.classes != classes:
            raise ValueError("the prior must be a model of the same classes")
        if self.prior is not None and len(classes) > 2 and self.prior.multiclass != "softmax":
            raise ValueError("the prior must be a softmax model, whose scores add up with weights")
        if self.regularization is not None and not 0 < self.regularization < np.inf:
            raise ValueError(f"regularization must be > 0 and finite, got {self.regularization}")
        return classes

    def _priors(
        self, texts: NDArray[np.float64] | None, counts: NDArray[np.float64], moved: LinearModel | None
    ) -> list[LinearModel]:
        if self.prior is None:
            return []
        if texts is None:
            return [self.prior]
        return [self.prior, moved or adapt_to_texts(self.prior, texts, counts)]

    def _regularization(self, task: "_Task") -> float:
        """Return the given penalty, or the one under which responses that were held out are likeliest."""
        if self.regularization is not None:
            return float(self.regularization)
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

    def _model(
        self,
        fitted: "_Fitted",
        priors: list[LinearModel],
        centre: NDArray[np.float64],
        scale: float,
        classes: tuple[str, ...],
    ) -> LinearModel:
        own = linear_model(fitted.weights / scale, fitted.intercept, centre, classes)
        coef, intercept = own.coef, own.intercept
        for strength, prior in zip(fitted.strengths, priors, strict=True):
            coef, intercept = coef + strength * prior.coef, intercept + strength * prior.intercept
        return LinearModel(coef, intercept, classes, "softmax")


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
        scores = self.rows @ at.weights.T + at.intercept + self.scores @ at.strengths
        return scores - _log_sums(scores)

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
