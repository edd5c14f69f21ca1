"""Spend privacy: reserve before private data is read, commit with the output, or let it be charged."""

# A reservation is durable before it returns and counts as spent from then on. Commit belongs into the transaction that
# stores the output, and only what is committed may be published. Nothing here checks a limit: the database does, and
# these functions word its refusals.

from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, Exists, ExpressionWrapper, OuterRef, QuerySet
from django.db.models.functions import Now

from privacy.accounting.composition import Limits
from privacy.accounting.cost import Amount, atto_spent, nano_spent
from privacy.accounting.events import Event, PostProcessingEvent, event_from_json
from privacy.errors import AlreadySettled, BudgetExceeded, KeyReused, NotCommitted, UnsoundCombination
from privacy.ledger import counter, rules, selectors, sharing, terms
from privacy.ledger.entries import Draft, append, broken_rule
from privacy.ledger.faults import fault_point
from privacy.ledger.models import (
    SETTLEMENTS,
    AccountAdjacency,
    AccountUnit,
    BudgetAccount,
    EntryKind,
    Filter,
    LedgerEntry,
)
from privacy.wording import as_message

Actor = AbstractBaseUser | str | None


def open_account(
    *,
    scope: str,
    label: str,
    unit: AccountUnit | str,
    filter: Filter | str,  # noqa: A002  # the field's word
    epsilon_limit: Amount,
    delta_limit: Amount,
    adjacency: AccountAdjacency | str = AccountAdjacency.NULL,
    delta_share: Amount | None = None,
    key_fingerprint: str = "",
    actor: Actor,
    reason: str,
) -> BudgetAccount:
    """Open the account of one scope with fixed terms; a `zcdp` one spends `delta_share` of delta on operations."""
    limits = terms.limits(filter=filter, epsilon_limit=epsilon_limit, delta_limit=delta_limit, delta_share=delta_share)
    counter.refuse_what_was_forgotten()
    with transaction.atomic():
        account = BudgetAccount.objects.create(
            scope=scope, label=label, unit=unit, filter=filter, adjacency=adjacency, key_fingerprint=key_fingerprint
        )
        _write_limits(account, EntryKind.GRANT, limits, actor, reason)
    return account


def change_account_limits(
    *,
    account: BudgetAccount,
    epsilon_limit: Amount,
    delta_limit: Amount,
    delta_share: Amount | None = None,
    actor: Actor,
    reason: str,
    approved_by: Actor = None,
) -> LedgerEntry:
    """Give an account other limits, never below what is spent; `approved_by` names who agreed."""
    counter.refuse_what_was_forgotten()
    account.refresh_from_db()
    limits = terms.limits(
        filter=account.filter,
        epsilon_limit=epsilon_limit,
        delta_limit=delta_limit,
        delta_share=terms.delta_share(account) if delta_share is None else delta_share,
    )
    try:
        with transaction.atomic():
            return _write_limits(account, EntryKind.LIMIT_CHANGE, limits, actor, reason, actor_name(approved_by))
    except IntegrityError as error:
        if broken_rule(error) == "privacy_limit_above_spent":
            raise BudgetExceeded(
                as_message("{word}: the limit cannot fall below the amount spent", word=account.label)
            ) from error
        raise


def reserve(
    *, account: BudgetAccount, event: Event, purpose: str, key: UUID, subject: str = "", actor: Actor = None
) -> LedgerEntry:
    """Hold the cost of `event` before private data is read; the same `key` never pays twice.

    Refuses to run inside a transaction, whose rollback would give back what must stay spent. `key` names one attempt: a
    retry that may draw noise again is a new attempt with a key of its own. The key of a reservation that was given back
    holds nothing, and is refused as settled.
    """
    counter.refuse_what_was_forgotten()
    wanted = Draft(
        account=account,
        kind=EntryKind.RESERVE,
        idempotency_key=key,
        purpose=purpose,
        subject=subject,
        actor=actor_name(actor),
        parent=_round_before(account, event),
        **asdict(rules.price(account, event)),
    )
    try:
        with transaction.atomic(durable=True):
            entry = append(wanted, flush_after=True)
            sharing.repeat_reservation(entry, event)
            fault_point("inside_reserve")
    except sharing.SharedRefusal as refused:
        raise _refused_by_all(refused) from refused
    except IntegrityError as error:
        standing = _standing(wanted)
        if standing is not None:
            if standing.children.filter(kind=EntryKind.VOID).exists():
                raise _settled_already(standing) from error
            return standing
        rule = broken_rule(error)
        if rule == "privacy_ledger_within_limit":
            raise _too_dear(account, wanted) from error
        if rule == "privacy_account_given_up":
            raise UnsoundCombination(
                f"{account.label}: given up before anything was paid, as the settings changed"
            ) from error
        if rule == "privacy_entry_series":
            raise UnsoundCombination(f"{wanted.mechanism}: the series it continues no longer stands") from error
        if rule in ("privacy_entry_series_opened_once", "privacy_entry_series_continued_once"):
            raise rules.paid_before(wanted.mechanism) from error
        raise
    fault_point("after_reserve")
    return entry


