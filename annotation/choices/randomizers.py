"""Randomisers: how a crowd's answers leave the trusted side."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from annotation.choices.catalogue import chosen_of
from annotation.choices.label_types.learning import chosen_estimator, learn_responses
from privacy.accounting.answers import LARGEST_EPSILON
from privacy.accounting.cost import epsilon_to_nano
from privacy.accounting.events import AnswersEvent, RandomizedAnswersEvent
from privacy.choices import Choice, Kind, Sound, parameter
from privacy.mechanisms.randomized_response import RandomizedResponse, ResponseMechanism
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

ANSWER: Final = "answer"
ANNOTATOR: Final = "annotator"


@dataclass(frozen=True)
class RandomizerChoice(Choice):
    """Release of the consensus of each question.

    `mechanism` draws responses; of its `charged_as` the event is, and the database takes responses under no other. None
    declares answers to be no secret: nothing is drawn and nothing is charged.
    """

    kind: ClassVar[Kind] = Kind.RANDOMIZER
    sound: ClassVar[Sound] = Sound(oracles=("crowd",), arrivals=("pool",), data_kinds=("text",))
    mechanism: ClassVar[type[ResponseMechanism] | None] = RandomizedResponse

    @abstractmethod
    def event(self, *, n_classes: int, **circumstances: Any) -> AnswersEvent | None:
        """Return the one event that pays for all answers of so many classes, None where answers are no secret."""

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse an estimator that reads what people answered, beside or instead of what is said of it."""
        trained = chosen_estimator(settings)
        if trained is not None and trained.learns_responses:
            return {}
        return {Kind.ESTIMATOR.key: as_message("Such answers need the model {wanted}.", wanted=learn_responses())}


def chosen_randomizer(settings: Mapping[str, Any]) -> type[RandomizerChoice] | None:
    """Return how answers leave the trusted side under settings, None where every training is charged for them."""
    choice = chosen_of(Kind.RANDOMIZER, settings)
    # The catalogue takes no other.
    assert choice is None or issubclass(choice, RandomizerChoice)
    return choice


def answers_unit(settings: Mapping[str, Any]) -> str | None:
    choice = chosen_randomizer(settings)
    if choice is None:
        return ANSWER
    return None if choice.mechanism is None else str(settings.get("answers_unit") or ANSWER)


def randomizes(settings: Mapping[str, Any]) -> bool:
    choice = chosen_randomizer(settings)
    return choice is not None and choice.mechanism is not None


# With more answers a person, hardly anything is left of the epsilon of each.
LARGEST_CAP: Final = 1000


@dataclass(frozen=True)
class RandomizedConsensus(RandomizerChoice):
    """Consensus said through a randomised response; everybody outside reads that alone."""

    name: ClassVar[str] = "randomized_consensus"
    label: ClassVar[str] = _("randomised consensus of each question")
    help: ClassVar[str] = _("Charged once, for all questions, rounds and models together.")
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        data_kinds=("text",),
        why_not={
            "trusted": _("Randomised answers protect answers to public questions, not records."),
            "stream": _("Not for streams."),
        },
    )
    answers_epsilon: float = parameter(
        4.0,
        above=0,
        at_most=LARGEST_EPSILON,
        label=_("Epsilon of all answers"),
        help=_("Charged once, for all questions, rounds and models together."),
        charged=True,
    )
    answers_unit: str = parameter(
        "answer",
        options={"answer": _("each single answer"), "annotator": _("all answers of one annotator together")},
        label=_("Unit of protection"),
        help=_("Ten answers of one person lose ten times the epsilon of one."),
        charged=True,
    )
    answers_cap: int | None = parameter(
        None,
        at_least=1,
        at_most=LARGEST_CAP,
        label=_("Most answers of one annotator"),
        help=_("Only with protection per annotator."),
        charged=True,
    )
    response_classes: str = parameter(
        "top_k",
        options={
            "top_k": _("the likeliest classes"),
            "uniform": _("all classes alike"),
        },
        label=_("Classes a response may name"),
    )
    randomizations: int = parameter(
        1,
        at_least=1,
        at_most=5,
        label=_("Responses to one question"),
        help=_("They share the epsilon."),
        charged=True,
    )

    def event(self, *, n_classes: int, **circumstances: Any) -> RandomizedAnswersEvent:
        return RandomizedAnswersEvent(
            self.epsilon_once,
            n_classes,
            "top_k" if self.response_classes == "top_k" else "uniform",
            "annotator" if self.answers_unit == "annotator" else "answer",
            self.randomizations,
            self.questions_moved,
        )

    @property
    def questions_moved(self) -> int:
        return (self.answers_cap or 1) if self.answers_unit == "annotator" else 1

    @property
    def epsilon_once(self) -> float:
        """Most that one response may cost, so that all that one unit can have moved stay within the declaration."""
        responses = self.randomizations * self.questions_moved
        if responses == 1:
            return self.answers_epsilon
        return math.nextafter(self.answers_epsilon / responses, 0.0)

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, float]:
        return {"answers_epsilon": settings["labels_epsilon"]}

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        broken: dict[str, str] = {**super().rules(settings)}
        if self.answers_unit == "annotator" and self.answers_cap is None:
            broken["answers_cap"] = _("Every answer costs epsilon again, so a cap is needed.")
        if self.answers_unit == "answer" and self.answers_cap is not None:
            broken["answers_cap"] = _("Only with protection per annotator.")
        limit = settings.get("labels_epsilon")
        cost = self.event(n_classes=max(2, len(settings.get("classes") or ()))).cost().epsilon
        if limit is not None and epsilon_to_nano(cost) > epsilon_to_nano(limit):
            broken["labels_epsilon"] = as_message(
                "All answers cost epsilon {epsilon:.3g}, more than the limit of their account.", epsilon=cost
            )
        if settings.get("repeat_votes") and self.randomizations < 2:
            broken["repeat_votes"] = _("Asking again needs more responses per question.")
        return broken


@dataclass(frozen=True)
class AnswersNotSecret(RandomizerChoice):
    """Consensus learned from as it is; no account protects it, and nothing is charged."""

    mechanism: ClassVar[None] = None
    name: ClassVar[str] = "not_secret"
    label: ClassVar[str] = _("answers are public: models may show any of them")
    help: ClassVar[str] = _("Protects the records only.")
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        data_kinds=("text",),
        why_not={
            "trusted": _("Needs a gate."),
            "stream": _("Needs a gate."),
        },
    )

    def event(self, *args: Any, **circumstances: Any) -> None:
        """Return nothing: behind a gate, questions are public, and answers are declared to be so."""
