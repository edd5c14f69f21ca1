"""Contract of linear classifiers that learn from a stream in one pass."""

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
from privacy.mechanisms.randomness import random_source


@dataclass(frozen=True, slots=True)
class AnsweredBatch:
    """Answers to one batch of a stream.

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
    """Classifier that only noisy updates change; two classes share one weight vector, more have one each.

    Attributes
    ----------
    updates_ : int
        How many updates were made.
    privacy_event_ : Event
        What all of them together must be charged.
    simulated_ : bool
        True if any noise came from a seed: then nothing here may be released.
    """

    multiclass: ClassVar[Multiclass] = "softmax"
    # Whether later updates read a batch again: then its features are made of it alone, the same each time.
    reads_again: ClassVar[bool] = False

    @abstractmethod
    def learn_batches(self, batches: Sequence[AnsweredBatch], *, new: int) -> Self:
        """Make the updates of answered batches in their order.

        `batches` are all from `first_read` of the oldest new one on. The last `new` ones are learned from now; those
        before were, and are the same as they were then.
        """

    @abstractmethod
    def start_from(self, coef: ArrayLike, intercept: ArrayLike) -> Self:
        """Start from weights, shape (n_vectors, n_features), that public examples alone have led to."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return everything learned so far as JSON values; together with the parameters it replaces the object."""

    @abstractmethod
    def resume(self, state: Mapping[str, Any]) -> Self:
        """Continue from what `state` returned, in this process or another."""

    def begin_version(self) -> Self:
        """Begin the record of the next version, once one is released."""
        return self

    def first_read(self, number: int) -> int:
        """Return the first batch, all counted from 0, whose answers the update of batch `number` reads: its own."""
        return number

    def first_model(self, words: PublicWords) -> LinearModel | None:
        """Return the model of public words, in the scale of this learner, that a stream starts from; None for zero."""
        return None

    @property
    def releasable(self) -> bool:
        """True where the weights carry the guarantee, False before the first update and for simulations."""
        return getattr(self, "updates_", 0) > 0 and not self.simulated_

    def start(self, n_features: int) -> Self:
        if self.classes is None:
            raise ValueError("classes must be declared before the start")
        self._begin(n_features, self._declared_classes())
        return self

    def _begin(self, n_features: int, classes: NDArray[Any]) -> None:
        self._source = random_source(self.random_state)
        self.n_features_in_ = n_features
        self.classes_ = classes
        self.privacy_event_ = self._event(n_features, len(classes))
        self.updates_ = 0
        self.simulated_ = self._source.simulated

    @staticmethod
    def _n_vectors(n_classes: int) -> int:
        return 1 if n_classes == 2 else n_classes


def public_start(
    coef: ArrayLike, intercept: ArrayLike, *, shape: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return public weights and intercepts of the wanted shape, refusing others and what is not finite."""
    weights, offsets = np.array(coef, dtype=np.float64), np.array(intercept, dtype=np.float64)
    if weights.shape != shape or offsets.shape != shape[:1]:
        raise ValueError(f"weights and intercepts do not fit, got shapes {weights.shape} and {offsets.shape}")
    if not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
        raise ValueError("weights must be finite")
    return weights, offsets
