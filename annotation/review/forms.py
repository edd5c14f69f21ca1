"""What a reviewer decides about a question."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.answers.forms import answer_field
from annotation.answers.selectors import label_type, offered_answers
from annotation.models import Oracle, Project


class SettleForm(forms.Form):
    """A decision about a question that is reviewed."""

    keep_as_check = forms.BooleanField(required=False, label=_("Use it as a hidden check from now on"))

    def __init__(self, *args: Any, project: Project, may_keep: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields = {"choice": self._answer(project), **self.fields}
        if project.oracle == Oracle.CROWD or not may_keep:
            # Seen once more, it would tell whoever compares notes that it was disputed.
            del self.fields["keep_as_check"]

    @staticmethod
    def _answer(project: Project) -> forms.Field:
        if label_type(project).takes_several:
            return answer_field(project, label=_("Classes"))
        names: list[tuple[Any, Any]] = [("", _("choose a class")), *offered_answers(project)]
        return forms.TypedChoiceField(coerce=int, choices=names, label=_("Class"))
