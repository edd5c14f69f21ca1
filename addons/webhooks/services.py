"""Telling programs what happened: signed, sent again with growing pauses, then given up."""

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import ssl
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import Now, RowNumber
from django.utils import timezone

from addons.webhooks.models import DeliveryState, Webhook, WebhookDelivery, WebhookEvent
from annotation.choices.rules import hides_selection
from annotation.errors import AddressRefused
from annotation.models import Project
from annotation.work.outgoing import ReplyTooLong, exchange, parse_target, pinned_address
from annotation.work.services.sending import send_on_commit
from annotation.work.services.tokens import outgoing_secrets
from learner.errors import LearnerError

SEND_WEBHOOK_TASK = "addons.webhooks.tasks.send_webhook_task"
# Their times follow from what was asked and answered.
NEVER_IN_HIDING = frozenset({WebhookEvent.REPORT, WebhookEvent.REVIEW, WebhookEvent.WAITING})
FIRST_PAUSE = timedelta(seconds=30)
MAX_ATTEMPTS = 8
# A receiver answers in this time, however slowly it sends.
ATTEMPT_SECONDS = 10.0
MOST_REPLY_BYTES = 65_536
# Longer than an attempt and its wait in the queue: whose worker died is tried again after it.
LEASE = timedelta(minutes=2)
# Messages queued at one time: in all, for one project and for one host, so that a silent receiver delays its own alone.
MOST_QUEUED = 32
MOST_QUEUED_PER_PROJECT = 8
MOST_QUEUED_PER_HOST = 4
MOST_WEBHOOKS = 20
SCHEMA = "dpal-event/1"
PREFIX = "whsec_"
SALT_BYTES = 32


class WebhookRefused(LearnerError):
    status = 422


