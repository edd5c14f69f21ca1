"""Base of the linear classifiers: checks of rows and labels, one model per class, prediction."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dpal.recompute import PROGRAMS
from dpal.recompute.transcript import Session, Transcript, Weights
from learner.estimators.convex import BLOCK_ROWS, ROUNDING, LinearObjective, LogisticLoss, MarginLoss
from learner.estimators.descriptions import PublicWords
from learner.estimators.rows import over_rows
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting import checks
from privacy.accounting.events import Event
from privacy.mechanisms.randomness import RandomSource, random_source
from privacy.mechanisms.session import MeasuringSession, Queries

# What a fit is charged.
ChargedEvent = TypeVar("ChargedEvent", bound=Event)
LOSS = LogisticLoss()
# Rows may exceed the declared bound by this much (they were scaled in single precision); it is charged.
NORM_SLACK = 2.0**-20


class LinearLogisticClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One logistic model for two classes, else one model per class against the rest.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights; with two classes a positive decision value speaks for the second.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, `intercept_scaling` included.
    classes_ : ndarray of shape (n_classes,)
        The classes in the order they were declared in.
    """

    regularization: float
    classes: Any
    fit_intercept: bool
    intercept_scaling: float
    gradient_tolerance: float
    # How decision values of more than two classes become probabilities.
    multiclass: ClassVar[Multiclass] = "one_vs_rest"
    # Hears how many of the planned steps are made; both numbers are public, and solvers' own steps are none of them.
    on_step: Callable[[int, int], None] | None = None

    def leaning(self, words: PublicWords) -> LinearModel | None:
        """Return the model, in the scale of this estimator, that a first fit leans on; None for a fit from nothing."""
        return None

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return decision values, shape (n,) for two classes and (n, n_classes) for more."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        values: NDArray[np.float64] = rows @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.coef_) == 1 else values

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return class probabilities, shape (n, n_classes): by models against the rest, each one's share."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.stack([expit(-values), expit(values)], axis=1)
        return softmax(values if self.multiclass == "softmax" else -np.logaddexp(0.0, -values), axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        values = self.decision_function(X)
        places = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[places]
        return predicted

    def _tell(self, done: int, total: int) -> None:
        if self.on_step is not None:
            self.on_step(done, total)

    def _check_positive(self, *names: str) -> None:
        for name in names:
            checks.positive(name, getattr(self, name))

    def _validated(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool = True
    ) -> tuple[NDArray[np.floating], NDArray[Any]]:
        try:
            rows, labels = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=0, reset=reset)
        except ValueError as error:
            if str(error).startswith("could not convert"):
                # The library's message quotes the entry.
                raise ValueError("X must hold numbers only") from None
            raise
        return rows, labels

    def _declared_classes(self) -> NDArray[Any]:
        if self.classes is None:
            raise ValueError("classes must be declared: learning them from the labels would be a release")
        return self._distinct(self.classes)

    @staticmethod
    def _distinct(classes: Any) -> NDArray[Any]:
        declared = np.asarray(classes)
        if declared.ndim != 1 or len(declared) < 2 or len(np.unique(declared)) != len(declared):
            raise ValueError(f"classes must be distinct, at least two, got an array of shape {declared.shape}")
        return declared

    def _learned_classes(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the classes found among the labels, which is a look at private data."""
        check_classification_targets(labels)
        found: NDArray[Any] = np.unique(labels)
        if len(found) < 2:
            raise ValueError(f"need at least two classes, got {len(found)} class")
        return found

    def _sides(self, labels: NDArray[Any], classes: NDArray[Any]) -> list[NDArray[np.float64]]:
        members = self._members(labels, classes).T
        return [np.where(member, 1.0, -1.0) for member in (members[1:] if len(classes) == 2 else members)]

    def _members(self, labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
        members = np.stack([np.asarray(labels == name, dtype=np.bool_) for name in classes], axis=1)
        if not members.any(axis=1).all():
            raise ValueError("y holds labels that are not among the declared classes")
        return members

    def _objective(
        self,
        X: NDArray[np.floating],
        signs: NDArray[np.float64],
        *,
        ridge: float,
        tilt: NDArray[np.float64],
        row_norm: float,
    ) -> LinearObjective:
        return LinearObjective(X, signs, self._loss, ridge, tilt, row_norm, self._constant)

    @property
    def _loss(self) -> MarginLoss:
        """The loss that is minimised; its bounds decide the price."""
        return LOSS

    @property
    def _constant(self) -> float:
        """Value of the constant column, 0 for none."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _store(self, weights: list[NDArray[np.float64]]) -> None:
        stacked = np.stack(weights)
        if self.fit_intercept:
            self.coef_, self.intercept_ = stacked[:, :-1], stacked[:, -1] * self.intercept_scaling
        else:
            self.coef_, self.intercept_ = stacked, np.zeros(len(stacked))


class PricedClassifier(LinearLogisticClassifier, Generic[ChargedEvent]):
    """Classifier over public classes, at a price that is known before any row is read.

    Rows and labels go into the queries of a measuring session alone; the program makes weights of their answers.
    """

    # Of `dpal.recompute.PROGRAMS`.
    program: str
    norm_bound: float
    transcript_: Transcript
    random_state: RandomSource | np.random.Generator | int | None
    privacy_event_: ChargedEvent
    simulated_: bool

    @property
    def releasable(self) -> bool:
        """True for fitted weights that carry the guarantee, False before a fit and for simulations."""
        return not getattr(self, "simulated_", True)

    def event_for(self, n_features: int) -> ChargedEvent:
        """Return what all learning from rows of `n_features` columns must be charged, before any row is read."""
        return self._event(n_features, len(self._declared_classes()))

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows `X`, shape (n_samples, n_features), and their labels `y`."""
        rng, rows, labels, classes, event = self._begin_fit(X, y)
        session = MeasuringSession(self._queries(rows, labels, classes, event, rng))
        public = self._public(event)
        weights = self._learn(public, session)
        self.coef_, self.intercept_ = weights.coef, weights.intercept
        self.transcript_ = Transcript(self.program, public, tuple(session.record))
        self.classes_ = classes
        self.privacy_event_ = event
        self.simulated_ = rng.simulated
        return self

    def _learn(self, public: dict[str, Any], session: Session) -> Weights:
        """Return the weights that the answers of a session lead to."""
        return PROGRAMS[self.program](public, session, self._tell)

    @abstractmethod
    def _queries(
        self,
        rows: NDArray[np.floating],
        labels: NDArray[Any],
        classes: NDArray[Any],
        event: ChargedEvent,
        rng: RandomSource,
    ) -> Queries:
        """Return the measured queries that a fit may ask of rows and labels."""

    @abstractmethod
    def _public(self, event: ChargedEvent) -> dict[str, Any]: ...

    @abstractmethod
    def _check_parameters(self) -> None: ...

    @abstractmethod
    def _event(self, n_features: int, n_classes: int) -> ChargedEvent:
        """Return the charge for a public number of classes, refusing parameters out of range."""

    @property
    def _row_norm(self) -> float:
        """Bound on the norm of a row, constant column and rounding of the rows included."""
        return math.hypot(self.norm_bound * (1 + NORM_SLACK), self._constant) * (1 + 2.0**-50)

    def _with_constant(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        constant = np.full((len(rows), 1), float(self.intercept_scaling))
        return np.hstack([rows.astype(np.float64, copy=False), constant])

    def _begin_fit(
        self, X: ArrayLike, y: ArrayLike
    ) -> tuple[RandomSource, NDArray[np.floating], NDArray[Any], NDArray[Any], ChargedEvent]:
        self._check_parameters()
        rng = random_source(self.random_state)
        rows, labels = self._validated(X, y)
        refuse_longer_rows(rows, self.norm_bound)
        classes = self._learned_classes(labels) if self.classes is None and rng.simulated else self._declared_classes()
        return rng, rows, labels, classes, self._event(rows.shape[1], len(classes))


def prior_weights(prior: LinearModel | None) -> dict[str, Any] | None:
    return None if prior is None else {"coef": prior.coef, "intercept": prior.intercept}


def refuse_longer_rows(rows: NDArray[np.floating], norm_bound: float) -> None:
    """Refuse rows, shape (n, d), longer than their declared bound, which the noise was measured by; none is fine.

    How long one is stays out of the message, which logs may hold; `NORM_SLACK` of the bound may be exceeded.
    """
    if len(rows) and largest_norm(rows) > norm_bound * (1 + NORM_SLACK):
        raise ValueError(f"rows must have a norm of at most {norm_bound}: clip them first")


def largest_norm(rows: NDArray[np.floating]) -> float:
    """Return an upper bound, tight to a few units in the last place per column, on the L2 norm of all rows."""

    def largest_square(part: slice) -> float:
        largest: float = 0.0
        for start in range(part.start, part.stop, BLOCK_ROWS):
            wide = rows[start : min(start + BLOCK_ROWS, part.stop)].astype(np.float64, copy=False)
            largest = max(largest, float(np.einsum("ij,ij->i", wide, wide).max()))
        return largest

    return math.sqrt(max(over_rows(largest_square, len(rows)))) * (1 + (int(rows.shape[1]) + 4) * ROUNDING)
