"""What is said about a question beside an answer, and why one is given back."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import ReportKind
from annotation.reports.services.reporting import MAX_COMMENT_LENGTH

SKIP_REASONS = {
    "unsure": _("I cannot tell"),
    "no_class": _("No class fits"),
    "language": _("Not in a language I know"),
}
FLAGS = {
    ReportKind.BROKEN.value: _("Broken: it cannot be read or shown"),
    ReportKind.SENSITIVE.value: _("Sensitive: nobody should see this"),
}


class FlagForm(forms.Form):
    """What is wrong with a question, and more if somebody wants to say it."""

    kind = forms.ChoiceField(choices=FLAGS.items())
    comment = forms.CharField(max_length=MAX_COMMENT_LENGTH, required=False)


class WordsField(forms.CharField):
    """Words of a bounded length; the end of a line is one letter, as the browser that bounds them counts it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            max_length=MAX_COMMENT_LENGTH, error_messages={"required": _("Write something first.")}, **kwargs
        )

    def to_python(self, value: Any) -> str:
        """Return the words with ends of lines as they are kept."""
        return (super().to_python(value) or "").replace("\r\n", "\n")


class CommentForm(forms.Form):
    """What somebody tells the managers about a question."""

    comment = WordsField()
