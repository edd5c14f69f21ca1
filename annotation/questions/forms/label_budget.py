"""The form of the annotation budget."""

from typing import ClassVar

from django.utils.translation import gettext_lazy as _

from annotation.choices.answer_budget import AnswerBudget
from annotation.questions.forms.declared import DeclaredForm
from privacy.choices import Choice


class LabelBudgetForm(DeclaredForm):
    """How many answers may be asked for, and what they cost."""

    choice: ClassVar[type[Choice]] = AnswerBudget
    # How many a secret block or a hidden window asks is secret, and stopping at a limit would tell.
    closed_in_secret = ("labels_limit", "money_limit")
    why_closed = _("Not where the choice is secret: stopping would tell how many were asked.")

    def clean_currency(self) -> str:
        """Take small letters for capitals."""
        return str(self.cleaned_data["currency"]).upper()
