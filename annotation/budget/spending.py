"""Tables of what an account's budget went to, and its statement as a spreadsheet."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.budget.words import delta_words, epsilon_words, mechanism_words, subject_words, upload_names
from dpal.reading.formulas import protected
from privacy.accounting.cost import atto_spent, nano_spent
from privacy.errors import Spending
from privacy.ledger.models import BudgetAccount, Filter
from privacy.ledger.selectors import spending_by_mechanism, spending_by_person, spending_by_subject, statement

CHUNK = 2000
COLUMNS = (
    "account",
    "sequence",
    "created_at",
    "kind",
    "state",
    "settled_at",
    "mechanism",
    "subject",
    "purpose",
    "reason",
    "actor",
    "descends_from",
    "epsilon_nano",
    "delta_atto",
    "rho_nano",
    "mi_nano",
    "event_json",
    "settled_digest",
    "hash",
)


@dataclass(frozen=True, slots=True)
class SpendingLine:
    """One row of a table: `amount` is in the currency the account admits by."""

    name: str
    operations: int
    amount: str
    delta: str
    percent: float


@dataclass(frozen=True, slots=True)
class SpendingTable:
    title: str
    currency: str
    lines: tuple[SpendingLine, ...]


def spending_tables(account: BudgetAccount) -> tuple[SpendingTable, ...]:
    by_mechanism = spending_by_mechanism(account)
    if not by_mechanism:
        return ()
    by_subject = spending_by_subject(account)
    uploads = upload_names({spending.name for spending in by_subject})
    return (
        _table(account, _("Mechanism"), by_mechanism, mechanism_words),
        _table(account, _("Round or release"), by_subject, lambda name: subject_words(name, uploads)),
        _table(account, _("Person"), spending_by_person(account), lambda name: name or _("automatic")),
    )


def spending_amounts(account: BudgetAccount) -> Iterator[tuple[str, str, int, float, float, float, float]]:
    """Yield what was spent by mechanism, by round or release and by person: names, operations, ε, ρ, δ and percent."""
    by_subject = spending_by_subject(account)
    uploads = upload_names({spending.name for spending in by_subject})
    parts: tuple[tuple[str, list[Spending], Callable[[str], str]], ...] = (
        (_("Mechanism"), spending_by_mechanism(account), mechanism_words),
        (_("Round or release"), by_subject, lambda name: subject_words(name, uploads)),
        (_("Person"), spending_by_person(account), lambda name: name or _("automatic")),
    )
    for title, spendings, words in parts:
        for spent in spendings:
            amounts = (nano_spent(spent.epsilon_nano), nano_spent(spent.rho_nano), atto_spent(spent.delta_atto))
            yield (title, words(spent.name), spent.operations, *amounts, 100 * spent.share)


def statement_csv(accounts: Iterable[BudgetAccount]) -> Iterator[str]:
    return table_csv(
        COLUMNS,
        (
            [account.plain_label, *line]
            for account in accounts
            for line in statement(account).order_by("sequence").values_list(*COLUMNS[1:]).iterator(chunk_size=CHUNK)
        ),
    )


def table_csv(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Return a table line by line; no cell runs as a formula."""
    writer = csv.writer(Echo())
    yield writer.writerow(heading)
    for row in rows:
        yield writer.writerow([safe_cell(value) for value in row])


def safe_cell(value: Any) -> str:
    """Return the text of a cell; what a spreadsheet could run begins with an apostrophe, which readers take away."""
    if value is None:
        return ""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return protected(value) if isinstance(value, str) else str(value)


class Echo:
    def write(self, text: str) -> str:
        return text


def _table(account: BudgetAccount, title: str, spendings: list[Spending], words: Any) -> SpendingTable:
    pure = account.filter == Filter.PURE
    lines = tuple(
        SpendingLine(
            name=words(spending.name),
            operations=spending.operations,
            # rho is small where epsilon is not: three digits after the point would all be zero.
            amount=epsilon_words(nano_spent(spending.epsilon_nano))
            if pure
            else delta_words(nano_spent(spending.rho_nano)),
            delta=delta_words(atto_spent(spending.delta_atto)),
            percent=100 * spending.share,
        )
        for spending in spendings
    )
    return SpendingTable(title, "ε" if pure else "ρ", lines)
