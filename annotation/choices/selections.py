"""What annotation asks of whatever chooses a project's questions; the learner's strategies answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from annotation.choices.catalogue import CATALOGUE, chosen_of
from privacy.choices import Choice, Kind
from privacy.wording import as_message

NO_COIN = as_message("nothing says with which chance each record is asked about")


@dataclass(frozen=True)
class SelectionChoice(Choice):
    """What chooses a project's questions.

    Attributes
    ----------
    by_chance : bool
        Whether it asks at random itself, so that random choice is nothing to compare it with.
    asks_all : bool
        Whether it asks about every record of a stream, so that who is asked tells nothing.
    """

    kind: ClassVar[Kind] = Kind.STRATEGY
    by_chance: ClassVar[bool] = False
    asks_all: ClassVar[bool] = False

    def rates(self) -> tuple[float, float]:
        """Return the largest and the smallest probability of asking about a record of a stream, as they are charged.

        Raises
        ------
        ValueError
            If the numbers are out of range, or no coin decides about each record.
        """
        if self.asks_all:
            return 1.0, 1.0
        raise ValueError(NO_COIN)


def selection_choice(settings: Mapping[str, Any]) -> type[SelectionChoice] | None:
    """Return what the settings of a project say chooses its questions, None where they name nothing that is known."""
    return cast(type[SelectionChoice] | None, chosen_of(Kind.STRATEGY, settings))


def asks_about_all(name: str) -> bool:
    """Say whether the choice of questions of this name asks about every record of a stream."""
    choice = cast(type[SelectionChoice] | None, CATALOGUE.find(Kind.STRATEGY, name))
    return choice is not None and choice.asks_all
