"""The statement as pages show it: one line for each operation, found by what it was for, when, by whom and state."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.budget.words import STATES, reason_words, upload_names, what_words
from annotation.wording import localized
from privacy.accounting.cost import atto_shown, nano_shown
from privacy.ledger.models import SETTLEMENTS, BudgetAccount, EntryKind, LedgerEntry
from privacy.ledger.selectors import statement

LINES_A_PAGE = 50
ABOUT = {
    "rounds": gettext_lazy("choices of questions"),
    "releases": gettext_lazy("trainings"),
    "uploads": gettext_lazy("gates over uploads"),
    "limits": gettext_lazy("limits"),
}
SUBJECTS = {"rounds": "round:", "releases": "release:", "uploads": "dataset:"}


@dataclass(frozen=True, slots=True)
class WantedLines:
    account: BudgetAccount | None = None
    about: str = ""
    state: str = ""
    who: str = ""
    since: date | None = None
    until: date | None = None
    entry: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    account_id: int
    account: str
    sequence: int
    when: datetime
    what: str
    reason: str
    who: str
    descends_from: int | None
    ancestor: str
    epsilon: float | None
    delta: float
    state: str
    settled_at: datetime | None
    hash: str


@dataclass(frozen=True, slots=True)
class LinePage:
    lines: tuple[Line, ...]
    number: int
    has_older: bool


def statement_page(
    accounts: Sequence[BudgetAccount], titles: dict[int, str], wanted: WantedLines, number: int
) -> LinePage:
    first = (number - 1) * LINES_A_PAGE
    found = list(_found(accounts, wanted).select_related("parent")[first : first + LINES_A_PAGE + 1])
    shown = found[:LINES_A_PAGE]
    ancestors = _ancestors(shown)
    uploads = upload_names({entry.subject for entry in (*shown, *ancestors.values())})
    lines = tuple(_line(entry, titles, uploads, ancestors) for entry in shown)
    return LinePage(lines, number, len(found) > LINES_A_PAGE)


def newest_lines(account: BudgetAccount, number: int) -> tuple[Line, ...]:
    entries = list(statement(account)[:number])
    ancestors = _ancestors(entries)
    uploads = upload_names({entry.subject for entry in (*entries, *ancestors.values())})
    return tuple(_line(entry, {}, uploads, ancestors) for entry in entries)


def _found(accounts: Sequence[BudgetAccount], wanted: WantedLines) -> QuerySet[LedgerEntry]:
    chosen = [account for account in accounts if wanted.account is None or account.pk == wanted.account.pk]
    # What the selector adds to a row, the model's type does not know.
    rows: QuerySet[Any] = statement(*chosen)
    if wanted.about == "limits":
        rows = rows.filter(kind__in=(EntryKind.GRANT, EntryKind.LIMIT_CHANGE))
    elif wanted.about in SUBJECTS:
        rows = rows.filter(subject__startswith=SUBJECTS[wanted.about])
    if wanted.state:
        rows = rows.filter(state=wanted.state)
    if wanted.who:
        rows = rows.filter(Q(actor__icontains=wanted.who) | Q(settled_by__icontains=wanted.who))
    if wanted.since:
        rows = rows.filter(created_at__date__gte=wanted.since)
    if wanted.until:
        rows = rows.filter(created_at__date__lte=wanted.until)
    if wanted.entry:
        # A release and its card name what settled an operation, which is no line of its own.
        settled = LedgerEntry.objects.filter(account__in=chosen, kind__in=SETTLEMENTS, sequence=wanted.entry)
        rows = rows.filter(Q(sequence=wanted.entry) | Q(pk__in=settled.values("parent")))
    return rows


def _ancestors(entries: Sequence[LedgerEntry]) -> dict[tuple[int, int], LedgerEntry]:
    wanted = {(entry.account_id, entry.descends_from) for entry in entries if entry.descends_from}  # type: ignore[attr-defined]
    if not wanted:
        return {}
    accounts = {account for account, _number in wanted}
    numbers = {number for _account, number in wanted}
    rows = LedgerEntry.objects.filter(account__in=accounts, sequence__in=numbers).exclude(kind__in=SETTLEMENTS)
    return {(row.account_id, row.sequence): row for row in rows}


def _line(
    entry: LedgerEntry, titles: dict[int, str], uploads: dict[str, str], ancestors: dict[tuple[int, int], LedgerEntry]
) -> Line:
    facts = vars(entry)
    ancestor = ancestors.get((entry.account_id, facts["descends_from"] or 0))
    event = json.loads(entry.event_json)
    reasons = [
        reason_words(kind=entry.kind, reason=entry.reason, event=event),
        localized(facts["settled_reason"] or ""),
    ]
    return Line(
        account_id=entry.account_id,
        account=titles.get(entry.account_id, ""),
        sequence=entry.sequence,
        when=entry.created_at,
        what=_what(entry, uploads),
        reason=" ".join(reason for reason in reasons if reason),
        who=entry.actor or facts["settled_by"] or _("automatic"),
        descends_from=facts["descends_from"],
        ancestor=_what(ancestor, uploads) if ancestor else "",
        epsilon=None if entry.epsilon_nano is None else nano_shown(entry.epsilon_nano),
        delta=atto_shown(entry.delta_atto),
        state=str(STATES[facts["state"]]),
        settled_at=facts["settled_at"],
        hash=entry.hash,
    )


def _what(entry: LedgerEntry, uploads: dict[str, str]) -> str:
    event = json.loads(entry.event_json)
    return what_words(kind=entry.kind, subject=entry.subject, purpose=entry.purpose, event=event, uploads=uploads)
