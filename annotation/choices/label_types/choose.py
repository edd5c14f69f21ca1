"""Single choice: one of the classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.consensus import plurality
from annotation.choices.label_types.base import LabelType
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class ChooseOne(LabelType):
    name: ClassVar[str] = "choose"
    label: ClassVar[str] = _("choose a class")
    help: ClassVar[str] = _("A record has the class that more than half of its answers name.")
    widget: ClassVar[str] = "annotation/choices/_label_choose.html"
    lists_classes: ClassVar[bool] = True

    def possible(self, n_classes: int) -> int:
        return n_classes

    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> str:
        return classes[choice]

    def settled(self, votes: Sequence[int], *, rng: RandomSource) -> int:
        return plurality(votes, rng=rng)
