"""Forms of how a project labels: how annotators answer, and how much one of them may see."""

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy

from annotation.choices.form_fields import named_field
from annotation.choices.person_limits import BINDS_RECORDS, PersonLimits
from annotation.choices.question_plan import QuestionPlan
from annotation.choices.secrecy import BINDING_LIMITS
from annotation.models import Project
from annotation.questions.forms.declared import DeclaredForm
from privacy.choices import Choice


class LabellingForm(DeclaredForm):
    """How questions are handed out and answered; none of it changes a guarantee."""

    choice: ClassVar[type[Choice]] = PersonLimits
    closed_in_secret = BINDING_LIMITS
    why_closed = gettext_lazy(BINDS_RECORDS)

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data, project=project)
        answered = ("confirm_answers", "skips_to_set_aside")
        self.initial = {**self.initial, **{name: getattr(project, name) for name in answered}}
        self.fields = {**{name: named_field(QuestionPlan, name) for name in answered}, **self.fields}
