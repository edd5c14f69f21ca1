"""Forms of the label page: answers, flags, guidelines, and the settings of the queue."""

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, cast

from django import forms
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _

from annotation.choices.form_fields import field_of, named_field
from annotation.choices.label_types.base import NamesSeveral
from annotation.choices.label_types.class_sets import MOST_CLASSES
from annotation.choices.label_types.spans import MarkSpans
from annotation.choices.plans import BINDS_RECORDS, AnswerBudget, PersonLimits, QuestionPlan
from annotation.choices.rules import BINDING_LIMITS, hides_selection
from annotation.errors import InvalidConfiguration
from annotation.models import Project, ReportKind
from annotation.questions.guidelines import picture_names, refuse_pictures_of_others
from annotation.questions.selectors import label_type, possible_answers
from annotation.questions.services.flags import MAX_COMMENT_LENGTH
from annotation.questions.services.guidelines import LONGEST_DESCRIPTION
from annotation.questions.services.spans import NO_SPANS_OF_IT
from annotation.wording import class_name, localized
from dpal.spans.text import Span, read
from privacy.choices import Choice

# Beside the boxes of the classes: that none of them is ticked on purpose.
NONE_BOX = "none"
NO_SUCH_CLASS = _("Unknown class. Choose one of those below.")


class OneClassField(forms.IntegerField):
    def __init__(self, possible: int, **kwargs: Any) -> None:
        super().__init__(min_value=0, **kwargs)
        self._possible = possible

    def clean(self, value: Any) -> int:
        choice: int = super().clean(value)
        if choice >= self._possible:
            raise forms.ValidationError(NO_SUCH_CLASS)
        return choice


class Boxes(forms.CheckboxSelectMultiple):
    def value_from_datadict(self, data: Any, files: Any, name: str) -> tuple[list[str], bool]:
        ticked = list(data.getlist(name))
        return [each for each in ticked if each != NONE_BOX], NONE_BOX in data or NONE_BOX in ticked


class SeveralClassesField(forms.Field):
    widget = Boxes

    def __init__(self, kind: NamesSeveral, names: Sequence[str], **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self._kind, self._n_classes = kind, len(names)
        boxes: list[tuple[int | str, Any]] = list(enumerate(map(class_name, names)))
        self.widget.choices = [*boxes, *([(NONE_BOX, _("None of them"))] if kind.names_none else [])]

    def clean(self, value: tuple[list[str], bool]) -> int:
        ticked, none = value
        places = self._places(ticked)
        if len(places) < len(ticked):
            raise forms.ValidationError(NO_SUCH_CLASS)
        if none and places:
            raise forms.ValidationError(_("Tick classes, or “none of them”."))
        if not none and not places:
            raise forms.ValidationError(_("Tick classes, or “none of them”."))
        try:
            choice = self._kind.stored(places)
        except ValueError:
            raise forms.ValidationError(_("So many classes are not stored together.")) from None
        if refusal := self._kind.refusal(choice, self._n_classes):
            raise forms.ValidationError(localized(refusal))
        return choice

    def sent(self, data: Any) -> int | None:
        boxes = cast("Boxes", self.widget)
        ticked, _none = boxes.value_from_datadict(data, {}, "choice")
        try:
            return self._kind.stored(self._places(ticked)) or None
        except ValueError:
            return None

    def _places(self, ticked: Sequence[str]) -> list[int]:
        known = [int(each) for each in ticked if each.isdecimal() and len(each) <= 4]
        return [place for place in known if place < min(self._n_classes, MOST_CLASSES)]


class SentSpans(forms.HiddenInput):
    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        return data.get("spans")


class SpansField(forms.Field):
    widget = SentSpans

    def clean(self, value: Any) -> tuple[Span, ...]:
        if not value:
            raise forms.ValidationError(_("Marking spans needs JavaScript."))
        try:
            return read(value)
        except (ValueError, RecursionError):
            raise forms.ValidationError(localized(NO_SPANS_OF_IT)) from None


def answer_field(project: Project, **kwargs: Any) -> forms.Field:
    kind = label_type(project)
    if isinstance(kind, NamesSeveral):
        return SeveralClassesField(kind, [str(name) for name in project.classes], **kwargs)
    if isinstance(kind, MarkSpans):
        return SpansField(**kwargs)
    return OneClassField(possible_answers(project), **kwargs)


SKIP_REASONS = {"unsure": _("I cannot tell"), "no_class": _("No class fits"), "language": _("Not in a language I know")}
FLAGS = {
    ReportKind.BROKEN.value: _("Broken"),
    ReportKind.SENSITIVE.value: _("Sensitive: nobody should see this"),
}


class FlagForm(forms.Form):
    kind = forms.ChoiceField(choices=FLAGS.items())
    comment = forms.CharField(max_length=MAX_COMMENT_LENGTH, required=False)


class WordsField(forms.CharField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            max_length=MAX_COMMENT_LENGTH, error_messages={"required": _("Write something first.")}, **kwargs
        )

    def to_python(self, value: Any) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class CommentForm(forms.Form):
    comment = WordsField()


class LabelForm(forms.Form):
    key = forms.UUIDField(required=False)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["choice"] = answer_field(project)

    @property
    def ticked(self) -> int | None:
        field = self.fields["choice"]
        return field.sent(self.data) if isinstance(field, SeveralClassesField) else None


class SkipForm(forms.Form):
    reason = forms.ChoiceField(
        choices=SKIP_REASONS.items(),
        error_messages=dict.fromkeys(("required", "invalid_choice"), _("Choose one of the reasons to skip.")),
    )


class DeclaredForm(forms.Form):
    choice: ClassVar[type[Choice]]
    # Not open where the choice of questions is secret, and why.
    closed_in_secret: ClassVar[Collection[str]] = ()
    why_closed: ClassVar[Any] = ""

    def __init__(self, data: Any = None, *, project: Project) -> None:
        declared = {each.name: each for each in self.choice.parameters()}
        super().__init__(data, initial={name: getattr(project, name) for name in declared})
        self.project = project
        self.fields = {name: field_of(each) for name, each in declared.items()}
        if hides_selection(project.settings):
            for name in self.closed_in_secret:
                self.fields[name].disabled = True
                self.fields[name].help_text = self.why_closed

    def clean(self) -> dict[str, Any]:
        broken = self.choice.broken_by({**self.project.settings, **self.cleaned_data})
        for name, rule in broken.items():
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, localized(rule))
        return self.cleaned_data


