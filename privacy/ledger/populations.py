"""Populations: opening one, and letting the accounts of a project join it with what they have spent."""

import hashlib
from collections.abc import Sequence

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from privacy.accounting.composition import Limits
from privacy.accounting.cost import Amount
from privacy.accounting.events import MOST_RECORDS_PER_PERSON, unit_rule
from privacy.errors import BudgetExceeded, UnsoundCombination
from privacy.ledger import counter, sharing, terms
from privacy.ledger import services as ledger
from privacy.ledger.entries import Draft, append, broken_rule
from privacy.ledger.models import BudgetAccount, EntryKind, Filter, LedgerEntry
from privacy.ledger.selectors import quota_of
from privacy.ledger.services import Actor
from privacy.wording import as_message, as_plural_message


def key_fingerprint() -> str:
    """Return what tells the site's key of pseudonyms from another one; nobody gets from it to the key."""
    key = hashlib.sha256(settings.PSEUDONYM_KEY.encode()).digest()
    return hashlib.blake2b(b"population", key=key, person=b"key", digest_size=16).hexdigest()


def open_shared_account(
    *,
    name: str,
    unit: str,
    filter: str,  # noqa: A002  # the field's word
    epsilon_limit: Amount,
    delta_limit: Amount,
    actor: Actor,
) -> BudgetAccount:
    """Open the account of a population: people under the site's key of pseudonyms, who share one limit from now on."""
    if unit not in ("record", "contributor"):
        raise UnsoundCombination(
            as_message(
                "A population consists of contributors or records, not of one {unit}",
                unit=unit,
            )
        )
    with transaction.atomic():
        base = slugify(name)[:50] or "population"
        others = BudgetAccount.objects.filter(scope__startswith=f"population:{base}")
        taken = {"new", *(account.slug for account in others)}
        slug = next(slug for n in range(1, len(taken) + 3) if (slug := base if n == 1 else f"{base}-{n}") not in taken)
        return ledger.open_account(
            scope=f"population:{slug}",
            label=name,
            unit=unit,
            filter=filter,
            epsilon_limit=epsilon_limit,
            delta_limit=delta_limit,
            key_fingerprint=key_fingerprint(),
            actor=actor,
            reason=as_message("population opened"),
        )


def join_population(
    *, population: BudgetAccount, accounts: Sequence[BudgetAccount], records_per_person: int | None, actor: Actor
) -> list[BudgetAccount]:
    """Let accounts of one project belong to a population for good; what they have spent is charged to it.

    `records_per_person` is how many records of one person the accounts' records hold at most, as their owner declares;
    an account that protects a contributor needs none. Raises `UnsoundCombination` naming the rule that leaves a
    conversion without proof, `BudgetExceeded` where the past alone is more than the population has left; nothing is
    stored then.
    """
    refuse_other_key(population)
    counter.refuse_what_was_forgotten()
    quotas = []
    with transaction.atomic():
        # All of them before the population's: whoever spends locks in this order.
        ids = sorted(account.pk for account in accounts)
        for account in BudgetAccount.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk"):
            declared = 1 if account.unit == "contributor" else records_per_person
            refuse_without_conversion(account, population, declared)
            assert declared is not None
            quotas.append(_join(population, account, declared, actor))
    return quotas


def follow(account: BudgetAccount, *, like: BudgetAccount, actor: Actor) -> None:
    """Let an account that a project gets later belong to the population of the one it had, under the same number."""
    quota = quota_of(like)
    if quota is not None:
        declared = quota.records_per_person if like.unit == "record" else None
        join_population(population=quota.population, accounts=[account], records_per_person=declared, actor=actor)


def refuse_other_key(population: BudgetAccount) -> None:
    if broken := rule_of_other_key(population):
        raise UnsoundCombination(broken)


def rule_of_other_key(population: BudgetAccount) -> str:
    if population.key_fingerprint == key_fingerprint():
        return ""
    return as_message("{name}: uses another pseudonym key than this site", name=population.plain_label)


def refuse_without_conversion(account: BudgetAccount, common: BudgetAccount, records_per_person: int | None) -> None:
    """Refuse an account whose spending nobody knows how to turn into what people of the population lose."""
    if broken := rule_without_conversion(account, common, records_per_person):
        raise UnsoundCombination(as_message("{word}: {reason}", word=account.label, reason=broken))


def rule_without_conversion(account: BudgetAccount, common: BudgetAccount, records_per_person: int | None) -> str:
    """Return the rule that keeps an account, stored or yet to be opened, out of a population, or nothing."""
    if account.adjacency != common.adjacency:
        return as_message(
            "the accounts differ in adjacency ({one}, {other})",
            one=account.adjacency,
            other=common.adjacency,
        )
    if account.filter == Filter.ZCDP and common.filter == Filter.PURE:
        return as_message("an account in rho cannot join a population in epsilon")
    if records_per_person is None:
        return as_message("declare the maximum number of records per person")
    if not 1 <= records_per_person <= MOST_RECORDS_PER_PERSON:
        return as_message("records per person must be from 1 to {most}", most=MOST_RECORDS_PER_PERSON)
    return unit_rule(account.unit, common.unit, records_per_person)


def _join(population: BudgetAccount, account: BudgetAccount, records_per_person: int, actor: Actor) -> BudgetAccount:
    if account.parent_id is not None:
        raise UnsoundCombination(as_message("{word}: already belongs to a population", word=account.label))
    account.parent, account.records_per_person = population, records_per_person
    try:
        with transaction.atomic():
            account.save(update_fields=["parent", "records_per_person"])
            _note(account, population, records_per_person, actor)
            sharing.repeat_past(account)
    except sharing.SharedRefusal as refused:
        cause = refused.__cause__
        if isinstance(cause, IntegrityError) and broken_rule(cause) == "privacy_ledger_within_limit":
            raise BudgetExceeded(
                as_message(
                    "{word}: has spent more than {name} has left",
                    word=account.label,
                    name=population.plain_label,
                )
            ) from refused
        raise
    return account


def _note(account: BudgetAccount, population: BudgetAccount, records_per_person: int, actor: Actor) -> LedgerEntry:
    """Write into the account's own chain that its limit is a quota from now on; the limit itself stays."""
    kept = Limits(
        account.epsilon_limit_nano, account.delta_limit_atto, account.delta_sum_limit_atto, account.rho_limit_nano
    )
    return append(
        Draft(
            account=account,
            kind=EntryKind.LIMIT_CHANGE,
            mechanism="limits",
            event_json=terms.to_json(account, kept),
            actor=ledger.actor_name(actor),
            reason=as_plural_message(
                "joined population {name}, at most {n} record per person",
                "joined population {name}, at most {n} records per person",
                name=population.plain_label,
                n=records_per_person,
            ),
        )
    )
