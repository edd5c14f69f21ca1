"""What an annotator sends."""

from typing import Any

from django import forms

from annotation.answers.forms import SeveralClassesField, answer_field
from annotation.models import Project
from annotation.reports.forms import SKIP_REASONS


class LabelForm(forms.Form):
    """The answer, by positions in the project's list of classes, and the key of the page it was chosen on."""

    key = forms.UUIDField(required=False)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["choice"] = answer_field(project)

    @property
    def ticked(self) -> int | None:
        """The set of the boxes that were ticked, also where it is no answer; None where there are none."""
        field = self.fields["choice"]
        return field.sent(self.data) if isinstance(field, SeveralClassesField) else None


class SkipForm(forms.Form):
    """Why a question is given back."""

    reason = forms.ChoiceField(choices=SKIP_REASONS.items())
