"""The form of the annotation budget."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import Project


class LabelBudgetForm(forms.Form):
    """How many answers may be asked for, and what they cost."""

    labels_limit = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        label=_("Answers at most"),
        help_text=_("Of all people together."),
    )
    price_per_label = forms.DecimalField(
        required=False, max_digits=10, decimal_places=4, min_value=Decimal("0.0001"), label=_("Price of an answer")
    )
    money_limit = forms.DecimalField(
        required=False, max_digits=12, decimal_places=2, min_value=0, label=_("Money at most")
    )
    currency = forms.RegexField(
        r"^[A-Za-z]{3}$",
        required=False,
        label=_("Currency"),
        help_text=_("Three letters, like NOK or EUR."),
        error_messages={"invalid": _("Three letters, like NOK or EUR.")},
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {name: getattr(project, name) for name in self.base_fields})
        super().__init__(*args, **kwargs)
        if project.hides_selection:
            # How many a secret block or a hidden window asks is secret, and stopping at a limit would tell.
            for name in ("labels_limit", "money_limit"):
                self.fields[name].disabled = True
                self.fields[name].help_text = _(
                    "Not where the choice is secret: stopping would tell how many were asked."
                )

    def clean_currency(self) -> str:
        """Take small letters for capitals."""
        return str(self.cleaned_data["currency"]).upper()

    def clean(self) -> dict[str, Any]:
        """Ask for a price where money is limited."""
        if self.cleaned_data.get("money_limit") is not None and not self.cleaned_data.get("price_per_label"):
            self.add_error("price_per_label", _("A limit in money needs the price of an answer."))
        return self.cleaned_data
