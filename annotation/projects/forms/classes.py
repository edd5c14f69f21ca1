"""The forms of a further class for a project that people work in, and of one that counts as another."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.class_changes import FurtherClass
from annotation.choices.class_looks import COLOURS, LONGEST_GROUP
from annotation.choices.merged_classes import unmerged_classes
from annotation.choices.presets import LONGEST_CLASS
from annotation.errors import InvalidConfiguration
from annotation.models import DataKind, Project
from annotation.wording import class_name, localized

COLOUR_NAMES = {
    "red": _("red"),
    "orange": _("orange"),
    "yellow": _("yellow"),
    "green": _("green"),
    "teal": _("teal"),
    "blue": _("blue"),
    "purple": _("purple"),
    "pink": _("pink"),
    "brown": _("brown"),
    "grey": _("grey"),
}


class BlamedForm(forms.Form):
    """A form that shows what a service refuses."""

    def blame(self, error: InvalidConfiguration) -> None:
        """Show each rule that was broken at its field, or above all where no field of the form is to blame."""
        for field, rule in (error.broken or {"": str(error)}).items():
            self.add_error(field if field in self.fields else None, localized(rule))


class FurtherClassForm(BlamedForm):
    """A class with what stands about it; it comes behind all others."""

    name = forms.CharField(
        max_length=LONGEST_CLASS,
        label=_("Name"),
        help_text=_("Annotators see it from their next question on. It stands in every model released from now on."),
    )
    words = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=_("What belongs to it"),
        help_text=_("A sentence or an example phrase a line, written without looking at the records."),
    )
    group = forms.CharField(
        required=False,
        max_length=LONGEST_GROUP,
        label=_("Group"),
        help_text=_("The heading it stands under; one that no class has yet is a new one."),
    )
    colour = forms.ChoiceField(
        required=False,
        choices=[("", _("none")), *((colour, COLOUR_NAMES[colour]) for colour in COLOURS)],
        label=_("Colour"),
    )
    known_beforehand = forms.BooleanField(
        label=_("I know of this class without having seen it in the records"),
        help_text=_(
            "Names of classes are public: engineers read them at once, and everybody who gets a model. A class that "
            "was found in somebody's record would tell of it."
        ),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data)
        if project.data_kind != DataKind.TEXT:
            del self.fields["words"]

    def further(self) -> FurtherClass:
        """Return the class that was typed."""
        typed = self.cleaned_data
        words = tuple(line.strip() for line in typed.get("words", "").splitlines() if line.strip())
        return FurtherClass(typed["name"], words, typed["group"], typed["colour"])


class MergeForm(BlamedForm):
    """A class that counts as another one from now on."""

    name = forms.ChoiceField(label=_("Class"), help_text=_("Annotators are not offered it any more."))
    into = forms.ChoiceField(label=_("Counts as"))
    known_beforehand = forms.BooleanField(
        label=_("I decided this without looking at records and answers"),
        help_text=_(
            "Which classes there are is public: engineers read it at once, and everybody who gets a model. A merge "
            "that was decided by what somebody's record says would tell of it."
        ),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data)
        kept = unmerged_classes(project.classes, project.merged_classes)
        for name in ("name", "into"):
            choices = [("", _("choose a class")), *((each, class_name(each)) for each in kept)]
            self.fields[name].choices = choices  # type: ignore[attr-defined]
