"""Spending of a population by its projects, and what the common limit still pays for."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.budget import presenters
from annotation.budget.lines import Line, newest_lines
from annotation.budget.words import delta_words, epsilon_left_words, epsilon_words, guess_words
from annotation.models import Project
from annotation.models.limits import LimitRequest, RequestState
from annotation.people.services import limits
from annotation.wording import localized
from privacy.accounting.cost import epsilon_limit_to_nano, nano_spendable, nano_spent
from privacy.accounting.events import event_from_json
from privacy.ledger.models import AccountAdjacency, BudgetAccount, EntryKind, LedgerEntry
from privacy.ledger.populations import rule_of_other_key, rule_without_conversion
from privacy.ledger.selectors import Guarantee, guarantee, payments_left, quota_of, spending_by_subject
from privacy.ledger.sharing import repeated_account

LINES = 10


@dataclass(frozen=True, slots=True)
class Share:
    project: str
    title: str
    records_per_person: int
    epsilon_limit: float
    epsilon_spent: float
    quota: float
    taken: float
    forecast: str


@dataclass(frozen=True, slots=True)
class PopulationSheet(presenters.Metered):
    population: BudgetAccount
    guarantee: Guarantee
    promise: str
    shares: tuple[Share, ...]
    lines: tuple[Line, ...]
    all_paid: bool = False


def populations_of(user: User | AnonymousUser | Any) -> QuerySet[BudgetAccount]:
    if not isinstance(user, User):
        return BudgetAccount.objects.none()
    return BudgetAccount.objects.filter(managers__user=user).order_by("scope", "pk")


def managed_population(user: User | AnonymousUser | Any, slug: str) -> BudgetAccount:
    found: BudgetAccount = get_object_or_404(populations_of(user), scope=f"population:{slug}")
    return found


@dataclass(frozen=True, slots=True)
class SharingTerms:
    unit: str
    filter: str
    epsilon_limit: float

    @property
    def declares_number(self) -> bool:
        return self.unit != "contributor"


def rule_against(population: BudgetAccount, terms: SharingTerms, records_per_person: int | None) -> str:
    if broken := rule_of_other_key(population):
        return broken
    account = BudgetAccount(unit=terms.unit, filter=terms.filter, adjacency=AccountAdjacency.NULL)
    number = records_per_person if terms.declares_number else 1
    return rule_without_conversion(account, population, number)


def membership_words(population: BudgetAccount | None, terms: SharingTerms, records_per_person: int | None) -> str:
    if population is None:
        return outside_words()
    now = guarantee(population)
    number = records_per_person if terms.declares_number and records_per_person else 1
    quota = nano_spendable(epsilon_limit_to_nano(Decimal(repr(terms.epsilon_limit))) * number)
    return _(
        "Population %(name)s: the quota is %(quota)s of the common %(limit)s ε, with %(left)s left. Joining "
        "cannot be undone."
    ) % {
        "name": population.plain_label,
        "quota": epsilon_words(quota),
        "limit": epsilon_words(now.epsilon_limit),
        "left": epsilon_left_words(now.epsilon_left),
    }


def project_limit_words(project: Project) -> str:
    quota = quota_of(project.pool_account)
    if quota is None:
        return outside_words()
    now = guarantee(quota.population)
    return _("Population %(name)s: its projects have spent %(spent)s of %(limit)s ε together.") % {
        "name": quota.population.plain_label,
        "spent": epsilon_words(now.epsilon_spent),
        "limit": epsilon_words(now.epsilon_limit),
    }


def outside_words() -> str:
    return _("No common limit: people with records in other projects lose the sum of all budgets.")


def left_words(population: BudgetAccount) -> str:
    now = guarantee(population)
    return _("%(name)s: %(left)s of %(limit)s ε left") % {
        "name": population.plain_label,
        "left": epsilon_left_words(now.epsilon_left),
        "limit": epsilon_words(now.epsilon_limit),
    }


def projects_outside(projects: QuerySet[Project]) -> QuerySet[Project]:
    return projects.filter(pool_account__parent=None).order_by("name")


def sheet_of(population: BudgetAccount) -> PopulationSheet:
    now = guarantee(population)
    return PopulationSheet(
        population=population,
        guarantee=now,
        promise=_promise(now),
        shares=tuple(_shares(population)),
        lines=newest_lines(population, LINES),
    )


def requests_of(population: BudgetAccount) -> QuerySet[LimitRequest]:
    waiting = limits.requests_of(population).filter(state=RequestState.OPEN)
    return waiting.select_related("requested_by", "appointee").order_by("-pk")


def _shares(population: BudgetAccount) -> list[Share]:
    taken = {spending.name: spending for spending in spending_by_subject(population)}
    pure = population.filter == "pure"
    found = []
    projects = _projects_by_account(population)
    for quota in population.quotas.order_by("pk"):
        project = projects.get(quota.pk)
        spending = taken.get(repeated_account(quota))
        own = guarantee(quota)
        amount = 0 if spending is None else spending.epsilon_nano if pure else spending.rho_nano
        found.append(
            Share(
                project=project.slug if project else quota.scope,
                title=localized(quota.label),
                records_per_person=quota.records_per_person,
                epsilon_limit=own.epsilon_limit,
                epsilon_spent=own.epsilon_spent,
                quota=nano_spendable(quota.epsilon_limit_nano * quota.records_per_person),
                taken=nano_spent(amount),
                forecast=_forecast(quota, project),
            )
        )
    return found


def _projects_by_account(population: BudgetAccount) -> dict[int, Project]:
    ids = set(population.quotas.values_list("pk", flat=True))
    found: dict[int, Project] = {}
    for project in Project.objects.filter(pool_account__in=ids):
        for account in presenters.statement_accounts(project):
            if account.pk in ids:
                found[account.pk] = project
    return found


def _forecast(quota: BudgetAccount, project: Project | None) -> str:
    reservations = LedgerEntry.objects.filter(account=quota, kind=EntryKind.RESERVE).order_by("-sequence")
    last = reservations.filter(subject__startswith="release:").first() or reservations.first()
    times = None if last is None else payments_left(quota, event_from_json(last.event))
    if times is None:
        return ""
    name = project.name if project else localized(quota.label)
    said = ngettext(
        "%(name)s can still buy %(times)d operation like its last before its limit or the population's is spent.",
        "%(name)s can still buy %(times)d operations like its last before its limit or the population's is spent.",
        times,
    )
    return said % {"name": name, "times": times}


def _promise(now: Guarantee) -> str:
    limits = {"epsilon": epsilon_words(now.epsilon_limit), "delta": delta_words(now.delta_limit)}
    if now.unit == "contributor":
        sentence = _("Protects whether a person is in any of these projects: ε %(epsilon)s, δ %(delta)s.")
    else:
        sentence = _("Protects whether a record is in any of these projects: ε %(epsilon)s, δ %(delta)s.")
    return f"{sentence % limits} {guess_words(now.epsilon_limit, now.delta_limit)}"