def commit(*, reservation: LedgerEntry, output_digest: str) -> LedgerEntry:
    """Settle a reservation as spent on the output with this SHA-256, in the transaction that stores the output."""
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("commit belongs into the transaction that stores the output")
    entry = _settle(reservation, EntryKind.COMMIT, output_digest=output_digest)
    fault_point("inside_commit")
    return entry


def void(*, reservation: LedgerEntry, reason: str, actor: Actor = None) -> LedgerEntry:
    """Give a reservation back; sound only if no private row was read under it."""
    return _settle(reservation, EntryKind.VOID, reason=reason, actor=actor_name(actor))


def charge(*, reservation: LedgerEntry, reason: str, actor: Actor = None) -> LedgerEntry:
    """Settle a reservation as spent without an output: its attempt may have read private rows and will not commit."""
    return _settle(reservation, EntryKind.CHARGE, reason=reason, actor=actor_name(actor))


def charge_open(*, entries: QuerySet[LedgerEntry]) -> None:
    """Charge every reservation among these entries that nobody settled: the attempts they are of have ended."""
    reserved = entries.filter(kind=EntryKind.RESERVE)
    for reservation in reserved.exclude(children__kind__in=SETTLEMENTS).select_related("account"):
        with transaction.atomic():
            charge(reservation=reservation, reason=as_message("ended without an output"))


def charge_stale(*, older_than: timedelta) -> int:
    settled = LedgerEntry.objects.filter(parent=OuterRef("pk"), kind__in=SETTLEMENTS)
    deadline = ExpressionWrapper(Now() - older_than, output_field=DateTimeField())
    # What a population repeats is settled with what it repeats.
    accounts = selectors.accounts_with_open_reservations().filter(key_fingerprint="")
    stale = LedgerEntry.objects.filter(~Exists(settled), kind=EntryKind.RESERVE, account__in=accounts).filter(
        created_at__lt=deadline
    )
    charged = 0
    for reservation in stale.select_related("account").order_by("pk"):
        try:
            _settle(reservation, EntryKind.CHARGE, reason=as_message("not settled in time"))
        except AlreadySettled:
            continue
        charged += 1
    return charged


def record_post_processing(
    *,
    account: BudgetAccount,
    parent: LedgerEntry,
    operation: str,
    purpose: str,
    output_digest: str,
    key: UUID,
    subject: str = "",
    actor: Actor = None,
) -> LedgerEntry:
    """Write that an output descends from committed output alone and costs nothing."""
    wanted = Draft(
        account=account,
        kind=EntryKind.POST_PROCESSING,
        parent=parent,
        **asdict(rules.price(account, PostProcessingEvent(operation))),
        idempotency_key=key,
        purpose=purpose,
        subject=subject,
        output_digest=output_digest,
        actor=actor_name(actor),
    )
    try:
        with transaction.atomic():
            return append(wanted)
    except IntegrityError as error:
        standing = _standing(wanted)
        if standing is not None:
            return standing
        if broken_rule(error) == "privacy_entry_ancestor_committed":
            raise NotCommitted(f"entry {parent.pk} is not committed, nothing can descend from it") from error
        raise


def actor_name(actor: Actor) -> str:
    return actor.get_username() if isinstance(actor, AbstractBaseUser) else actor or ""


