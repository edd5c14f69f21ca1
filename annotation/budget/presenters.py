"""Budgets of a project for its pages: accounts and promises."""

from dataclasses import dataclass, replace

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.budget.lines import Line, newest_lines
from annotation.budget.spending import SpendingTable, spending_tables
from annotation.budget.words import delta_words, epsilon_words, guess_words
from annotation.models import Arrival, Dataset, DatasetState, Oracle, PrivacyUnit, Project
from privacy.ledger.models import AccountAdjacency, AccountUnit, BudgetAccount
from privacy.ledger.selectors import (
    Guarantee,
    answers_paid,
    guarantee,
    guarantees,
    has_numerical_epsilon,
    known_numerical_epsilon,
    numerical_epsilon,
)

# The page of the statement has the others.
STATEMENT_LINES = 5


def statement_accounts(project: Project) -> QuerySet[BudgetAccount]:
    """Return the pool's account, in a crowd project the one of the answers, and that of a private start."""
    own = [account for account in (project.pool_account_id, project.labels_account_id) if account]
    start = start_account(project)
    return BudgetAccount.objects.filter(pk__in=own + ([start.pk] if start else [])).order_by("pk")


def start_accounts() -> dict[int, int]:
    starts = Dataset.objects.filter(account__isnull=False).exclude(state=DatasetState.REFUSED)
    return dict(starts.values_list("project", "account"))


def start_account(project: Project) -> BudgetAccount | None:
    starts = BudgetAccount.objects.filter(started_by__project=project)
    return starts.exclude(started_by__state=DatasetState.REFUSED).first()


def ledger_facts(project: Project) -> tuple[object, ...]:
    """Return what moves the numbers of a project's accounts: how long a chain is, its limits, and what a card warns of.

    No digest of entries and no number of a row: what a page carries of them has to follow from what it shows.
    """
    stands = [now for _pk, now in sorted(guarantees(statement_accounts(project)).items())]
    return (*((now.sequence, now.epsilon_limit, now.delta_limit) for now in stands), open_answers_words(project))


class Metered:
    __slots__ = ()
    guarantee: Guarantee
    all_paid: bool

    @property
    def percent_spent(self) -> float:
        return self._percent(self.guarantee.epsilon_spent)

    @property
    def percent_settled(self) -> float:
        return self._percent(self.guarantee.epsilon_spent - self.guarantee.epsilon_reserved)

    @property
    def is_full(self) -> bool:
        return self.percent_spent > 99 and not self.all_paid

    def _percent(self, part: float) -> float:
        limit = self.guarantee.epsilon_limit
        return min(100.0, 100.0 * part / limit) if limit else 100.0


@dataclass(frozen=True, slots=True)
class BudgetSheet(Metered):
    account: BudgetAccount
    title: str
    promise: str
    small_print: str
    guarantee: Guarantee
    lines: tuple[Line, ...]
    tables: tuple[SpendingTable, ...] = ()
    numerical_epsilon: float | None = None
    can_compose: bool = False
    warning: str = ""
    all_paid: bool = False


def budget_sheets(project: Project) -> list[BudgetSheet]:
    return [_sheet(project, account) for account in statement_accounts(project)]


def detailed_sheets(project: Project, *, compose: bool) -> list[BudgetSheet]:
    """Return the sheets with what the budget went to; with `compose` the numerical accountant is asked, for seconds."""
    return [_detailed(sheet, compose=compose) for sheet in budget_sheets(project)]


def _detailed(sheet: BudgetSheet, *, compose: bool) -> BudgetSheet:
    account, now = sheet.account, sheet.guarantee
    known = numerical_epsilon(account, now) if compose else known_numerical_epsilon(now)
    return replace(
        sheet,
        tables=spending_tables(account),
        numerical_epsilon=known,
        can_compose=known is None and not compose and has_numerical_epsilon(account),
    )


def _sheet(project: Project, account: BudgetAccount) -> BudgetSheet:
    is_pool = account.pk == project.pool_account_id
    now = guarantee(account)
    return BudgetSheet(
        account=account,
        title=account_title(project, account),
        promise=_start_promise(now) if _is_start(project, account) else _promise(project, now, is_pool=is_pool),
        small_print=_("Unit: %(unit)s. Neighbours: %(adjacency)s. Filter: %(filter)s.")
        % {
            "unit": account.get_unit_display(),
            "adjacency": account.get_adjacency_display(),
            "filter": account.get_filter_display(),
        },
        guarantee=now,
        lines=newest_lines(account, STATEMENT_LINES),
        warning=open_answers_words(project) if is_pool else "",
        all_paid=bool(answers_paid([account.pk])),
    )


def _is_start(project: Project, account: BudgetAccount) -> bool:
    return account.pk not in (project.pool_account_id, project.labels_account_id)


def account_title(project: Project, account: BudgetAccount) -> str:
    if _is_start(project, account):
        return _("Private start")
    return _("Pool account") if account.pk == project.pool_account_id else _("Answers account")


def _start_promise(now: Guarantee) -> str:
    return f"{_('Each private example is protected from anyone with a model.')} {_amounts(now)}"


def _amounts(now: Guarantee) -> str:
    guessed = guess_words(now.epsilon_limit, now.delta_limit)
    return f"ε {epsilon_words(now.epsilon_limit)}, δ {delta_words(now.delta_limit)}. {guessed}"


def _promise(project: Project, now: Guarantee, *, is_pool: bool) -> str:
    if not is_pool:
        return _answers_promise(now)
    if project.oracle == Oracle.CROWD and project.privacy_unit == PrivacyUnit.CONTRIBUTOR:
        sentence = _("Each contributor is protected from annotators and anyone with a model.")
    elif project.oracle == Oracle.CROWD:
        sentence = _(
            "Each record is protected from annotators and anyone with a model; all records of one person together "
            "are not."
        )
    elif project.arrival == Arrival.STREAM:
        sentence = _(
            "Each record is protected from anyone with a model or with the times of questions. Annotators and "
            "managers see it."
        )
    else:
        sentence = _("Each record is protected from anyone with a model. Annotators and managers see it.")
    return f"{sentence} {_amounts(now)}"


def open_answers_words(project: Project) -> str:
    if project.oracle != Oracle.CROWD or project.labels_account_id is not None:
        return ""
    return _("Answers are declared public and not protected.")


def _answers_promise(now: Guarantee) -> str:
    if now.adjacency == AccountAdjacency.NULL and now.unit != AccountUnit.ANNOTATOR:
        # Opened before accounts of answers had neighbours of their own; terms never change.
        return _(
            "Protects whether an answer was given (ε %(epsilon)s) and which one (ε %(twice)s) from anyone with a "
            "model, one answer at a time."
        ) % {"epsilon": epsilon_words(now.epsilon_limit), "twice": epsilon_words(2 * now.epsilon_limit)}
    if now.unit == AccountUnit.ANNOTATOR:
        sentence = _("All answers of one annotator together are protected from anyone with a model.")
    else:
        sentence = _(
            "Each single answer is protected from anyone with a model; several answers of one person together are not."
        )
    return f"{sentence} ε {epsilon_words(now.epsilon_limit)}."
