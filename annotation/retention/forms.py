"""How long a project keeps what it holds, as a form."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models.retention import FEWEST_ACTION_DAYS, FEWEST_DAYS, Retention

LONGEST_DAYS = 36_500
KINDS = {
    "records": (
        _("Records"),
        _(
            "Counted from the upload, of a stream from the day a record came. Each becomes an empty slot: content and "
            "answers go, and no later model learns from it."
        ),
    ),
    "answers": (
        _("Answered questions"),
        _(
            "Counted from the last answer. The answers go, and in a project of experts the record behind the question, "
            "too; that somebody answered stays, because it was paid for. Later models no longer learn from them."
        ),
    ),
    "comments": (
        _("Comments and reports"),
        _("Counted from when they are settled; reasons for skipping, from when a question was skipped."),
    ),
    "uploads": (_("Reports about uploads"), _("The list of bad rows of each upload, and its file if one is left.")),
    "actions": (
        _("Log of actions"),
        _("Who did what. At least 90 days, so that nobody wipes away at once what they did."),
    ),
}


class RetentionForm(forms.Form):
    """Days for each kind; empty keeps it until the project is deleted."""

    def __init__(self, data: Any = None, *, retention: Retention) -> None:
        super().__init__(data, initial={f"{kind}_days": getattr(retention, f"{kind}_days") for kind in KINDS})
        for kind, (label, help_text) in KINDS.items():
            self.fields[f"{kind}_days"] = forms.IntegerField(
                required=False,
                min_value=FEWEST_ACTION_DAYS if kind == "actions" else FEWEST_DAYS,
                max_value=LONGEST_DAYS,
                label=_("%(kind)s: days") % {"kind": label},
                help_text=help_text,
            )
