"""What a project chooses for learning from each answer of a stream at once."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from annotation.choices.label_types.base import Teaching
from annotation.choices.label_types.learning import LearnsLabels
from annotation.choices.policies.catalogue import chosen_policy
from annotation.choices.selection_rules import features_of
from annotation.choices.selections import selection_choice
from learner.estimators.bandit import (
    ENOUGH_ANSWERS,
    LOSS_BOUND,
    BanditGradientBaseline,
    BanditMutualInformationOGD,
)
from learner.estimators.choice import INTERCEPT_SCALING, delta_of_training
from learner.estimators.mi_ogd import MutualInformationOGD, OnlineGradientBaseline
from learner.estimators.streaming import StreamingLinearClassifier
from privacy.accounting.event import Event
from privacy.accounting.mutual_information import BanditOgdEvent, MutualInformationOgdEvent
from privacy.choices import Kind, Sound, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import as_message, joined_messages
from privacy.wording import gettext_noop as _

# Length to which online learning clips a gradient; its charge is the same in every dimension.
GRADIENT_BOUND: Final = 1.0
# The least noise a grid allows: it leaves the length of a step to the gradients alone.
LEAST_SIGMA: Final = 2.0**-20
FEWEST_ANSWERS: Final = 2
ABOVE_ZERO: Final = _("Must be above 0, got {got}.")
OF_STREAMS: Final = {"pool": _("Online gradient descent takes the records of a stream, one after another.")}


@dataclass(frozen=True)
class OnlineChoice(LearnsLabels):
    """Learning from each answer of a stream at once."""

    sound: ClassVar[Sound] = Sound(oracles=("trusted",), arrivals=("stream",), why_not=OF_STREAMS)
    each_answer: ClassVar[bool] = True
    # What makes a stream cheaper, where not only the noise does.
    cheaper: ClassVar[str] = ""

    noise_sigma: float = parameter(
        5.0,
        above=0,
        label=_("Noise of each coordinate"),
        help=_("What the stream costs follows from it."),
        rule=ABOVE_ZERO,
    )
    expected_answers: int = parameter(
        5000,
        at_least=1,
        at_most=2**31 - 1,
        label=_("Answers to expect"),
        help=_("Sets the step; public."),
        rule=ABOVE_ZERO,
    )
    weight_radius: float = parameter(
        5.0,
        above=0,
        label=_("Radius of the weights"),
        help=_("20 to 80 for batches; in a unit ball hardly anything is learned."),
        rule=ABOVE_ZERO,
    )
    average_iterates: bool = parameter(
        True,
        label=_("Release the average of all updates"),
        help=_("Averaging takes noise out of the weights and costs nothing."),
    )
    training_delta: float = delta_of_training()

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a stream that the charge is not proved for, and one that its account cannot pay."""
        broken: dict[str, str] = {}
        policy, choice = chosen_policy(settings), selection_choice(settings)
        if policy is None or not policy.by_answer:
            broken[Kind.POLICY.key] = _(
                "Online learning takes one noisy step for each record: its updates are immediate."
            )
        if choice is None or not choice.asks_all:
            broken[Kind.STRATEGY.key] = _("The charge of online learning is proved where every record is asked about.")
        if self.training_delta >= settings["pool_delta"]:
            # Equal floats are charged upwards and limited downwards, so they do not fit.
            broken["pool_delta"] = as_message(
                "Must be at least a little over {delta:g}, the delta at which the stream is charged.",
                delta=self.training_delta,
            )
        return broken or self._too_dear(settings)

    def _too_dear(self, settings: Mapping[str, Any]) -> dict[str, str]:
        whole = self.whole_stream(settings).cost().epsilon
        if whole <= settings["pool_epsilon"]:
            return {}
        rule = as_message("The stream pays once, epsilon {whole:.4g}, more than the limit.", whole=whole)
        return {"pool_epsilon": joined_messages(" ", [rule, self.cheaper])}

    @abstractmethod
    def learner(
        self,
        classes: list[int],
        *,
        intercept_scaling: float = INTERCEPT_SCALING,
        private: bool = True,
        random_state: RandomSource | None = None,
    ) -> StreamingLinearClassifier:
        """Return the learner, not started.

        Parameters
        ----------
        classes : list of int
            The declared classes, by number.
        intercept_scaling : float
            Length of the constant column.
        private : bool
            False leaves out the noise and makes steps as long as without it: for comparison, never for release.
        random_state : RandomSource, optional
            Source of noise and directions; by default the operating system.
        """

    def _steps(self, *, private: bool, **shape: Any) -> dict[str, Any]:
        """Return what both ways to descend are made with."""
        return {
            "sigma": self.noise_sigma if private else LEAST_SIGMA,
            "radius": self.weight_radius,
            "horizon": self.expected_answers,
            "delta": self.training_delta,
            "average": self.average_iterates,
            "intercept_scaling": INTERCEPT_SCALING,
            **shape,
        }

    def event(self, *, learner: Any, n_features: int, **circumstances: Any) -> Event:
        """Return the accountant's event of one record's step."""
        event: Event = learner.event_for(n_features)
        return event


