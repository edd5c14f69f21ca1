"""What linear classifiers that learn in one pass share: public starts, exact sums on a grid, states that survive."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import PricedClassifier
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting.events import Event
from privacy.arrays import Array
from privacy.mechanisms.randomness import random_source


@dataclass(frozen=True, slots=True)
class AnsweredBatch:
    """What a stream was answered about one of its batches.

    Attributes
    ----------
    rows : ndarray of shape (n, n_features)
        Features of the records whose answers name a class, in the order of arrival; there may be none.
    classes : ndarray of int64, shape (n,)
        The class each was given.
    asked : int
        A public number to divide by, >= 1: how many were asked about, where that shows, else what a window declares.
        How many of them were answered would tell something of what the records hold.
    """

    rows: NDArray[np.floating]
    classes: NDArray[np.int64]
    asked: int


class StreamingLinearClassifier(PricedClassifier[Event]):
    """Keep weights that only noisy updates change; two classes share one vector, more have one each.

    Attributes
    ----------
    weights_ : ndarray of shape (n_vectors, dimension)
        The current iterate, constant column included. Every bit of it comes from noisy updates.
    updates_ : int
        How many updates were made.
    privacy_event_ : Event
        What all of them together must be charged.
    simulated_ : bool
        True if any noise came from a seed: then nothing here may be released.
    """

    multiclass: ClassVar[Multiclass] = "softmax"
    average: bool
    radius: float
    # Whether later updates read a batch again: then its features are made of it alone, the same each time.
    reads_again: ClassVar[bool] = False

    @abstractmethod
    def learn_batches(self, batches: Sequence[AnsweredBatch], *, new: int) -> Self:
        """Make the updates of answered batches in their order.

        Parameters
        ----------
        batches : sequence of AnsweredBatch
            All from `first_read` of the oldest new one on.
        new : int
            How many, the last ones, are learned from now; those before were, and are the same as they were then.
        """

    def first_read(self, number: int) -> int:
        """Return the first batch, all counted from 0, whose answers the update of batch `number` reads: its own."""
        return number

    def first_model(self, words: PublicWords) -> LinearModel | None:
        """Return the model of public words, in the scale of this learner, that a stream starts from; None for zero."""
        return None

    @property
    def releasable(self) -> bool:
        """Whether the weights carry the guarantee: False before the first update and for simulations."""
        return getattr(self, "updates_", 0) > 0 and not self.simulated_

    def start(self, n_features: int) -> Self:
        """Start from zero weights, whose classes the constructor declares, before anything is learned."""
        if self.classes is None:
            raise ValueError("classes must be declared before the start")
        self._begin(n_features, self._declared_classes())
        return self

    def start_from(self, coef: ArrayLike, intercept: ArrayLike) -> Self:
        """Start from weights that public examples alone have led to, or from their nearest point in the ball.

        Parameters
        ----------
        coef : array-like of shape (n_vectors, n_features)
            Weights as `coef_` has them; no private record may have had a part in them.
        intercept : array-like of shape (n_vectors,)
            Intercepts as `intercept_` has them.

        Raises
        ------
        ValueError
            If the shapes do not fit the declared classes or a number is not finite.
        """
        weights, offsets = np.array(coef, dtype=np.float64), np.array(intercept, dtype=np.float64)
        if weights.ndim != 2 or offsets.shape != weights.shape[:1]:
            raise ValueError(f"weights and intercepts do not fit, got shapes {weights.shape} and {offsets.shape}")
        if not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
            raise ValueError("weights must be finite")
        self.start(weights.shape[1])
        if self.fit_intercept:
            weights = np.column_stack([weights, offsets / self.intercept_scaling])
        if weights.shape != self.weights_.shape:
            raise ValueError(f"the classes need weights of shape {self.weights_.shape}, got {weights.shape}")
        self._start_at(project_to_ball(weights, self.radius))
        self._publish()
        return self

    def _start_at(self, weights: Array) -> None:
        """Take public weights for the iterate before the first update."""
        self.weights_ = weights

    def state(self) -> dict[str, Any]:
        """Return everything learned so far as JSON values; together with the parameters it replaces the object."""
        return {
            "weights": self.weights_.tolist(),
            "weight_sum": self._weight_sum.tolist(),
            "theta": self._theta.tolist(),
            "updates": self.updates_,
            "n_features": self.n_features_in_,
            "classes": self.classes_.tolist(),
            "simulated": self.simulated_,
        }

    def resume(self, state: Mapping[str, Any]) -> Self:
        """Continue from what `state` returned, in this process or another."""
        self._begin(int(state["n_features"]), np.array(state["classes"]))
        self.weights_ = np.array(state["weights"], dtype=np.float64)
        self._weight_sum = np.array(state["weight_sum"], dtype=np.float64)
        self._theta = np.array(state["theta"], dtype=np.float64)
        self.updates_ = int(state["updates"])
        self.simulated_ = bool(state["simulated"]) or self._source.simulated
        if self.updates_:
            self._publish()
        return self

    def _begin(self, n_features: int, classes: NDArray[Any]) -> None:
        """Start from zero weights, once the price is known."""
        self._source = random_source(self.random_state)
        self.n_features_in_ = n_features
        self.classes_ = classes
        self.privacy_event_ = self._event(n_features, len(classes))
        self.weights_ = np.zeros((self._n_vectors(len(classes)), self._width(n_features)))
        self._weight_sum = np.zeros_like(self.weights_)
        self._theta = np.zeros_like(self.weights_)
        self.updates_ = 0
        self.simulated_ = self._source.simulated
        self._publish()

    def _examples(
        self, X: ArrayLike, y: ArrayLike, *, classes: Any, begin: bool
    ) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
        """Return checked rows and the places of their labels among the classes; the first call starts the weights."""
        begin = begin or not hasattr(self, "weights_")
        rows, labels = self._validated(X, y, reset=begin)
        if begin:
            self._begin(rows.shape[1], self._classes_to_use(labels, classes))
        elif classes is not None and not np.array_equal(np.asarray(classes), self.classes_):
            raise ValueError("classes must be those of the first call")
        return rows, self._members(labels, self.classes_).argmax(axis=1)

    def _classes_to_use(self, labels: NDArray[Any], classes: Any) -> NDArray[Any]:
        if self.classes is None and classes is not None:
            return self._distinct(classes)
        if self.classes is None and random_source(self.random_state).simulated:
            return self._learned_classes(labels)
        return self._declared_classes()

    def _width(self, n_features: int) -> int:
        return n_features + bool(self.fit_intercept)

    def _extended(self, rows: NDArray[np.floating]) -> Array:
        """Return rows in float64 with the constant column at their end."""
        wide = np.empty((len(rows), self._width(rows.shape[1])))
        wide[:, : rows.shape[1]] = rows
        wide[:, rows.shape[1] :] = self._constant
        return wide

    def _count(self, weights: Array) -> None:
        """Take `weights` as the next iterate."""
        self.weights_ = weights
        self._weight_sum += weights
        self.updates_ += 1

    def _publish(self) -> None:
        """Set the weights that predict: the average of all iterates, or the last one."""
        averaged = self.average and self.updates_ > 0
        self._store(list(self._weight_sum / self.updates_ if averaged else self.weights_))

    @staticmethod
    def _n_vectors(n_classes: int) -> int:
        return 1 if n_classes == 2 else n_classes


def project_to_ball(weights: Array, radius: float) -> Array:
    """Return the nearest point of the ball around zero, for all weights as one vector."""
    length = float(np.linalg.norm(weights))
    return weights if length <= radius else weights * (radius / length)
