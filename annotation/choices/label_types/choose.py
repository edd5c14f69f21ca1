"""Single choice: one of the classes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.label_types.base import LabelType
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class ChooseOne(LabelType):
    """A class is chosen for each record; an answer is stored as the position of its class."""

    name: ClassVar[str] = "choose"
    label: ClassVar[str] = _("choose a class")
    help: ClassVar[str] = _("Each record has one class: the one that more than half of the answers name.")
    widget: ClassVar[str] = "annotation/choices/_label_choose.html"
    finds_classes: ClassVar[bool] = True
    grows: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    randomizers: ClassVar[Collection[str] | None] = None
    coefficient: ClassVar[str] = _("Krippendorff's alpha")

    def possible(self, n_classes: int) -> int:
        """Return one answer for each class."""
        return n_classes

    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> str:
        """Return the name of the class."""
        return classes[choice]
