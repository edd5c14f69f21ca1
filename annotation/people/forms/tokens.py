"""The form of a new API token."""

from datetime import timedelta

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.work.services.tokens import Scope


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(max_length=80, label=_("Name"), help_text=_("Where it will be used."))
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in Scope], widget=forms.CheckboxSelectMultiple, label=_("May do")
    )
    days = forms.IntegerField(min_value=1, max_value=366, initial=90, label=_("Days until it ends"))

    def lifetime(self) -> timedelta:
        """Return how long the token lives."""
        return timedelta(days=self.cleaned_data["days"])
