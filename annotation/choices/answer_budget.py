"""Limits on the number of answers and their cost in money."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final

from annotation.choices.secrecy import hides_selection
from annotation.choices.selections import asks_in_secret
from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import gettext_noop as _

MOST_OF_A_SAMPLE: Final = _("How many a secret sample asks is secret, and stopping at a limit would tell it.")
MOST_LABELS_LOST: Final = _("Stopping at a limit would tell how many records a hidden window selected.")
THREE_LETTERS: Final = _("Three letters, like NOK or EUR.")


@dataclass(frozen=True)
class AnswerBudget(FreeChoice):
    """The most answers, the price of one and the most money; none of it is a privacy budget."""

    kind: ClassVar[Kind] = Kind.BUDGET
    name: ClassVar[str] = "answer_budget"
    label: ClassVar[str] = _("what answers may cost")
    stays: ClassVar[bool] = False

    labels_limit: int | None = parameter(
        None, at_least=0, at_most=2**31 - 1, label=_("Answers at most"), help=_("Of all people together.")
    )
    price_per_label: Decimal | None = parameter(
        None,
        above=0,
        at_most=999_999,
        decimals=4,
        label=_("Price of an answer"),
        help=_("What accepted answers earn, and what a limit in money counts with."),
    )
    money_limit: Decimal | None = parameter(
        None,
        at_least=0,
        at_most=9_999_999_999,
        decimals=2,
        label=_("Money at most"),
        help=_("Nothing further is asked that would cost more; it needs a price."),
    )
    currency: str = parameter("", pattern="[A-Za-z]{3}", label=_("Currency"), help=THREE_LETTERS, rule=THREE_LETTERS)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        broken: dict[str, str] = {}
        if hides_selection(settings) and not (self.labels_limit is None and self.money_limit is None):
            broken["labels_limit"] = MOST_OF_A_SAMPLE if asks_in_secret(settings) else MOST_LABELS_LOST
        if self.money_limit is not None and self.price_per_label is None:
            broken["price_per_label"] = _("A limit in money needs the price of an answer.")
        return broken
