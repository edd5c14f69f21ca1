"""Accounts and limits that cover a data subject, for whoever holds the site's key of pseudonyms."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from annotation.budget import presenters
from annotation.data.services.forgetting import pseudonym_of
from annotation.data.services.pool_files import uploads_naming
from annotation.data.services.pseudonyms import reference_of
from annotation.data.services.registered import projects_with_tables
from annotation.models import Dataset, DatasetRole, Project, Record
from annotation.models.retention import Forgetting
from privacy.ledger.models import BudgetAccount
from privacy.ledger.populations import refuse_other_key
from privacy.ledger.selectors import guarantee, quota_of


@dataclass(frozen=True, slots=True)
class Cover:
    account: str
    unit: str
    adjacency: str
    filter: str
    epsilon_limit: float
    delta_limit: float
    epsilon_spent: float
    delta_spent: float
    population: str
    records_per_person: int | None


@dataclass(frozen=True, slots=True)
class Held:
    project: str
    forgotten: bool
    accounts: tuple[Cover, ...]


@dataclass(frozen=True, slots=True)
class Common:
    """A limit over several projects: all of them together stay within it for one person."""

    population: str
    unit: str
    filter: str
    epsilon_limit: float
    delta_limit: float
    epsilon_spent: float
    delta_spent: float


@dataclass(frozen=True, slots=True)
class PersonLosses:
    """All losses; `outside` are under no common limit and add up, and owners of `tables` can say who is in them."""

    projects: tuple[Held, ...]
    populations: tuple[Common, ...]
    outside: tuple[str, ...]
    tables: tuple[str, ...]


def who_lost_what(*, name: str) -> PersonLosses:
    contributor = pseudonym_of(name)
    roles = (DatasetRole.POOL, DatasetRole.CHARGED_START)
    theirs = Q(pk__in=Record.objects.filter(contributor=contributor).values("dataset"))
    uploads = Dataset.objects.filter(theirs | Q(pk__in=uploads_naming(contributor)), role__in=roles)
    by_project: dict[int, list[Dataset]] = {}
    for upload in uploads:
        by_project.setdefault(upload.project_id, []).append(upload)
    held, commons, outside = [], {}, []
    for project in Project.objects.order_by("pk").select_related("pool_account"):
        forgotten = _was_forgotten(project, contributor)
        if project.pk not in by_project and not forgotten:
            continue
        accounts = _accounts(project, by_project.get(project.pk, []), forgotten=forgotten)
        covers = []
        for account in accounts:
            quota = quota_of(account)
            covers.append(_cover(account))
            if quota is None:
                outside.append(account.plain_label)
            else:
                refuse_other_key(quota.population)
                slug = quota.population.slug
                commons[slug] = Common(population=slug, **_promised(quota.population))
        held.append(Held(project.slug, project.pk not in by_project, tuple(covers)))
    return PersonLosses(tuple(held), tuple(commons.values()), tuple(outside), projects_with_tables())


def _was_forgotten(project: Project, contributor: bytes) -> bool:
    reference = reference_of(project=project, contributor=contributor)
    return Forgetting.objects.filter(project=project, reference=reference).exists()


def _accounts(project: Project, uploads: list[Dataset], *, forgotten: bool) -> list[BudgetAccount]:
    """Return the accounts whose scope holds the uploads; where records were forgotten, nobody knows which held them."""
    every = [account for account in presenters.statement_accounts(project) if account.pk != project.labels_account_id]
    if forgotten:
        return every
    scopes = {upload.account_id or project.pool_account_id for upload in uploads}
    return [account for account in every if account.pk in scopes]


def _cover(account: BudgetAccount) -> Cover:
    quota = quota_of(account)
    return Cover(
        account=account.plain_label,
        adjacency=account.adjacency,
        population="" if quota is None else quota.population.slug,
        records_per_person=None if quota is None else quota.records_per_person,
        **_promised(account),
    )


def _promised(account: BudgetAccount) -> dict[str, Any]:
    names = ("unit", "filter", "epsilon_limit", "delta_limit", "epsilon_spent", "delta_spent")
    now = guarantee(account)
    return {name: getattr(now, name) for name in names}
