"""What annotation asks of whatever chooses a project's questions; the learner's strategies answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from annotation.choices.catalogue import CATALOGUE, chosen_of
from privacy.choices import Choice, Kind


@dataclass(frozen=True)
class SelectionChoice(Choice):
    """What chooses a project's questions.

    Attributes
    ----------
    by_chance : bool
        Whether it asks at random itself, so that random choice is nothing to compare it with.
    """

    kind: ClassVar[Kind] = Kind.STRATEGY
    by_chance: ClassVar[bool] = False

    def rates(self) -> tuple[float, float]:
        """Return the largest and the smallest probability of asking about a record of a stream, as they are charged.

        Where no coin decides about each record, all are asked about.

        Raises
        ------
        ValueError
            If the numbers are out of range.
        """
        return 1.0, 1.0


def selection_choice(settings: Mapping[str, Any]) -> type[SelectionChoice] | None:
    """Return what the settings of a project say chooses its questions, None where they name nothing that is known."""
    return cast(type[SelectionChoice] | None, chosen_of(Kind.STRATEGY, settings))


def asks_about_all(name: str) -> bool:
    """Say whether the choice of questions of this name asks about every record of a stream."""
    choice = cast(type[SelectionChoice] | None, CATALOGUE.find(Kind.STRATEGY, name))
    return choice is not None and choice.of({}).rates() == (1.0, 1.0)
