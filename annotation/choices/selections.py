"""Base class of query strategies as projects choose them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

from annotation.choices.catalogue import CATALOGUE, chosen_of
from privacy.choices import Choice, Kind
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

BEHIND_A_GATE = _(
    "Among the texts that passed, this one was chosen by a rule that knows these texts and released models only."
)
OF_A_RECORD = _("This record was chosen by a rule that knows released models only")
NO_COIN = as_message("the chance of each record to be asked is unknown")


@dataclass(frozen=True)
class SelectionChoice(Choice):
    """Query strategy of a project.

    Attributes
    ----------
    by_chance : bool
        Whether it asks at random itself, so that random choice is nothing to compare it with.
    """

    kind: ClassVar[Kind] = Kind.STRATEGY
    by_chance: ClassVar[bool] = False

    def why(self, settings: Mapping[str, Any]) -> str:
        """Return why a question is asked, for annotators; outside a gate the page continues the sentence."""
        return BEHIND_A_GATE if settings.get("oracle") == "crowd" else OF_A_RECORD


@runtime_checkable
class AsksInBlocks(Protocol):
    """A choice that asks about a pool in secret blocks, each of which closes at a public time and gives one model."""

    @property
    def block_rates(self) -> tuple[float, ...]:
        """Public rates of all blocks, together at most 1."""


@runtime_checkable
class AsksStream(Protocol):
    """A choice that decides about each record of a stream by itself."""

    def rates(self) -> tuple[float, float]:
        """Return the largest and the smallest probability of asking about a record, as they are charged."""


def selection_choice(settings: Mapping[str, Any]) -> type[SelectionChoice] | None:
    return cast(type[SelectionChoice] | None, chosen_of(Kind.STRATEGY, settings))


def why_asked(settings: Mapping[str, Any]) -> str:
    choice = selection_choice(settings)
    return "" if choice is None else choice.of(settings).why(settings)


def block_rates(choice: SelectionChoice) -> tuple[float, ...]:
    """Return the public rates of all secret blocks; empty where blocks are not secret."""
    return choice.block_rates if isinstance(choice, AsksInBlocks) else ()


def asks_in_secret(settings: Mapping[str, Any]) -> bool:
    """Say whether what chooses a project's questions is a secret by itself, whatever becomes of the answers."""
    return isinstance(selection_choice(settings), AsksInBlocks)


def selection_rates(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Return the largest and the smallest selection probability of a stream, as they are charged."""
    choice = selection_choice(settings)
    chosen = None if choice is None else choice.of(settings)
    if not isinstance(chosen, AsksStream):
        raise ValueError(NO_COIN)
    return chosen.rates()


def asks_about_all(name: str) -> bool:
    """Say whether a strategy asks about every record of a stream, so that who is asked tells nothing."""
    choice = cast(type[SelectionChoice] | None, CATALOGUE.find(Kind.STRATEGY, name))
    return isinstance(choice, AsksStream) and choice.of({}).rates() == (1.0, 1.0)
