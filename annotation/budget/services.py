"""The statement as one JSON document that an auditor checks without this site (schema: `docs/statement.md`)."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q

from annotation.budget import presenters
from annotation.errors import LimitRequestRefused
from annotation.models import Dataset, DatasetRole, DatasetState, Oracle, PoolPart, PoolSource, Project, Record
from annotation.models.limits import BudgetManager
from privacy.accounting.events import event_from_json
from privacy.errors import UnsoundCombination
from privacy.ledger import populations
from privacy.ledger.audit import audit_accounts
from privacy.ledger.auditor.account import Verdict
from privacy.ledger.auditor.chain import EPOCH, HASHED_FIELDS
from privacy.ledger.auditor.statement import FORMAT, signature_of
from privacy.ledger.checkpoints import checkpoint_at, site_key
from privacy.ledger.counter import site_counter
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.moments import whole_second
from privacy.wording import as_message

CHUNK = 2000
LIMITS = ("epsilon_limit_nano", "delta_limit_atto", "delta_sum_limit_atto", "rho_limit_nano")


def verdicts(accounts: Sequence[BudgetAccount]) -> list[Verdict]:
    """Compute every cost, total, hash and settlement of these accounts again, as `manage.py audit_ledger` does."""
    # The counter first: the ledger may grow meanwhile.
    marks = site_counter().marks()
    return [verdict for account in accounts for verdict in audit_accounts(scope=account.scope, marks=marks)]


def statement_json(owner: Project | BudgetAccount, accounts: Sequence[BudgetAccount]) -> Iterator[str]:
    digest = hashlib.sha256()
    for piece in _pieces(owner, accounts):
        digest.update(piece.encode())
        yield piece
    yield signature_of(digest.hexdigest(), site_key()).decode()


def _pieces(owner: Project | BudgetAccount, accounts: Sequence[BudgetAccount]) -> Iterator[str]:
    kind = "project" if isinstance(owner, Project) else "population"
    head = {"format": FORMAT, kind: owner.slug, "made_at": datetime.now(UTC).isoformat()}
    if isinstance(owner, Project) and owner.oracle == Oracle.CROWD:
        # Without an account of their own, answers were declared not to be secret.
        head["answers"] = "protected" if owner.labels_account_id is not None else "not secret"
    yield json.dumps(head)[:-1] + ', "accounts": ['
    for place, account in enumerate(accounts):
        (verdict,) = verdicts([account])
        yield (", " if place else "") + json.dumps(_account(account, verdict), ensure_ascii=False)[:-1]
        yield ', "entries": ['
        yield from _entries(account, verdict.entries)
        yield "]}"
    yield "]"


def _account(account: BudgetAccount, verdict: Verdict) -> dict[str, Any]:
    return {
        "scope": account.scope,
        "label": account.plain_label,
        "unit": account.unit,
        "adjacency": account.adjacency,
        "filter": account.filter,
        "opened_at": whole_second(account.created_at).isoformat(),
        "limits": _limits(account, verdict.entries),
        "chain_head": verdict.chain_head,
        "checkpoint": checkpoint_at(account, verdict.entries),
        "verdict": {"sound": not verdict.differing} | asdict(verdict),
    }


def _limits(account: BudgetAccount, last: int) -> dict[str, Any]:
    grants = LedgerEntry.objects.filter(
        account=account, sequence__lte=last, kind__in=(EntryKind.GRANT, EntryKind.LIMIT_CHANGE)
    )
    newest = grants.order_by("-sequence").first()
    return {name: None if newest is None else newest.event.get(name) for name in LIMITS}


def _entries(account: BudgetAccount, last: int) -> Iterator[str]:
    rows = LedgerEntry.objects.filter(account=account, sequence__lte=last).order_by("sequence")
    for place, row in enumerate(rows.values(*HASHED_FIELDS, "hash").iterator(chunk_size=CHUNK)):
        yield (",\n" if place else "\n") + json.dumps(_entry(row), ensure_ascii=False)


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    moment = row["created_at"]
    key = row["idempotency_key"]
    return row | {
        # As the chain covers it, to the microsecond; the database writes whole seconds.
        "created_at": (moment - EPOCH) // timedelta(microseconds=1),
        "idempotency_key": None if key is None else str(key),
        "when": moment.astimezone(UTC).isoformat(),
        "mechanism_in_words": _words(row),
    }


def _words(row: dict[str, Any]) -> str:
    if row["kind"] not in (EntryKind.RESERVE, EntryKind.POST_PROCESSING):
        return ""
    try:
        return event_from_json(json.loads(row["event_json"])).summary()
    except ValueError:
        # The verdict says so; the document shows what is stored.
        return ""


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
    if second.pk == owner.pk or not second.is_active:
        raise LimitRequestRefused("Name another active user as the second manager.")
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
    if PoolPart.objects.filter(dataset__project=project, named=True).exists() or _has_tables(project):
        raise UnsoundCombination(
            as_message(
                "{name} keeps uploads as files, where records per person cannot be counted; add it before its "
                "first upload",
                name=project.name,
            )
        )
    if names_more_than(project, records_per_person):
        raise UnsoundCombination(
            as_message(
                "{name} has a person in more records than the declared {number}",
                name=project.name,
                number=records_per_person,
            )
        )


def _has_tables(project: Project) -> bool:
    return PoolSource.objects.filter(dataset__project=project).exclude(dataset__state=DatasetState.REFUSED).exists()
