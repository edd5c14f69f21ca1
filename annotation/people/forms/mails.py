"""Form of a person's choice of mail."""

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class MailForm(forms.Form):
    """Mail on or off, and its language."""

    wanted = forms.BooleanField(required=False, label=_("Send me mail about my projects"))
    language = forms.ChoiceField(choices=settings.LANGUAGES, label=_("Language of the mails"))
