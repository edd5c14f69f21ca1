"""What of a project's configuration its managers may still change by hand."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.form_fields import named_field
from annotation.choices.question_plan import QuestionPlan
from annotation.models import Project


class SettingsForm(forms.Form):
    """What touches no guarantee; limits, labelling and quality have pages of their own."""

    name = forms.CharField(max_length=120, label=_("Name"))
    question = forms.CharField(max_length=200, label=_("Question"), help_text=_("The one sentence annotators answer."))
    lease_seconds = named_field(QuestionPlan, "lease_seconds")

    def __init__(self, data: Any = None, *, project: Project) -> None:
        initial = {name: getattr(project, name) for name in self.base_fields}
        super().__init__(data, initial=initial)
