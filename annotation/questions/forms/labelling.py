"""Forms of how a project labels: what annotators are told, how they answer, and how much one of them may see."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _

from annotation.choices.choice_fields import named_field
from annotation.choices.person_limits import BINDS_RECORDS, PersonLimits
from annotation.choices.question_plan import QuestionPlan
from annotation.choices.secrecy import BINDING_LIMITS
from annotation.models import Project
from annotation.questions.forms.declared import DeclaredForm
from privacy.choices import Choice

MAX_EXAMPLES = 40


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


class GuidelinesForm(forms.Form):
    """What annotators are told, with made-up examples."""

    text = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 12}),
        label=_("Guidelines"),
        help_text=_(
            "Markdown: # heading, - list, **bold**, `as it is written`, | tables |. It stands beside each question."
        ),
    )
    examples = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        label=_("Examples"),
        help_text=_("One a line: made-up text | class | why. Never take one from the pool: examples are shown to all."),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._classes = [str(name) for name in project.classes]

    def clean_examples(self) -> list[dict[str, Any]]:
        """Read the examples, naming the line that cannot be read."""
        lines = self.cleaned_data["examples"].splitlines()
        examples = [self._example(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
        if len(examples) > MAX_EXAMPLES:
            raise forms.ValidationError(_("At most %(limit)d examples."), params={"limit": MAX_EXAMPLES})
        return examples

    def _example(self, number: int, line: str) -> dict[str, Any]:
        text, *rest = (part.strip() for part in line.split("|", maxsplit=2))
        if not (text and rest):
            raise forms.ValidationError(_("Line %(line)d: write “text | class | why”."), params={"line": number})
        if rest[0] not in self._classes:
            raise forms.ValidationError(_("Line %(line)d: there is no class of that name."), params={"line": number})
        return {"text": text, "choice": self._classes.index(rest[0]), "reason": "".join(rest[1:])}

    @staticmethod
    def written(examples: list[dict[str, Any]], classes: list[str]) -> str:
        """Return stored examples as they are typed."""
        return "\n".join(
            " | ".join(part for part in (one["text"], classes[one["choice"]], one["reason"]) if part)
            for one in examples
        )
