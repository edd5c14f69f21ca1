"""Forms of studies on a crowd platform: the account, a new study, a decision, bonuses."""

import csv
import io
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms
from django.utils.translation import gettext as say_now
from django.utils.translation import gettext_lazy as _

from addons.prolific.costs import in_cents
from addons.prolific.models import REJECTION_REASONS, VerdictKind
from addons.prolific.services.accounts import LETTERS_OF_TOKENS
from addons.prolific.services.bonuses import MOST_LINES
from addons.prolific.services.studies import LEAST_MESSAGE, MOST_DAYS, MOST_MESSAGE, MOST_MINUTES, MOST_PAY, MOST_PLACES


class AccountForm(forms.Form):
    token = forms.RegexField(
        LETTERS_OF_TOKENS,
        max_length=400,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        label=_("API token"),
        help_text=_("From Prolific's settings; stored sealed, never shown again."),
    )
    fee_percent = forms.DecimalField(
        min_value=0,
        max_value=100,
        max_digits=5,
        decimal_places=2,
        label=_("Fee in percent"),
        help_text=_("Added by Prolific to each pay and bonus, with taxes."),
    )


class StudyForm(forms.Form):
    name = forms.CharField(
        max_length=120, label=_("Name"), help_text=_("Shown to participants; include no record text.")
    )
    description = forms.CharField(
        max_length=3000,
        widget=forms.Textarea(attrs={"rows": 4}),
        label=_("Description"),
        help_text=_("Shown to participants; include no record text."),
    )
    places = forms.IntegerField(min_value=1, max_value=MOST_PLACES, label=_("Places"))
    reward = forms.DecimalField(
        min_value=Decimal("0.01"), max_value=Decimal(MOST_PAY), decimal_places=2, label=_("Pay of a place")
    )
    minutes = forms.IntegerField(
        min_value=1,
        max_value=MOST_MINUTES,
        label=_("Minutes"),
        help_text=_("Shown to participants; include no record text."),
    )
    answers_wanted = forms.IntegerField(
        min_value=1, max_value=MOST_PLACES, initial=20, label=_("Answers until the completion code is shown")
    )
    days = forms.IntegerField(min_value=1, max_value=MOST_DAYS, initial=14, label=_("Days until it ends"))
    signed = forms.BooleanField(
        required=False,
        label=_("Only who Prolific signs for"),
        help_text=_("Requires Prolific's secured address, against invented ids."),
    )

    def values(self) -> dict[str, Any]:
        cleaned = dict(self.cleaned_data)
        cleaned["reward_cents"] = in_cents(cleaned.pop("reward"))
        return cleaned | {"lifetime": timedelta(days=cleaned.pop("days"))}


class VerdictForm(forms.Form):
    submission = forms.IntegerField(min_value=1, widget=forms.Select, label=_("Participation"))
    kind = forms.ChoiceField(
        choices=[(VerdictKind.RETURN, _("ask to return it")), (VerdictKind.REJECT, _("reject"))], label=_("Decision")
    )
    category = forms.ChoiceField(
        choices=[("", _("Choose")), *REJECTION_REASONS.items()],
        required=False,
        label=_("Reason"),
        help_text=_("Only to reject."),
    )
    message = forms.CharField(
        max_length=MOST_MESSAGE,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=_("Message"),
        help_text=_("Shown to the participant; at least 100 letters to reject, no record text."),
    )

    def __init__(self, *args: Any, open_ones: list[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["submission"].widget.choices = open_ones
        self.known = {number for number, _name in open_ones}

    def clean_submission(self) -> int:
        chosen: int = self.cleaned_data["submission"]
        if chosen not in self.known:
            raise forms.ValidationError(_("This participation has already been decided."))
        return chosen

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("kind") == VerdictKind.REJECT:
            if not cleaned.get("category"):
                self.add_error("category", _("Choose a reason that Prolific knows."))
            if len(" ".join(cleaned.get("message", "").split())) < LEAST_MESSAGE:
                self.add_error("message", _("To reject, write at least 100 letters."))
        return cleaned


class BonusForm(forms.Form):
    key = forms.UUIDField(widget=forms.HiddenInput)
    amounts = forms.CharField(
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        label=_("Bonuses"),
        help_text=_("One per line: participant-1a2b,1.50"),
    )

    def clean_amounts(self) -> dict[str, int]:
        """Read names and amounts; the first line may be a heading."""
        found: dict[str, int] = {}
        lines = [row for row in csv.reader(io.StringIO(self.cleaned_data["amounts"])) if any(map(str.strip, row))]
        for number, row in enumerate(lines, start=1):
            cents = _cents(row)
            if cents is None and number == 1 and len(lines) > 1:
                continue
            name = row[0].strip().lstrip("'")
            if cents is None:
                raise forms.ValidationError(
                    say_now("Line %(number)d must be a name, a comma and an amount above 0 with at most two decimals.")
                    % {"number": number}
                )
            if name in found:
                raise forms.ValidationError(say_now("%(name)s is listed twice.") % {"name": name})
            found[name] = cents
        if not 1 <= len(found) <= MOST_LINES:
            raise forms.ValidationError(say_now("Give 1 to {most:,} participants a bonus.").format(most=MOST_LINES))
        return found


def _cents(row: list[str]) -> int | None:
    if len(row) != 2 or not row[0].strip():
        return None
    try:
        amount = Decimal(row[1].strip())
        return in_cents(amount) if 0 < amount <= MOST_PAY else None
    except (InvalidOperation, ValueError):
        return None
