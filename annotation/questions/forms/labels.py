"""What an annotator sends."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import Project, ReportKind
from annotation.questions import answers
from annotation.questions.services.reports import MAX_COMMENT_LENGTH

SKIP_REASONS = {
    "unsure": _("I cannot tell"),
    "no_class": _("No class fits"),
    "language": _("Not in a language I know"),
}
FLAGS = {
    ReportKind.BROKEN.value: _("Broken: it cannot be read or shown"),
    ReportKind.SENSITIVE.value: _("Sensitive: nobody should see this"),
}


class LabelForm(forms.Form):
    """One class, by its position in the project's list, and the key of the page it was chosen on."""

    choice = forms.IntegerField(min_value=0)
    key = forms.UUIDField(required=False)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._possible = answers.possible_answers(project)

    def clean_choice(self) -> int:
        """Refuse a class the project does not have."""
        choice: int = self.cleaned_data["choice"]
        if choice >= self._possible:
            raise forms.ValidationError(_("There is no such class. Choose one of those below."))
        return choice


class SkipForm(forms.Form):
    """Why a question is given back."""

    reason = forms.ChoiceField(choices=SKIP_REASONS.items())


class FlagForm(forms.Form):
    """What is wrong with a question, and more if somebody wants to say it."""

    kind = forms.ChoiceField(choices=FLAGS.items())
    comment = forms.CharField(max_length=MAX_COMMENT_LENGTH, required=False)


class CommentForm(forms.Form):
    """What somebody tells the managers about a question."""

    comment = forms.CharField(max_length=MAX_COMMENT_LENGTH)
