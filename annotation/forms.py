"""What an annotator sends."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import Project

SKIP_REASONS = {
    "unsure": _("I cannot tell"),
    "no_class": _("No class fits"),
    "language": _("Not in a language I know"),
    "broken": _("Something is wrong with it"),
}


class LabelForm(forms.Form):
    """One class, by its position in the project's list."""

    choice = forms.IntegerField(min_value=0)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._classes = len(project.classes)

    def clean_choice(self) -> int:
        """Refuse a class the project does not have."""
        choice: int = self.cleaned_data["choice"]
        if choice >= self._classes:
            raise forms.ValidationError(_("There is no such class. Choose one of those below."))
        return choice


class SkipForm(forms.Form):
    """Why a question is given back."""

    reason = forms.ChoiceField(choices=SKIP_REASONS.items())
