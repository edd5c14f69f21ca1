"""Base class of randomisers: how a crowd's answers leave the trusted side."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from annotation.choices.catalogue import chosen_of
from annotation.choices.label_types.learning import chosen_estimator, learn_responses
from privacy.accounting.events import AnswersEvent
from privacy.choices import Choice, Kind, Sound
from privacy.mechanisms.randomized_response import RandomizedResponse, ResponseMechanism
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

ANSWER: Final = "answer"
ANNOTATOR: Final = "annotator"


@dataclass(frozen=True)
class RandomizerChoice(Choice):
    """How the consensus of each question is released.

    Attributes
    ----------
    mechanism : type of ResponseMechanism or None
        What draws responses; of its `charged_as` the event is, and the database takes responses under no other. None
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
        rule = (
            _("Answers that are not secret are learned from by {wanted} alone.")
            if self.mechanism is None
            else _("Randomised answers are learned from by {wanted} alone.")
        )
        return {Kind.ESTIMATOR.key: as_message(rule, wanted=learn_responses())}


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
    """Say whether everybody outside reads responses drawn from what answers agree on."""
    choice = chosen_randomizer(settings)
    return choice is not None and choice.mechanism is not None
