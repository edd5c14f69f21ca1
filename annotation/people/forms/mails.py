"""Which mails a person gets."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from annotation.models.letters import MailChoice, MailKind


class MailForm(forms.Form):
    """What is told by mail, how often, and in which language."""

    wanted = forms.MultipleChoiceField(
        choices=MailKind.choices, required=False, widget=forms.CheckboxSelectMultiple, label=_("Tell me when")
    )
    often = forms.ChoiceField(
        choices=(("now", _("At once")), ("daily", _("Once a day, in the morning, all in one"))),
        widget=forms.RadioSelect,
        label=_("How often"),
    )
    language = forms.ChoiceField(choices=settings.LANGUAGES, label=_("Language of the mails"))

    def __init__(self, data: Any, *, choice: MailChoice) -> None:
        initial = {
            "wanted": [kind for kind in MailKind.values if kind not in choice.declined],
            "often": "daily" if choice.daily else "now",
            "language": choice.language,
        }
        super().__init__(data, initial=initial)

    def values(self) -> dict[str, Any]:
        """Return what the service takes."""
        wanted = self.cleaned_data["wanted"]
        return {
            "declined": [kind for kind in MailKind.values if kind not in wanted],
            "daily": self.cleaned_data["often"] == "daily",
            "language": self.cleaned_data["language"],
        }
