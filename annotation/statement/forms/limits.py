"""Forms of limits: a new one with its reason, and giving up the second manager."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.cards import ChoiceCards
from annotation.statement.budget_levels import LEVEL_CHOICES, LEVELS

OWN_LIMIT = ""


class LimitForm(forms.Form):
    """A new limit with its reason, which becomes an entry."""

    level = forms.ChoiceField(
        choices=[(OWN_LIMIT, _("the numbers below")), *LEVEL_CHOICES],
        required=False,
        widget=ChoiceCards,
        label=_("Named limit"),
        help_text=_("A named limit replaces the epsilon below."),
    )
    epsilon_limit = forms.FloatField(min_value=0, label=_("Epsilon limit"))
    delta_limit = forms.FloatField(min_value=0, max_value=1, label=_("Delta limit"))
    reason = forms.CharField(
        max_length=300, label=_("Reason"), help_text=_("Stays in the ledger for good, with your name.")
    )

    def limits(self) -> dict[str, Any]:
        """Return the limits and the reason; a named limit counts before a number."""
        chosen = dict(self.cleaned_data)
        wanted = chosen.pop("level")
        named = next((level for level in LEVELS if level.key == wanted), None)
        return chosen | ({"epsilon_limit": named.epsilon} if named else {})


class AloneForm(forms.Form):
    """Why one manager should decide alone again."""

    reason = forms.CharField(max_length=300, label=_("Reason"))
