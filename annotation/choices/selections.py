"""Base class of query strategies as projects choose them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from annotation.choices.catalogue import CATALOGUE, chosen_of
from privacy.choices import Choice, Kind
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

BEHIND_A_GATE = _(
    "Among the texts that passed, this one was chosen by a rule that knows these texts and released models only."
)
OF_A_RECORD = _("This record was chosen by a rule that knows released models only")
NO_COIN = as_message("nothing says with which chance each record is asked about")


@dataclass(frozen=True)
class SelectionChoice(Choice):
    """Query strategy of a project.

    Attributes
    ----------
    hides_selection : bool
        Whether ids, numbers and times of what is asked stay among those who see the records.
    by_chance : bool
        Whether it asks at random itself, so that random choice is nothing to compare it with.
    asks_all : bool
        Whether it asks about every record of a stream, so that who is asked tells nothing.
    in_blocks : bool
        Whether it asks about a pool in secret blocks, each of which closes at a public time and gives one model.
    """

    kind: ClassVar[Kind] = Kind.STRATEGY
    hides_selection: ClassVar[bool] = False
    by_chance: ClassVar[bool] = False
    asks_all: ClassVar[bool] = False
    in_blocks: ClassVar[bool] = False

    def why(self, settings: Mapping[str, Any]) -> str:
        """Return what an annotator is told of why a question is asked, under the settings of a project.

        Behind a gate it is a sentence; elsewhere the promise of the project goes on from it, so it ends without a stop.
        """
        return BEHIND_A_GATE if settings.get("oracle") == "crowd" else OF_A_RECORD

    @property
    def block_rates(self) -> tuple[float, ...]:
        """Public rates of all secret blocks, together at most 1; empty where blocks are not secret."""
        return ()

    @property
    def series_epsilon(self) -> float | None:
        """Charge of a series of rounds, once, beside what each adds; None where no such number is set."""
        return None

    def rates(self) -> tuple[float, float]:
        """Return the largest and the smallest probability of asking about a record of a stream, as they are charged."""
        if self.asks_all:
            return 1.0, 1.0
        raise ValueError(NO_COIN)


def selection_choice(settings: Mapping[str, Any]) -> type[SelectionChoice] | None:
    return cast(type[SelectionChoice] | None, chosen_of(Kind.STRATEGY, settings))


def why_asked(settings: Mapping[str, Any]) -> str:
    """Return what an annotator is told of why the project asks a question; empty where nothing says what chose it."""
    choice = selection_choice(settings)
    return "" if choice is None else choice.of(settings).why(settings)


def asks_in_secret(settings: Mapping[str, Any]) -> bool:
    """Say whether what chooses a project's questions is a secret by itself, whatever becomes of the answers."""
    choice = selection_choice(settings)
    return choice is not None and choice.hides_selection


def asks_about_all(name: str) -> bool:
    choice = cast(type[SelectionChoice] | None, CATALOGUE.find(Kind.STRATEGY, name))
    return choice is not None and choice.asks_all
