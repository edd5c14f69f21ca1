"""Opening a population, letting a project join it, and what takes two of its managers."""

from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q

from annotation.budget import presenters
from annotation.errors import LimitRequestRefused
from annotation.models import Dataset, DatasetRole, DatasetState, PoolPart, PoolSource, Project, Record
from annotation.models.populations import PopulationManager, PopulationRequest, PopulationRequestKind
from annotation.people.services import second_manager
from privacy.accounting.units import delta_limit_to_atto, epsilon_limit_to_nano
from privacy.errors import UnsoundCombination
from privacy.ledger import populations
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount, Population, Quota
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
) -> Population:
    """Open a population with its first two managers, of whom neither raises its limit alone."""
    if second.pk == owner.pk or not second.is_active:
        raise LimitRequestRefused("Name another person as the second manager, who can log in.")
    with transaction.atomic():
        population = populations.open_shared_account(
            name=name, unit=unit, filter=filter, epsilon_limit=epsilon_limit, delta_limit=delta_limit, actor=owner
        )
        for user in (owner, second):
            PopulationManager.objects.create(population=population, user=user)
    return population


def add_project(
    *, population: Population, project: Project, records_per_person: int | None, actor: User
) -> list[Quota]:
    """Let a project belong to a population for good, with what it has spent so far.

    Refused where the records name more of one person than was declared.
    """
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


def change_common_limit(
    *, population: Population, epsilon_limit: float, delta_limit: float, reason: str, actor: User
) -> PopulationRequest | None:
    """Lower the common limit at once, or ask another manager for a higher one and return the request."""
    account = BudgetAccount.objects.get(pk=population.account_id)
    epsilon = epsilon_limit_to_nano(Decimal(repr(epsilon_limit)))
    delta = delta_limit_to_atto(Decimal(repr(delta_limit)))
    if epsilon <= account.epsilon_limit_nano and delta <= account.delta_limit_atto:
        _change(population, epsilon, delta, actor=actor, reason=reason)
        return None
    return second_manager.ask_second_manager(
        PopulationRequest,
        population=population,
        kind=PopulationRequestKind.LIMIT,
        epsilon_limit_nano=epsilon,
        delta_limit_atto=delta,
        reason=reason,
        requested_by=actor,
    )


def ask_for_manager(*, population: Population, user: User, reason: str, actor: User) -> PopulationRequest:
    """Ask another manager to agree to a further one."""
    if PopulationManager.objects.filter(population=population, user=user).exists():
        raise LimitRequestRefused("This person manages the population already.")
    return second_manager.ask_second_manager(
        PopulationRequest,
        population=population,
        kind=PopulationRequestKind.MANAGER,
        appointee=user,
        reason=reason,
        requested_by=actor,
    )


def approve_population_request(*, request_id: int, population: Population, actor: User) -> PopulationRequest:
    """Grant a request and make the change it asks for, both or neither."""

    def change(found: PopulationRequest) -> None:
        if found.kind == PopulationRequestKind.MANAGER:
            assert found.appointee is not None
            PopulationManager.objects.create(population=population, user=found.appointee)
        else:
            assert found.epsilon_limit_nano is not None
            assert found.delta_limit_atto is not None
            _change(
                population,
                found.epsilon_limit_nano,
                found.delta_limit_atto,
                actor=found.requested_by,
                reason=found.reason,
                approved_by=found.decided_by,
            )

    return second_manager.approve_request(
        PopulationRequest, request_id=request_id, actor=actor, change=change, population=population
    )


def refuse_population_request(*, request_id: int, population: Population, actor: User) -> PopulationRequest:
    """Refuse a request; who asked for it takes it back by this."""
    return second_manager.refuse_request(PopulationRequest, request_id=request_id, actor=actor, population=population)


def expire_population_requests() -> int:
    """Close what nobody decided on in time, and return how many those were."""
    return second_manager.expire_requests(PopulationRequest)


def names_more_than(project: Project, number: int, *, with_dataset: Dataset | None = None) -> bool:
    """Say whether the private uploads that take part, and one more of them, name a person in more records than that."""
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


def _change(
    population: Population,
    epsilon_limit_nano: int,
    delta_limit_atto: int,
    *,
    actor: User,
    reason: str,
    approved_by: User | None = None,
) -> None:
    ledger.change_account_limits(
        account=BudgetAccount.objects.get(pk=population.account_id),
        epsilon_limit=Decimal(epsilon_limit_nano).scaleb(-9),
        delta_limit=Decimal(delta_limit_atto).scaleb(-18),
        actor=actor,
        reason=reason,
        approved_by=approved_by,
    )
