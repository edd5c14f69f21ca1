"""Several classes: any number up to a declared one."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from annotation.choices.consensus import Agreement, most_said
from annotation.choices.label_types.base import LabelType, Teaching
from annotation.choices.label_types.class_sets import MOST_FAR, NEAR, number_of, places_of, set_members
from annotation.choices.label_types.coefficient import MASI, Coefficient
from annotation.choices.selections import selection_choice
from privacy.choices import Kind, Sound, parameter
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

NO_STREAM: Final = _("A stream asks for one class, or for a yes or no.")
NO_CROWD: Final = _("Answers of a crowd are protected with one class per question only.")


@dataclass(frozen=True)
class ChooseSeveral(LabelType):
    """Any number of classes up to a declared one; an answer is stored as the number of its set."""

    name: ClassVar[str] = "several"
    label: ClassVar[str] = _("choose several classes")
    help: ClassVar[str] = _("A record has the classes that more than half of its answers name.")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",), arrivals=("pool",), why_not={"stream": NO_STREAM, "crowd": NO_CROWD}
    )
    widget: ClassVar[str] = "annotation/choices/_label_several.html"
    lists_classes: ClassVar[bool] = True
    teaches: ClassVar[Teaching] = Teaching.SETS
    coefficient: ClassVar[Coefficient] = MASI

    labels_per_record: int = parameter(
        3,
        at_least=1,
        at_most=60,
        label=_("Most classes of a record"),
        help=_("Noise grows with the square root of this number."),
    )
    none_allowed: bool = parameter(
        True,
        label=_("A record may have none of the classes"),
    )

    @classmethod
    def fitting(cls, n_classes: int) -> int:
        """Return the default of the most classes of a record, no more than there are."""
        return max(1, min(cls.labels_per_record, n_classes))

    def possible(self, n_classes: int) -> int:
        return sum(math.comb(n_classes, size) for size in range(not self.none_allowed, self.labels_per_record + 1))

    def refusal(self, choice: int, n_classes: int) -> str:
        try:
            places = places_of(choice)
        except ValueError:
            return as_message("An answer is a set of classes.")
        if places and places[-1] >= n_classes:
            return as_message("There are {possible} answers to choose from.", possible=n_classes)
        if len(places) > self.labels_per_record:
            return as_message("A record has at most {most} of the classes.", most=self.labels_per_record)
        if not places and not self.none_allowed:
            return as_message("Choose at least one of the classes.")
        return ""

    @property
    def most_classes(self) -> int:
        return self.labels_per_record

    @property
    def names_none(self) -> bool:
        return self.none_allowed

    def places(self, choice: int) -> tuple[int, ...]:
        return places_of(choice)

    def stored(self, places: Iterable[int]) -> int:
        return number_of(places)

    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> list[str]:
        return [classes[place] for place in places_of(choice)]

    def agreed(self, votes: Sequence[int]) -> Agreement | None:
        """Return the classes that more than half of the answers name, None where only smaller shares name any.

        Where majorities exceed what an answer may hold, the most named are kept (at a tie, those earlier in the list):
        training is charged for that many.
        """
        if not votes:
            raise ValueError("votes must hold at least one answer, got none")
        named = Counter(place for vote in votes for place in places_of(vote))
        kept = sorted(
            (place for place, n in named.items() if 2 * n > len(votes)), key=lambda each: (-named[each], each)
        )
        if not kept and 2 * list(votes).count(0) <= len(votes):
            return None
        kept = kept[: self.labels_per_record]
        # What the answers say of the class they are most divided about.
        agreeing = min((n if place in kept else len(votes) - n for place, n in named.items()), default=len(votes))
        return Agreement(choice=number_of(kept), votes=len(votes), agreeing=agreeing)

    def opinion(self, votes: Sequence[int]) -> tuple[int, float]:
        agreement = self.agreed(votes)
        return most_said(votes) if agreement is None else (agreement.choice, agreement.agreeing / len(votes))

    def targets(
        self, choices: NDArray[np.int64], guesses: NDArray[np.int64] | None, *, n_classes: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return np.ones(len(choices), dtype=np.bool_), set_members(choices, n_classes)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        n_classes = len(settings["classes"])
        broken = dict(super().rules(settings))
        if self.labels_per_record > n_classes:
            broken["labels_per_record"] = as_message("There are only {n_classes} classes.", n_classes=n_classes)
        elif n_classes > NEAR and self.labels_per_record > MOST_FAR:
            broken["labels_per_record"] = as_message("A record has at most {most} of the classes.", most=MOST_FAR)
        choice = selection_choice(settings)
        scored = "selection" in settings and (choice is None or not choice.by_chance)
        if scored:
            broken["selection"] = _("Such answers need a secret sample or random choice.")
        if settings.get(Kind.SUGGESTIONS.key):
            broken[Kind.SUGGESTIONS.key] = _("Suggestions name one class, and a record may have several.")
        return broken
