"""The field of an answer: one class, or boxes of which any number may be ticked."""

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.answers.selectors import label_type, possible_answers
from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.class_sets import MOST_CLASSES
from annotation.models import Project
from annotation.wording import class_name, localized

# Beside the boxes of the classes: that none of them is ticked on purpose.
NONE_BOX = "none"
NO_SUCH_CLASS = _("There is no such class. Choose one of those below.")


class OneClassField(forms.IntegerField):
    """An answer by its position."""

    def __init__(self, possible: int, **kwargs: Any) -> None:
        super().__init__(min_value=0, **kwargs)
        self._possible = possible

    def clean(self, value: Any) -> int:
        """Refuse an answer the project does not have."""
        choice: int = super().clean(value)
        if choice >= self._possible:
            raise forms.ValidationError(NO_SUCH_CLASS)
        return choice


class Boxes(forms.CheckboxSelectMultiple):
    """A box for each class, and one for none of them."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> tuple[list[str], bool]:
        """Return what is ticked, and whether it is said on purpose that nothing is."""
        ticked = list(data.getlist(name))
        return [each for each in ticked if each != NONE_BOX], NONE_BOX in data or NONE_BOX in ticked


class SeveralClassesField(forms.Field):
    """The boxes that are ticked, as the number of their set; none of them only where that is said on purpose."""

    widget = Boxes

    def __init__(self, kind: LabelType, names: Sequence[str], **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self._kind, self._n_classes = kind, len(names)
        boxes: list[tuple[int | str, Any]] = list(enumerate(map(class_name, names)))
        self.widget.choices = [*boxes, *([(NONE_BOX, _("None of them"))] if kind.names_none else [])]

    def clean(self, value: tuple[list[str], bool]) -> int:
        """Return the number of the set, or say what is wrong with it."""
        ticked, none = value
        places = self._places(ticked)
        if len(places) < len(ticked):
            raise forms.ValidationError(NO_SUCH_CLASS)
        if none and places:
            raise forms.ValidationError(_("You ticked classes, and that none of them fits. Leave one of the two."))
        if not none and not places:
            raise forms.ValidationError(_("Tick at least one box."))
        try:
            choice = self._kind.stored(places)
        except ValueError:
            raise forms.ValidationError(_("So many classes are not stored together.")) from None
        if refusal := self._kind.refusal(choice, self._n_classes):
            raise forms.ValidationError(localized(refusal))
        return choice

    def sent(self, data: Any) -> int | None:
        """Return the set of what is ticked, whether or not it is an answer; None where nothing is, or too much."""
        boxes = cast("Boxes", self.widget)
        ticked, _none = boxes.value_from_datadict(data, {}, "choice")
        try:
            return self._kind.stored(self._places(ticked)) or None
        except ValueError:
            return None

    def _places(self, ticked: Sequence[str]) -> list[int]:
        """Return the positions of the boxes that there are."""
        known = [int(each) for each in ticked if each.isdecimal() and len(each) <= 4]
        return [place for place in known if place < min(self._n_classes, MOST_CLASSES)]


def answer_field(project: Project, **kwargs: Any) -> forms.Field:
    """Return the field in which a question of the project is answered."""
    kind = label_type(project)
    if kind.takes_several:
        return SeveralClassesField(kind, [str(name) for name in project.classes], **kwargs)
    return OneClassField(possible_answers(project), **kwargs)
