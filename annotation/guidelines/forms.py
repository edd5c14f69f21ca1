"""What managers write into the guidelines: words, made-up examples and pictures."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.errors import InvalidConfiguration
from annotation.guidelines.services.pictures import LONGEST_DESCRIPTION, names_of_pictures
from annotation.guidelines.text import refuse_pictures_of_others
from annotation.models import Project
from annotation.wording import localized

MAX_EXAMPLES = 40


class PictureForm(forms.Form):
    """A picture for the guidelines, with the words that stand for it."""

    file = forms.FileField(
        label=_("Picture"),
        max_length=200,
        widget=forms.FileInput(attrs={"accept": "image/png, image/jpeg, image/webp"}),
        help_text=_("PNG, JPEG or WebP. Never take one from the pool: pictures are shown to all."),
    )
    description = forms.CharField(
        max_length=LONGEST_DESCRIPTION,
        label=_("What it shows"),
        help_text=_("Read out to those who cannot see it."),
    )


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
        self._project = project
        self._classes = [str(name) for name in project.classes]

    def clean_text(self) -> str:
        """Refuse a picture that is not the project's, naming its line."""
        text: str = self.cleaned_data["text"]
        try:
            refuse_pictures_of_others(text, names_of_pictures(self._project))
        except InvalidConfiguration as refusal:
            raise forms.ValidationError(localized(str(refusal))) from None
        return text

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
