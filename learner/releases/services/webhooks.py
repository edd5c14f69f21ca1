"""Telling programs what happened: recorded once in Postgres, signed, sent again with growing pauses, then given up."""

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from annotation.errors import AddressRefused
from annotation.models import Dataset, DatasetState, GateRun, Project, Report, ReportKind, WorkState
from annotation.models.history import ProjectChange
from annotation.outgoing import parse_target, pinned_address
from learner.errors import WebhookRefused
from learner.models import ModelRelease, ReleaseState, Round
from learner.models.webhooks import DeliveryState, Webhook, WebhookDelivery, WebhookEvent
from learner.releases.webhook_address import post
from learner.selectors import guarantee_accounts
from learner.work.services.dispatch import SEND_WEBHOOK_TASK, send_on_commit
from privacy.models import EntryKind, LedgerEntry
from privacy.selectors import guarantee

BUDGET_SHARE = 0.8
# What annotators say about questions, for managers to look at.
TO_MANAGERS = (ReportKind.COMMENT, ReportKind.BROKEN, ReportKind.SENSITIVE)
FIRST_PAUSE = timedelta(seconds=30)
MAX_ATTEMPTS = 8
# Longer than an attempt can take: whose worker died is tried again after it.
LEASE = timedelta(minutes=2)
DUE_AT_ONCE = 200
SCHEMA = "dpal-event/1"
PREFIX = "whsec_"
SALT_BYTES = 32