def add_webhook(*, project: Project, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    _refuse(project=project, url=url, events=events)
    if Webhook.objects.filter(project=project, removed_at=None).count() >= MOST_WEBHOOKS:
        raise WebhookRefused(f"A project has at most {MOST_WEBHOOKS} webhooks. Remove one first.")
    webhook = Webhook.objects.create(
        project=project, url=url, events=sorted(set(events)), salt=secrets.token_bytes(SALT_BYTES)
    )
    return webhook, secret_of(webhook)


def change_webhook(*, webhook: Webhook, url: str, events: Sequence[str]) -> Webhook:
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
    with transaction.atomic():
        held = _held(webhook)
        held.salt = secrets.token_bytes(SALT_BYTES)
        held.save(update_fields=["salt"])
    return held, secret_of(held)


def remove_webhook(*, webhook: Webhook) -> None:
    Webhook.objects.filter(pk=webhook.pk, removed_at=None).update(removed_at=Now())
    _give_up(WebhookDelivery.objects.filter(webhook=webhook))


def _refuse(*, project: Project, url: str, events: Sequence[str]) -> None:
    parse_target(url, allowed=settings.WEBHOOK_HOSTS)
    if not events or set(events) - set(WebhookEvent.values):
        raise WebhookRefused("Choose at least one event.")
    if hides_selection(project.settings) and NEVER_IN_HIDING & set(events):
        raise WebhookRefused("Not with secret selection: messages about flags, reviews or decisions reveal it.")


def _held(webhook: Webhook) -> Webhook:
    found = Webhook.objects.select_for_update(no_key=True).filter(pk=webhook.pk, removed_at=None).first()
    if found is None:
        raise WebhookRefused("The webhook is removed.")
    return found


def _give_up(deliveries: QuerySet[WebhookDelivery]) -> None:
    deliveries.filter(state=DeliveryState.WAITING).update(state=DeliveryState.GIVEN_UP, answer="removed")


def secret_of(webhook: Webhook) -> str:
    return _secrets_of(webhook)[0]


def _secrets_of(webhook: Webhook) -> list[str]:
    """Return its secret, and what that was under the keys of the site before, which receivers may still know."""
    found = outgoing_secrets(b"webhook", bytes(webhook.salt))
    return [PREFIX + base64.b64encode(key).decode() for key in found]


def signature(*, secret: str, message_id: str, moment: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    made = hmac.new(key, f"{message_id}.{moment}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


def write_event(*, project: Project, event: str, subject: str, facts: Mapping[str, Any], **_sent: object) -> None:
    for webhook in Webhook.objects.filter(project=project, removed_at=None, events__contains=event):
        body = message_body(project, event, facts)
        WebhookDelivery.objects.create(webhook=webhook, event=event, subject=subject, body=body)


def erase_webhooks(*, project: Project, **_sent: object) -> None:
    WebhookDelivery.objects.filter(webhook__project=project).delete()
    Webhook.objects.filter(project=project).delete()


def message_body(project: Project, event: str, facts: Mapping[str, Any]) -> str:
    return json.dumps({"schema": SCHEMA, "event": event, "project": project.slug, **facts}, sort_keys=True)


def send_due() -> None:
    """Queue what is due, each message once, within the limits per host and project."""
    waiting = WebhookDelivery.objects.filter(state=DeliveryState.WAITING).select_related("webhook")
    queued = list(waiting.filter(queued_until__gt=Now()))
    hosts = Counter(_host(each) for each in queued)
    projects = Counter(each.webhook.project_id for each in queued)
    place = Window(RowNumber(), partition_by=F("webhook"), order_by=("next_at", "pk"))
    due = waiting.filter(Q(queued_until=None) | Q(queued_until__lte=Now()), next_at__lte=Now()).annotate(place=place)
    chosen: list[WebhookDelivery] = []
    for found in due.filter(place__lte=MOST_QUEUED_PER_HOST).order_by("place", "next_at"):
        host, project = _host(found), found.webhook.project_id
        full = hosts[host] >= MOST_QUEUED_PER_HOST or projects[project] >= MOST_QUEUED_PER_PROJECT
        if not full and len(queued) + len(chosen) < MOST_QUEUED:
            chosen.append(found)
            hosts[host] += 1
            projects[project] += 1
    WebhookDelivery.objects.filter(pk__in=[each.pk for each in chosen]).update(queued_until=Now() + LEASE)
    for each in chosen:
        send_on_commit(SEND_WEBHOOK_TASK, delivery_id=str(each.pk))


def _host(delivery: WebhookDelivery) -> str | None:
    return urlsplit(delivery.webhook.url).hostname


def send_delivery(*, delivery_id: str) -> None:
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
        own.update(state=DeliveryState.SENT, sent_at=Now(), answer=answer, queued_until=None)
    elif delivery.attempts >= MAX_ATTEMPTS:
        own.update(state=DeliveryState.GIVEN_UP, answer=answer, queued_until=None)
    else:
        pause = FIRST_PAUSE * 2 ** (delivery.attempts - 1)
        own.update(next_at=Now() + pause, answer=answer, queued_until=None)


def _attempt(delivery: WebhookDelivery) -> tuple[bool, str]:
    webhook = delivery.webhook
    body, message_id, moment = delivery.body.encode(), f"msg_{delivery.pk.hex}", int(time.time())
    signatures = [
        signature(secret=secret, message_id=message_id, moment=moment, body=body) for secret in _secrets_of(webhook)
    ]
    headers = {
        "User-Agent": "DPAL",
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": " ".join(signatures),
    }
    try:
        # An administrator may have taken a host back since, and a name may lead elsewhere now.
        target = parse_target(webhook.url, allowed=settings.WEBHOOK_HOSTS)
        address = pinned_address(target, loopback=settings.WEBHOOK_LOOPBACK_IN_TESTS)
        status, _wait, _reply = exchange(
            "POST",
            target,
            address=address,
            body=body,
            headers=headers,
            seconds=ATTEMPT_SECONDS,
            most_bytes=MOST_REPLY_BYTES,
            context=ssl.create_default_context(cafile=settings.WEBHOOK_CA_FILE or None),
        )
    except AddressRefused as error:
        return False, str(error)[:200]
    except (OSError, http.client.HTTPException, ReplyTooLong) as error:
        return False, type(error).__name__
    return 200 <= status < 300, f"HTTP {status}"


def send_message_again(*, delivery: WebhookDelivery) -> None:
    """Send a message once more, from the first pause on; the receiver tells by its id that it is the same."""
    with transaction.atomic():
        settled = WebhookDelivery.objects.filter(pk=delivery.pk, webhook__removed_at=None)
        changed = settled.exclude(state=DeliveryState.WAITING).update(
            state=DeliveryState.WAITING, attempts=0, next_at=Now(), queued_until=Now() + LEASE, answer="", sent_at=None
        )
        if changed:
            send_on_commit(SEND_WEBHOOK_TASK, delivery_id=str(delivery.pk))
