"""The form that finds lines of the statement."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.statement.lines import ABOUT, WantedLines
from annotation.statement.words import STATES
from privacy.models import BudgetAccount

ANY = [("", _("all"))]
LIMITS = ("grant", "limit_change")


class DateInput(forms.DateInput):
    """A browser's own date field, which takes and gives dates in one form whatever the language."""

    input_type = "date"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%d")


class StatementForm(forms.Form):
    """Which lines are wanted; nothing filled in wants all."""

    account = forms.TypedChoiceField(required=False, coerce=int, empty_value=None, label=_("Account"))
    about = forms.ChoiceField(required=False, choices=[*ANY, *ABOUT.items()], label=_("What"))
    state = forms.ChoiceField(
        required=False,
        choices=[*ANY, *((name, words) for name, words in STATES.items() if name not in LIMITS)],
        label=_("State"),
    )
    who = forms.CharField(required=False, max_length=150, label=_("Who"))
    since = forms.DateField(required=False, widget=DateInput(), label=_("From"))
    until = forms.DateField(required=False, widget=DateInput(), label=_("Until"))
    entry = forms.IntegerField(required=False, min_value=1, max_value=2**62, label=_("Number"))

    def __init__(self, data: Any, *, accounts: Sequence[BudgetAccount], titles: dict[int, str]) -> None:
        super().__init__(data)
        self.accounts = {account.pk: account for account in accounts}
        field = self.fields["account"]
        assert isinstance(field, forms.TypedChoiceField)
        field.choices = [*ANY, *titles.items()]

    def wanted(self) -> WantedLines:
        """Return what to look for; of a form with errors, what is right in it."""
        found = {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        account = found.pop("account", None)
        return WantedLines(account=self.accounts.get(account), **found) if account else WantedLines(**found)