def _write_limits(
    account: BudgetAccount, kind: EntryKind, limits: Limits, actor: Actor, reason: str, approved_by: str = ""
) -> LedgerEntry:
    entry = append(
        Draft(
            account=account,
            kind=kind,
            mechanism="limits",
            event_json=terms.to_json(account, limits, approved_by=approved_by),
            actor=actor_name(actor),
            reason=reason,
        )
    )
    account.refresh_from_db()
    return entry


def _settle(
    reservation: LedgerEntry, kind: EntryKind, *, output_digest: str = "", reason: str = "", actor: str = ""
) -> LedgerEntry:
    try:
        with transaction.atomic():
            entry = append(
                Draft(
                    account=reservation.account,
                    kind=kind,
                    parent=reservation,
                    epsilon_nano=reservation.epsilon_nano,
                    delta_atto=reservation.delta_atto,
                    rho_nano=reservation.rho_nano,
                    mi_nano=reservation.mi_nano,
                    output_digest=output_digest,
                    reason=reason,
                    actor=actor,
                )
            )
            entry.parent = reservation
            sharing.repeat_settlement(entry)
            return entry
    except IntegrityError as error:
        rule = broken_rule(error)
        if rule == "privacy_entry_one_settlement":
            raise _settled_already(reservation) from error
        if rule == "privacy_entry_series":
            raise UnsoundCombination(
                f"reservation {reservation.pk} opened a series that still stands: void what continues it first"
            ) from error
        raise


def _settled_already(reservation: LedgerEntry) -> AlreadySettled:
    return AlreadySettled(f"reservation {reservation.pk} is settled already")


def _standing(wanted: Draft) -> LedgerEntry | None:
    standing = LedgerEntry.objects.filter(idempotency_key=wanted.idempotency_key).select_related("account").first()
    if standing is None:
        return None
    fields = ["account_id", "kind", "event_json", "purpose", "subject", "output_digest"]
    if wanted.kind == EntryKind.POST_PROCESSING:
        fields.append("parent_id")
    for field in fields:
        if getattr(standing, field) != getattr(wanted, field):
            raise KeyReused(f"key {wanted.idempotency_key} already stands for entry {standing.pk}: {field} differs")
    return standing


def _round_before(account: BudgetAccount, event: Event) -> LedgerEntry | None:
    if not event.needs_parent:
        return None
    voided = LedgerEntry.objects.filter(parent=OuterRef("pk"), kind=EntryKind.VOID)
    standing = LedgerEntry.objects.filter(~Exists(voided), kind=EntryKind.RESERVE)
    rounds = standing.filter(account=account, mechanism__in=event.series_kinds).annotate(
        continued=Exists(standing.filter(parent=OuterRef("pk")))
    )
    refusal: Exception | None = None
    for earlier in rounds.order_by("-sequence").iterator():
        try:
            rules.check_step(event, event_from_json(earlier.event), continued=earlier.continued)
        except UnsoundCombination as error:
            # Of all refusals this one says why: it would be the next step, and was taken.
            refusal = error
        except ValueError as error:
            refusal = refusal or error
        else:
            return earlier
    raise UnsoundCombination(
        f"{event.kind} continues a series, but no standing reservation of this account opened it: {refusal or 'none'}"
    )


def _refused_by_all(refused: sharing.SharedRefusal) -> Exception:
    error = refused.__cause__
    if isinstance(error, IntegrityError) and broken_rule(error) == "privacy_ledger_within_limit":
        return _too_dear(refused.draft.account, refused.draft)
    return refused


def _too_dear(account: BudgetAccount, wanted: Draft) -> BudgetExceeded:
    spenders = selectors.top_spenders(account)
    pure = account.filter == Filter.PURE
    amount = nano_spent((wanted.epsilon_nano if pure else wanted.rho_nano) or 0)
    most = ", ".join(f"{spender.name} {spender.share:.0%} in {spender.operations}" for spender in spenders)
    return BudgetExceeded(
        as_message(
            "{word}: {mechanism} costs {measure}={amount:.6g} delta={delta:.3g}, {left} left; spent most: {most}",
            word=account.label,
            mechanism=wanted.mechanism,
            measure="epsilon" if pure else "rho",
            amount=amount,
            delta=atto_spent(wanted.delta_atto),
            left=selectors.guarantee(account).left_wording,
            most=most or "nothing yet",
        ),
        top_spenders=spenders,
    )
