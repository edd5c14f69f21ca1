"""What every way for a crowd's answers to leave the trusted side declares: its event, and whose change that hides."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

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
    """How what a question's answers agree on is said to everybody outside.

    Responses are drawn by its mechanism, which its event pays for, and by nothing else. One that has no event says so
    by `open_answers`, so that no project believes its answers protected by a mechanism that never runs.

    Attributes
    ----------
    open_answers : bool
        Whether answers are declared to be no secret: then nothing is drawn and nothing is charged.
    mechanism : type of ResponseMechanism
        What draws; of its `charged_as` the event is, and the database takes responses under no other.
    tried : collection of str
        Parameters whose other options a plan tries, since they change no price.
    refusal : str
        What is said to an estimator that reads answers by itself; `{wanted}` are those that do not.
    """

    kind: ClassVar[Kind] = Kind.RANDOMIZER
    sound: ClassVar[Sound] = Sound(oracles=("crowd",), arrivals=("pool",), data_kinds=("text",))
    open_answers: ClassVar[bool] = False
    mechanism: ClassVar[type[ResponseMechanism]] = RandomizedResponse
    tried: ClassVar[Collection[str]] = ()
    refusal: ClassVar[str] = _("Randomised answers are learned from by {wanted} alone.")

    @abstractmethod
    def event(self, *, n_classes: int, **circumstances: Any) -> AnswersEvent | None:
        """Return the one event that pays for all answers of so many classes, None where answers are open."""

    @classmethod
    def unit_of(cls, settings: Mapping[str, Any]) -> str | None:
        """Return whose change the account of the answers hides under settings, None where it has none."""
        return None if cls.open_answers else str(settings.get("answers_unit") or ANSWER)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse an estimator that reads what people answered, beside or instead of what is said of it."""
        trained = chosen_estimator(settings)
        if trained is not None and trained.learns_responses:
            return {}
        return {Kind.ESTIMATOR.key: as_message(self.refusal, wanted=learn_responses())}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """Add whether answers are open, and as what they are charged."""
        return {**super().facts(), "open_answers": cls.open_answers, "charged_as": cls.mechanism.charged_as.kind}
