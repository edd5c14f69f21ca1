"""Models of a crowd's answers that left through a randomised response, or are no secret: no training is paid for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from dpal.recompute.channel import channel
from dpal.recompute.transcript import Session, Transcript, Weights
from learner.estimators.adaptation import adapt_to_texts
from learner.estimators.channel import ChannelClassifier, checked_likelihoods, scored
from learner.estimators.choice import EstimatorChoice, PrivateEstimator, Shape
from learner.estimators.descriptions import PublicWords
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting.events import AnswersEvent, PostProcessingEvent
from privacy.choices import Sound
from privacy.mechanisms.randomized_response import ResponseMechanism, mechanism_of
from privacy.mechanisms.randomness import RandomSource, random_source
from privacy.mechanisms.session import Measurement, MeasuringSession, Queries
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

FREE_TRAINING: Final = "training on answers that are no secret"


class RandomizedAnswersClassifier(BaseEstimator):  # type: ignore[misc]
    """Softmax regression on answers that are said at random first, under the law of what was said.

    Parameters
    ----------
    answers : AnswersEvent or None
        How each answer is randomised, and what all of them cost together; None where answers are declared no secret.
    classes : sequence of int
        The declared classes, 0 to K - 1.
    prior : LinearModel, optional
        A model at epsilon 0, or an earlier release, of softmax scores.
    random_state : None, int, numpy.random.Generator or RandomSource
        None draws from the operating system. A seed makes a simulation without any guarantee.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        Weights as `LinearModel` has them.
    simulated_ : bool
        True if the responses came from a seed.
    """

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    transcript_: Transcript
    multiclass: ClassVar[Multiclass] = "softmax"
    on_step: Callable[[int, int], None] | None = None

    def __init__(
        self,
        answers: AnswersEvent | None,
        *,
        classes: Sequence[int] = (),
        prior: LinearModel | None = None,
        random_state: RandomSource | np.random.Generator | int | None = None,
    ) -> None:
        self.answers = answers
        self.classes = classes
        self.prior = prior
        self.random_state = random_state

    @property
    def releasable(self) -> bool:
        """True where the responses were drawn as a release's must be, False for simulations."""
        return not getattr(self, "simulated_", False)

    @property
    def response(self) -> ResponseMechanism:
        """The mechanism every answer goes through."""
        if self.answers is None:
            raise ValueError("answers that are no secret go through nothing")
        return mechanism_of(self.answers, len(self.classes))

    def event_for(self, n_features: int) -> AnswersEvent | PostProcessingEvent:
        """Return what all answers are charged, once for any number of fits; nothing where they are no secret."""
        return self.answers or PostProcessingEvent(operation=FREE_TRAINING)

    def leaning(self, words: PublicWords) -> LinearModel | None:
        """Return the directions of the words; None where they say nothing to the features."""
        return words.directions() if words.say_something else None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Say the class of each row at random, as often as the event pays for, and learn from what was said."""
        rng = random_source(self.random_state)
        truth = np.asarray(y, dtype=np.int64)
        self._fit(np.asarray(X, dtype=np.float64), {"responses": lambda: self._said(truth, rng)})
        self.simulated_ = rng.simulated and self.answers is not None
        return self

    def fit_responses(
        self,
        X: NDArray[np.floating],
        likelihoods: NDArray[np.floating],
        *,
        texts: NDArray[np.floating] | None = None,
        weights: NDArray[np.floating] | None = None,
    ) -> Self:
        """Learn from what was said already; free, however often.

        `X`, shape (n, d), are the features of the questions, possibly none; `likelihoods`, shape (n, K), the
        probability of all that was said of each, for each class; `texts`, shape (m, d), everything that passed the
        gate, and `weights` how often each was said.
        """
        n_classes = len(self.classes)
        chances = checked_likelihoods(np.reshape(likelihoods, (-1, n_classes)), len(X), n_classes)
        return self._fit(X, {"responses": lambda: self._measured(chances)}, texts=texts, weights=weights)

    def _fit(
        self,
        X: NDArray[np.floating],
        queries: Queries,
        *,
        texts: NDArray[np.floating] | None = None,
        weights: NDArray[np.floating] | None = None,
    ) -> Self:
        session, public = MeasuringSession(queries), self._public(X, texts, weights)
        found = self._learn(public, session)
        self.coef_, self.intercept_ = found.coef, found.intercept
        self.transcript_ = Transcript("channel", public, tuple(session.record))
        return self

    def _learn(self, public: dict[str, Any], session: Session) -> Weights:
        """Return the weights that the responses of a session lead to."""
        return channel(public, session, lambda done, total: None)

    def _said(self, truth: NDArray[np.int64], rng: RandomSource) -> Measurement:
        """Return what is said of true classes, drawn as often as the event pays for."""
        if self.answers is None:
            return self._measured(np.eye(len(self.classes))[truth])
        kept = np.ones((len(truth), len(self.classes)), dtype=np.bool_)
        likelihoods = np.ones(kept.shape)
        for _time in range(self.answers.randomizations):
            said = self.response.release(truth, kept, rng=rng)
            likelihoods = likelihoods * self.response.likelihoods(said, kept)
        return self._measured(likelihoods)

    def _measured(self, likelihoods: NDArray[np.float64]) -> Measurement:
        # A loss of epsilon for one answer replaced by another, as noise of this scale has.
        scale = 0.0 if self.answers is None else 1 / self.answers.epsilon_once
        return Measurement("responses", 1.0, scale, likelihoods)

    def _public(
        self,
        X: NDArray[np.floating],
        texts: NDArray[np.floating] | None,
        weights: NDArray[np.floating] | None,
    ) -> dict[str, Any]:
        """Return what is known without any answer."""
        if not len(X):
            return self._public_of_nothing(np.shape(X)[1], texts, weights)
        names = self.prior.classes if self.prior is not None else tuple(map(str, self.classes))
        return ChannelClassifier(classes=names, prior=self.prior).public_parameters(X, texts=texts, weights=weights)

    def _public_of_nothing(
        self, dimension: int, texts: NDArray[np.floating] | None, weights: NDArray[np.floating] | None
    ) -> dict[str, Any]:
        priors = []
        if self.prior is not None:
            moved = self.prior if texts is None or not len(texts) else adapt_to_texts(self.prior, texts, weights)
            priors = [scored(moved)]
        return {"rows": np.zeros((0, dimension)), "priors": priors}


@dataclass(frozen=True)
class KnownChannel(EstimatorChoice):
    """Learning from randomised answers alone, as projects choose it."""

    name: ClassVar[str] = "channel"
    learns_responses: ClassVar[bool] = True
    label: ClassVar[str] = _("softmax regression on randomised answers")
    words: ClassVar[str] = _("softmax regression on randomised answers")
    why_no_pick: ClassVar[str] = _("A release can be worse than version 0: the two are not compared before it.")
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        data_kinds=("text",),
        why_not={
            "trusted": _("Only a crowd's answers to public questions are randomised."),
            "stream": _("Only a crowd's answers to public questions are randomised."),
        },
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if settings.get("label_randomizer"):
            return {}
        return {"estimator": as_message("Needs randomised answers.")}

    def estimator(self, shape: Shape) -> PrivateEstimator:
        if shape.answers is None and not shape.open_answers:
            raise ValueError("answers must be randomised for this estimator, or declared not to be secret")
        return RandomizedAnswersClassifier(shape.answers, classes=shape.classes, prior=shape.prior)
