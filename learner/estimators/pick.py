"""Choice between a private fit and the model before it, by noisy counts of right answers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpal.recompute.pick import GRID, picked
from dpal.recompute.transcript import Session, Transcript, Weights
from learner.estimators.choice import PrivateEstimator
from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import NORM_SLACK
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.counts import PickedFitEvent, picked_fit_event
from privacy.accounting.event import Event
from privacy.accounting.steps import GradientStepsEvent
from privacy.accounting.sums import GRID_DELTA, GRID_EPSILON, SumsEvent
from privacy.mechanisms.pick import bar_of, pick_queries
from privacy.mechanisms.randomness import random_source
from privacy.mechanisms.session import MeasuringSession

# Of the price, what the pick gets: of the squared ratio of sensitivity to noise, or of epsilon.
SHARE: Final = 0.1
# Two classes by gradient steps: the model before is worth as many labels as this many deviations of a noisy count, its
# part of the first candidate shrinks as more come, and one deviation is enough to go further. Found on CLINC 2, SLURP 2
# and SMS spam.
WORTH_OF_BEFORE, AHEAD_OF_TWO, CANDIDATES_OF_TWO = 3.0, 1.0, 3
# Of the ratio of sensitivity to noise, kept for the grid of the counts and for rounding; and of an epsilon.
ROUNDING: Final = 1e-6
PRICE_ROUNDING: Final = 1e-9
# A fit that starts from examples of every class gets about so many more of its own rows right than of others, by the
# root of their number: .66 to .87 of 180 to 2,000 labels, on 73 intents of CLINC with five and ten examples and on
# SLURP 18 with ten. Two classes have fewer weights to fit, and hardly any of it.
FLATTERY: Final = 0.75
FEWEST_FLATTERED: Final = 3


@dataclass(eq=False)
class PickedFit:
    """An estimator whose fit is released as far as noisy counts of the same rows say that it is better.

    Parameters
    ----------
    estimator : PrivateEstimator
        Unfitted, at the price of fit and pick together.
    before : LinearModel, optional
        Public or released: the candidates lie between it and the fit, and it wins ties. Without it the fit is released.
    of_answers : bool
        True if rows are public and a training is charged for another label (`LabelTrainingEvent`).

    Attributes
    ----------
    coef_, intercept_, multiclass
        Of the candidate that was picked.
    transcript_ : Transcript
        What the fit and the pick were answered.
    fit_ : PrivateEstimator
        The fitted estimator.
    """

    estimator: PrivateEstimator
    before: LinearModel | None = None
    of_answers: bool = False

    coef_: NDArray[np.float64] = None  # type: ignore[assignment]  # there once it is fitted
    intercept_: NDArray[np.float64] = None  # type: ignore[assignment]
    on_step: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        self.multiclass: Multiclass = self.estimator.multiclass
        self.fit_ = self.estimator

    @property
    def releasable(self) -> bool:
        return self.fit_.releasable

    def leaning(self, words: PublicWords) -> LinearModel | None:
        return self.estimator.leaning(words)

    def event_for(self, n_features: int) -> Event:
        return self._divided(n_features)[1]

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        rows, labels = np.asarray(X), np.asarray(y)
        inner, event = self._divided(rows.shape[1])
        inner.on_step = self.on_step
        self.fit_ = inner.fit(rows, labels)
        self.coef_, self.intercept_, self.multiclass = inner.coef_, inner.intercept_, inner.multiclass
        self.transcript_ = inner.transcript_
        if self.before is None:
            return self
        declared = inner.get_params()
        queries = pick_queries(
            rows,
            (labels[:, None] == np.asarray(declared["classes"])).argmax(axis=1),
            event,
            norm_bound=declared["norm_bound"] * (1 + NORM_SLACK),
            rng=random_source(declared["random_state"]),
        )
        session, public = MeasuringSession(queries), self._public(inner, self.before, event)
        weights = self._pick(public, session)
        self.coef_, self.intercept_ = weights.coef, weights.intercept
        self.multiclass = cast(Multiclass, weights.multiclass)
        self.transcript_ = Transcript("picked", public, (*inner.transcript_.answers, *session.record))
        return self

    def _pick(self, public: dict[str, Any], session: Session) -> Weights:
        """Return the weights that the answer of a session picks."""
        fitted = Weights(self.fit_.coef_, self.fit_.intercept_, self.fit_.multiclass)
        return picked(public, fitted, session)

    @staticmethod
    def _public(inner: PrivateEstimator, before: LinearModel, event: PickedFitEvent) -> dict[str, Any]:
        made = inner.transcript_
        bar = bar_of(event, deviations=AHEAD_OF_TWO) if PickedFit._fades(inner) else bar_of(event)
        public = {"program": made.program, "fit": made.parameters, "bar": bar}
        public |= {"coef": before.coef, "intercept": before.intercept, "multiclass": before.multiclass}
        public |= {"grid": PickedFit._grid(inner, event), "fit_multiclass": inner.multiclass}
        return public | {"flattery": PickedFit._flattery(inner)}

    @staticmethod
    def _fades(estimator: PrivateEstimator) -> bool:
        known = estimator.get_params()
        return len(known["classes"]) == 2 and "from_examples" in known

    @staticmethod
    def _grid(inner: PrivateEstimator, event: PickedFitEvent) -> Sequence[float]:
        """Return how far from the model before to the fit each candidate lies."""
        if not PickedFit._fades(inner):
            return GRID
        kept = min(1.0, WORTH_OF_BEFORE * event.scale / _noisy_count(inner))
        return (1 - kept, 1 - kept / 2, 1.0)

    @staticmethod
    def _flattery(inner: PrivateEstimator) -> float:
        """Return by how many rows a fit looks better on its own rows than it is, from its noisy count of them."""
        declared = inner.get_params()
        if not declared.get("from_examples") or len(declared["classes"]) < FEWEST_FLATTERED:
            return 0.0
        return FLATTERY * math.sqrt(_noisy_count(inner))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self.estimator.get_params(deep)

    def set_params(self, **parameters: Any) -> Self:
        self.estimator.set_params(**parameters)
        return self

    def _divided(self, n_features: int) -> tuple[PrivateEstimator, PickedFitEvent]:
        known = self.estimator.get_params()
        adjacency, epsilon = known["adjacency"], known["epsilon"]
        whole = self.estimator.event_for(n_features)
        if isinstance(whole, SumsEvent | GradientStepsEvent):
            # What it costs falls at least in proportion to the ratio, since the curve is convex and begins at nothing.
            kept = 1 - max(ROUNDING, 3 * GRID_EPSILON / epsilon)
            if len(known["classes"]) > 2:
                # A little less than two classes cost, since a series that was opened with two may get a third.
                kept *= 1 - PRICE_ROUNDING
            ratio = kept * whole.gaussian_mu(adjacency=adjacency) * (1 - SHARE) ** 0.5
            inner_epsilon = gaussian_epsilon(ratio, whole.delta) + whole.grids * GRID_EPSILON
            inner, delta = self._priced(inner_epsilon), whole.delta * (1 - 2 * GRID_DELTA)
            trained = inner.event_for(n_features)
            m = CANDIDATES_OF_TWO if self._fades(inner) else len(GRID)
            return inner, picked_fit_event(trained, candidates=m, share=SHARE, delta=delta, adjacency=adjacency)
        inner = self._priced((1 - SHARE) * epsilon)
        moved = 2 if self.of_answers or adjacency == "replace" else 1
        scale = SHARE * epsilon * (1 - PRICE_ROUNDING) / moved
        return inner, PickedFitEvent(inner.event_for(n_features), len(GRID), scale, "exponential")

    def _priced(self, epsilon: float) -> PrivateEstimator:
        priced = self.estimator.get_params(deep=False) | {"epsilon": epsilon}
        if "delta" in priced:
            priced["delta"] *= 1 - 2 * GRID_DELTA
        return type(self.estimator)(**priced)


def _noisy_count(fitted: PrivateEstimator) -> float:
    counted = next(answer for query, _bound, _scale, answer in fitted.transcript_.answers if query == "count")
    return max(float(counted[0]), 1.0)