class LabelBudgetForm(DeclaredForm):
    choice: ClassVar[type[Choice]] = AnswerBudget
    # How many a secret block or a hidden window asks is secret, and stopping at a limit would tell.
    closed_in_secret = ("labels_limit", "money_limit")
    why_closed = _("No limit with secret selection: reaching it would reveal the size of the sample.")

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()


class LabellingForm(DeclaredForm):
    choice: ClassVar[type[Choice]] = PersonLimits
    closed_in_secret = BINDING_LIMITS
    why_closed = gettext_lazy(BINDS_RECORDS)

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data, project=project)
        answered = ("confirm_answers", "skips_to_set_aside")
        self.initial = {**self.initial, **{name: getattr(project, name) for name in answered}}
        self.fields = {**{name: named_field(QuestionPlan, name) for name in answered}, **self.fields}


MAX_EXAMPLES = 40


class PictureForm(forms.Form):
    file = forms.FileField(
        label=_("Picture"),
        max_length=200,
        widget=forms.FileInput(attrs={"accept": "image/png, image/jpeg, image/webp"}),
        help_text=_("PNG, JPEG or WebP, never one from the pool."),
    )
    description = forms.CharField(
        max_length=LONGEST_DESCRIPTION,
        label=_("Description"),
    )


class GuidelinesForm(forms.Form):
    text = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 12}),
        label=_("Guidelines"),
        help_text=_("Markdown: # heading, - list, **bold**, `code`, | tables |."),
    )
    examples = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        label=_("Examples"),
        help_text=_("One per line: invented text | class | reason. Never use one from the pool."),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._project = project
        self._classes = [str(name) for name in project.classes]

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        try:
            refuse_pictures_of_others(text, picture_names(self._project))
        except InvalidConfiguration as refusal:
            raise forms.ValidationError(localized(str(refusal))) from None
        return text

    def clean_examples(self) -> list[dict[str, Any]]:
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
            raise forms.ValidationError(_("Line %(line)d: unknown class."), params={"line": number})
        return {"text": text, "choice": self._classes.index(rest[0]), "reason": "".join(rest[1:])}

    @staticmethod
    def written(examples: list[dict[str, Any]], classes: list[str]) -> str:
        return "\n".join(
            " | ".join(part for part in (one["text"], classes[one["choice"]], one["reason"]) if part)
            for one in examples
        )
