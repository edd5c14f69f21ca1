"""Opening a population and letting a project join it."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q

from annotation.budget import presenters
from annotation.errors import LimitRequestRefused
from annotation.models import Dataset, DatasetRole, DatasetState, PoolPart, PoolSource, Project, Record
from annotation.models.limits import BudgetManager
from privacy.errors import UnsoundCombination
from privacy.ledger import populations
from privacy.ledger.models import BudgetAccount
from privacy.wording import as_message


def open_population(
    *,
    name: str,
    unit: str,
    filter: str,  # noqa: A002  # the field's word
    epsilon_limit: float,
    delta_limit: float,
    owner: User,
    second: User,
) -> BudgetAccount:
    """Open a population with its first two managers, of whom neither raises its limit alone."""
    if second.pk == owner.pk or not second.is_active:
        raise LimitRequestRefused("Name another person as the second manager, who can log in.")
    with transaction.atomic():
        population = populations.open_shared_account(
            name=name, unit=unit, filter=filter, epsilon_limit=epsilon_limit, delta_limit=delta_limit, actor=owner
        )
        for user in (owner, second):
            BudgetManager.objects.create(account=population, user=user)
    return population


def add_project(
    *, population: BudgetAccount, project: Project, records_per_person: int | None, actor: User
) -> list[BudgetAccount]:
    """Let a project belong to a population for good, with what it has spent so far."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if records_per_person is not None and locked.pool_account.unit == "record":
            _refuse_more_than_declared(locked, records_per_person)
        return populations.join_population(
            population=population,
            accounts=[
                account for account in presenters.statement_accounts(locked) if account.pk != locked.labels_account_id
            ],
            records_per_person=records_per_person,
            actor=actor,
        )


def names_more_than(project: Project, number: int, *, with_dataset: Dataset | None = None) -> bool:
    taking_part = Q(dataset__state=DatasetState.READY) | Q(dataset=with_dataset)
    named = Record.objects.filter(
        taking_part, dataset__project=project, dataset__role=DatasetRole.POOL, contributor__isnull=False
    )
    more = named.order_by().values("contributor").annotate(number=Count("pk")).filter(number__gt=number)
    return more.exists()


def _refuse_more_than_declared(project: Project, records_per_person: int) -> None:
    """Hold the declared number against the records that name somebody; only their managers learn the answer."""
    if PoolPart.objects.filter(dataset__project=project, named=True).exists() or _has_tables(project):
        raise UnsoundCombination(
            as_message(
                "{name} holds private uploads as columns in storage, where nobody counts records by person; a project "
                "belongs to such a population before its first upload",
                name=project.name,
            )
        )
    if names_more_than(project, records_per_person):
        raise UnsoundCombination(
            as_message(
                "{name} names a person in more records than the {number} that were declared",
                name=project.name,
                number=records_per_person,
            )
        )


def _has_tables(project: Project) -> bool:
    return PoolSource.objects.filter(dataset__project=project).exclude(dataset__state=DatasetState.REFUSED).exists()
