"""Forms of how a project labels: what annotators are told, how they answer, and how much one of them may see."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.selection_rules import BINDING_LIMITS
from annotation.models import Project

LARGEST = 2**31 - 1
MAX_EXAMPLES = 40


class LabellingForm(forms.ModelForm):  # type: ignore[type-arg]
    """How questions are handed out and answered; none of it changes a guarantee."""

    class Meta:
        model = Project
        fields = (
            "confirm_answers",
            "skips_to_set_aside",
            "answers_per_person",
            "answers_per_day",
            "encounter_limit",
            "quiet_from",
            "quiet_until",
        )
        labels = {
            "confirm_answers": _("Answers are confirmed"),
            "skips_to_set_aside": _("Skips that set a question aside"),
            "answers_per_person": _("Answers of one person"),
            "answers_per_day": _("Answers of one person a day"),
            "encounter_limit": _("Contributors one person may see"),
            "quiet_from": _("Quiet from"),
            "quiet_until": _("Quiet until"),
        }
        help_texts = {
            "confirm_answers": _("Choosing a class is not enough: a second key or button stores it."),
            "skips_to_set_aside": _("It leaves the queue, and you find it under Reports. Fewer are enough if all did."),
            "answers_per_person": _("Empty means without a limit."),
            "answers_per_day": _("A day of the site's time zone."),
            "encounter_limit": _(
                "Against collusion: contributors, or texts where a gate stands between, that one annotator ever meets."
            ),
            "quiet_from": _("Between these times nothing is handed out, by the site's time zone."),
        }
        widgets = {
            "quiet_from": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
            "quiet_until": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("skips_to_set_aside", "answers_per_person", "answers_per_day", "encounter_limit"):
            field = self.fields[name]
            assert isinstance(field, forms.IntegerField)
            field.min_value, field.max_value = 1, 1000 if name == "skips_to_set_aside" else LARGEST
            field.widget.attrs |= {"min": 1}
            field.validators += forms.IntegerField(min_value=1, max_value=field.max_value).validators
        if self.instance.hides_selection:
            for name in BINDING_LIMITS:
                self.fields[name].disabled = True
                self.fields[name].help_text = _(
                    "Not where the choice is secret: one record would keep another from being answered before its time "
                    "is up."
                )

    def clean(self) -> dict[str, Any]:
        """Refuse half a span, and one of no length."""
        start, end = self.cleaned_data.get("quiet_from"), self.cleaned_data.get("quiet_until")
        if (start is None) != (end is None):
            self.add_error("quiet_until", _("Quiet hours need a beginning and an end."))
        elif start is not None and start == end:
            self.add_error("quiet_until", _("Quiet hours end at another time than they begin."))
        return self.cleaned_data


class GuidelinesForm(forms.Form):
    """What annotators are told, with made-up examples."""

    text = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 8}), label=_("Guidelines"))
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