@dataclass(frozen=True)
class FullInformation(OnlineChoice):
    """One noisy gradient of each record."""

    name: ClassVar[str] = "mi_ogd"
    label: ClassVar[str] = _("online gradient descent, one noisy gradient of each record (has a delta)")
    words: ClassVar[str] = _("logistic regression by noisy online gradient descent")

    def learner(self, classes: list[int], *, private: bool = True, **shape: Any) -> MutualInformationOGD:
        """Return the learner, not started."""
        steps = self._steps(classes=classes, private=private, **shape)
        return (MutualInformationOGD if private else OnlineGradientBaseline)(lipschitz=GRADIENT_BOUND, **steps)

    def whole_stream(self, settings: Mapping[str, Any]) -> MutualInformationOgdEvent:
        """Return what the stream is charged; the price is the same in every dimension."""
        return MutualInformationOgdEvent(1, GRADIENT_BOUND, self.noise_sigma, self.training_delta)


@dataclass(frozen=True)
class Confirmations(OnlineChoice):
    """One noisy step of each confirmation."""

    name: ClassVar[str] = "bandit_ogd"
    label: ClassVar[str] = _("online gradient descent from confirmations (has a delta)")
    words: ClassVar[str] = _("logistic regression by noisy online gradient descent from confirmations")
    learns: ClassVar[Collection[Teaching]] = (Teaching.CONFIRMATIONS,)
    learns_only: ClassVar[str] = _("Bandit learning asks for confirmations: it learns from nothing else.")
    cheaper: ClassVar[str] = _("Longer noise, fewer features or classes, and fewer expected answers cost less.")
    enough_answers: ClassVar[int] = ENOUGH_ANSWERS

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a single answer."""
        if self.expected_answers >= FEWEST_ANSWERS:
            return {}
        return {"expected_answers": _("Confirmations explore less the more answers are expected: expect at least 2.")}

    def _too_dear(self, settings: Mapping[str, Any]) -> dict[str, str]:
        # Of a single answer there is no price.
        return super()._too_dear(settings) if self.expected_answers >= FEWEST_ANSWERS else {}

    def learner(self, classes: list[int], *, private: bool = True, **shape: Any) -> BanditMutualInformationOGD:
        """Return the learner, not started."""
        steps = self._steps(classes=classes, private=private, **shape)
        return (BanditMutualInformationOGD if private else BanditGradientBaseline)(**steps)

    def whole_stream(self, settings: Mapping[str, Any]) -> BanditOgdEvent:
        """Return what the stream is charged.

        An encoder that is narrower than the wished features makes confirmations cheaper than this says.
        """
        classes = len(settings["classes"])
        vectors = 1 if classes == 2 else max(1, classes)
        exploration = self.weight_radius * self.expected_answers**-0.25
        dimension = vectors * (features_of(settings) + 1)
        return BanditOgdEvent(dimension, LOSS_BOUND, exploration, self.noise_sigma, delta=self.training_delta)