def add_webhook(*, project: Project, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    """Add an address and return it with the only showing of its secret."""
    _refuse(project=project, url=url, events=events)
    webhook = Webhook.objects.create(
        project=project, url=url, events=sorted(set(events)), salt=secrets.token_bytes(SALT_BYTES)
    )
    return webhook, secret_of(webhook)


def change_webhook(*, webhook: Webhook, url: str, events: Sequence[str]) -> Webhook:
    """Give a webhook another address or other events; what waits goes to the address, and its secret stays."""
    _refuse(project=webhook.project, url=url, events=events)
    with transaction.atomic():
        held = _held(webhook)
        dropped, added = set(held.events) - set(events), set(events) - set(held.events)
        moment = timezone.now().isoformat()
        kept = {event: since for event, since in held.event_since.items() if event not in dropped}
        held.url, held.events = url, sorted(set(events))
        held.event_since = kept | dict.fromkeys(sorted(added), moment)
        held.save(update_fields=["url", "events", "event_since"])
        _give_up(WebhookDelivery.objects.filter(webhook=held, event__in=dropped))
    return held


def rotate_secret(*, webhook: Webhook) -> tuple[Webhook, str]:
    """Replace the secret and return the webhook with the only showing of the new one.

    A message that its receiver refuses meanwhile is sent again, signed anew each time, for an hour.
    """
    with transaction.atomic():
        held = _held(webhook)
        held.salt = secrets.token_bytes(SALT_BYTES)
        held.save(update_fields=["salt"])
    return held, secret_of(held)


def remove_webhook(*, webhook: Webhook) -> None:
    """Send nothing more to an address; what was sent stays on the page."""
    Webhook.objects.filter(pk=webhook.pk, removed_at=None).update(removed_at=Now())
    _give_up(WebhookDelivery.objects.filter(webhook=webhook))


def _refuse(*, project: Project, url: str, events: Sequence[str]) -> None:
    """Refuse an address that leads elsewhere than an administrator allowed, and events nobody may be told of."""
    parse_target(url, allowed=settings.WEBHOOK_HOSTS)
    if not events or set(events) - set(WebhookEvent.values):
        raise WebhookRefused("Choose at least one of the events.")
    if WebhookEvent.REPORT in events and project.hides_selection:
        raise WebhookRefused(
            "Which questions are asked is secret in this project, and a message about a report would tell it. "
            "Leave that event out."
        )


def _held(webhook: Webhook) -> Webhook:
    """Return the webhook as it stands, which nobody changes until the transaction ends."""
    found = Webhook.objects.select_for_update(no_key=True).filter(pk=webhook.pk, removed_at=None).first()
    if found is None:
        raise WebhookRefused("This webhook was removed meanwhile.")
    return found


def _give_up(deliveries: QuerySet[WebhookDelivery]) -> None:
    deliveries.filter(state=DeliveryState.WAITING).update(state=DeliveryState.GIVEN_UP, answer="removed")


def secret_of(webhook: Webhook) -> str:
    """Derive the secret both sides sign with."""
    key = hmac.new(settings.SECRET_KEY.encode(), b"dpal webhook\0" + bytes(webhook.salt), hashlib.sha256)
    return PREFIX + base64.b64encode(key.digest()).decode()


def signature(*, secret: str, message_id: str, moment: int, body: bytes) -> str:
    """Return the header webhook-signature, an HMAC-SHA256 over id, time and body as Standard Webhooks have it."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    made = hmac.new(key, f"{message_id}.{moment}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


def record_events() -> int:
    """Write down what happened since each webhook was added and was not written down yet; return how much."""
    recorded = 0
    for webhook in Webhook.objects.filter(removed_at=None).select_related(
        "project__pool_account", "project__labels_account"
    ):
        for event, subject, told in _happened(webhook):
            body = {"schema": SCHEMA, "event": event, "project": webhook.project.slug, **told}
            _, new = WebhookDelivery.objects.get_or_create(
                webhook=webhook, event=event, subject=subject, defaults={"body": json.dumps(body, sort_keys=True)}
            )
            recorded += new
    return recorded


def write_event(*, project: Project, event: WebhookEvent, subject: str, told: Mapping[str, Any]) -> None:
    """Write down, in the transaction in which it happens, what no row keeps the time of."""
    for webhook in Webhook.objects.filter(project=project, removed_at=None, events__contains=event.value):
        body = {"schema": SCHEMA, "event": event, "project": project.slug, **told}
        WebhookDelivery.objects.create(
            webhook=webhook, event=event, subject=subject, body=json.dumps(body, sort_keys=True)
        )


def _happened(webhook: Webhook) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield events and what may be said of them: what the API tells an engineer, and no number of answers."""
    project, since = webhook.project, webhook.told_since
    if WebhookEvent.RELEASE in webhook.events:
        released = ModelRelease.objects.filter(
            project=project, state=ReleaseState.RELEASED, released_at__gte=since(WebhookEvent.RELEASE)
        )
        for version in released.order_by("version").values_list("version", flat=True):
            yield WebhookEvent.RELEASE, f"version {version}", {"version": version}
    if WebhookEvent.ROUND in webhook.events:
        done = Round.objects.filter(project=project, state=WorkState.DONE, finished_at__gte=since(WebhookEvent.ROUND))
        for number in done.order_by("number").values_list("number", flat=True):
            yield WebhookEvent.ROUND, f"round {number}", {"round": number}
    if WebhookEvent.BUDGET in webhook.events:
        for account in guarantee_accounts(project):
            now = guarantee(account)
            if now.epsilon_limit and now.epsilon_spent >= BUDGET_SHARE * now.epsilon_limit:
                told = {"account": account.scope, "limit_epsilon": now.epsilon_limit}
                # A limit that is raised can be reached anew.
                yield WebhookEvent.BUDGET, f"account {account.pk} limit {now.epsilon_limit:.9g}", told
    if WebhookEvent.LIMIT in webhook.events:
        changed = LedgerEntry.objects.filter(
            account__in=guarantee_accounts(project),
            kind=EntryKind.LIMIT_CHANGE,
            created_at__gte=_whole_second(since(WebhookEvent.LIMIT)),
        )
        for entry in changed.select_related("account").order_by("pk"):
            yield WebhookEvent.LIMIT, f"entry {entry.pk}", {"account": entry.account.scope}
    yield from _done_by_managers(project, since, webhook.events)
    if WebhookEvent.REPORT in webhook.events and not project.hides_selection:
        # By the question's number alone: what was said about it, and by whom, stays on the managers' page.
        said = Report.objects.filter(project=project, kind__in=TO_MANAGERS, created_at__gte=since(WebhookEvent.REPORT))
        for number, question in said.order_by("pk").values_list("pk", "query"):
            yield WebhookEvent.REPORT, f"report {number}", {"question": question}


def _done_by_managers(
    project: Project, since: Callable[[str], datetime], events: Sequence[str]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield what managers set going: uploads, gates, settings and the project's state."""
    if WebhookEvent.UPLOAD in events:
        read = Dataset.objects.filter(project=project, job__finished_at__gte=since(WebhookEvent.UPLOAD))
        for number, state in read.exclude(state=DatasetState.RECEIVING).order_by("pk").values_list("pk", "state"):
            yield WebhookEvent.UPLOAD, f"upload {number}", {"dataset": number, "state": state}
    if WebhookEvent.GATE in events:
        passed = GateRun.objects.filter(
            project=project, committed_entry__created_at__gte=_whole_second(since(WebhookEvent.GATE))
        )
        for run, number in passed.order_by("pk").values_list("pk", "dataset"):
            yield WebhookEvent.GATE, f"gate {run}", {"dataset": number}
    if WebhookEvent.SETTINGS in events:
        # Values may be words about records; their names say enough to look.
        changes = ProjectChange.objects.filter(project=project, created_at__gte=since(WebhookEvent.SETTINGS))
        for change in changes.order_by("pk"):
            told: dict[str, Any] = {"settings": sorted(change.fields)}
            if "state" in change.fields:
                told["state"] = change.fields["state"][1]
            yield WebhookEvent.SETTINGS, f"change {change.pk}", told


def _whole_second(moment: datetime) -> datetime:
    """Return the second a moment lies in: a ledger's times are no finer."""
    return moment.replace(microsecond=0)


def send_due() -> None:
    """Hand every message whose time has come to a worker."""
    due = WebhookDelivery.objects.filter(state=DeliveryState.WAITING, next_at__lte=Now())
    for delivery_id in due.order_by("next_at").values_list("pk", flat=True)[:DUE_AT_ONCE]:
        send_on_commit(SEND_WEBHOOK_TASK, delivery_id=str(delivery_id))


def send_delivery(*, delivery_id: str) -> None:
    """Try to send one message, unless somebody else is at it."""
    with transaction.atomic():
        waiting = WebhookDelivery.objects.select_for_update(skip_locked=True, of=("self",))
        delivery = waiting.filter(pk=delivery_id, state=DeliveryState.WAITING, next_at__lte=Now()).first()
        if delivery is None:
            return
        delivery.attempts += 1
        delivery.next_at = Now() + LEASE  # the one clock of all workers
        delivery.url = delivery.webhook.url
        delivery.save(update_fields=["attempts", "next_at", "url"])
    taken, answer = _attempt(delivery)
    own = WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts, state=DeliveryState.WAITING)
    if taken:
        own.update(state=DeliveryState.SENT, sent_at=Now(), answer=answer)
    elif delivery.attempts >= MAX_ATTEMPTS:
        own.update(state=DeliveryState.GIVEN_UP, answer=answer)
    else:
        own.update(next_at=Now() + FIRST_PAUSE * 2 ** (delivery.attempts - 1), answer=answer)


def _attempt(delivery: WebhookDelivery) -> tuple[bool, str]:
    """Send a message once; return whether it was taken, and the status or fault in a few words."""
    webhook = delivery.webhook
    body, message_id, moment = delivery.body.encode(), f"msg_{delivery.pk.hex}", int(time.time())
    headers = {
        "User-Agent": "DPAL",
        "webhook-id": message_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": signature(secret=secret_of(webhook), message_id=message_id, moment=moment, body=body),
    }
    try:
        # An administrator may have taken a host back since, and a name may lead elsewhere now.
        target = parse_target(webhook.url, allowed=settings.WEBHOOK_HOSTS)
        address = pinned_address(target, loopback=settings.WEBHOOK_LOOPBACK_IN_TESTS)
        status = post(target, address=address, body=body, headers=headers, ca_file=settings.WEBHOOK_CA_FILE)
    except AddressRefused as error:
        return False, str(error)[:200]
    except (OSError, http.client.HTTPException) as error:
        return False, type(error).__name__
    return 200 <= status < 300, f"HTTP {status}"


def send_message_again(*, delivery: WebhookDelivery) -> None:
    """Send a message once more, from the first pause on; the receiver tells by its id that it is the same."""
    with transaction.atomic():
        settled = WebhookDelivery.objects.filter(pk=delivery.pk, webhook__removed_at=None)
        changed = settled.exclude(state=DeliveryState.WAITING).update(
            state=DeliveryState.WAITING, attempts=0, next_at=Now(), answer="", sent_at=None
        )
        if changed:
            send_on_commit(SEND_WEBHOOK_TASK, delivery_id=str(delivery.pk))
