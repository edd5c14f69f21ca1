"""REST routes of webhooks: addresses, their secrets shown once, what was sent, and sending it again."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from addons.webhooks import services as webhooks
from addons.webhooks.models import Webhook, WebhookDelivery, WebhookEvent
from annotation.models import Role
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Page, RoomRouter, page_of, project_for, responses, row_id
from annotation.work.services.tokens import Scope

router = RoomRouter()
# The answer holds a secret, which no one in between may keep.
NO_STORE = {201: {"headers": {"Cache-Control": {"required": True, "schema": {"const": "no-store"}}}}}


class WebhookOut(Answer, reads=Reads.MANAGED):
    """An address that is told of some events."""

    webhook: int
    url: str
    events: list[WebhookEvent]
    created_at: datetime


class WebhookAddedOut(WebhookOut):
    """The same with its secret, which this answer alone shows."""

    secret: str


class WebhookIn(Schema):
    """An address on a host that an administrator has listed, and the events it is told of."""

    url: str = Field(max_length=500)
    events: list[WebhookEvent] = Field(min_length=1)


class WebhookChangeIn(Schema):
    """Changes of a webhook: its address, or the events it is told of."""

    url: str | None = Field(None, max_length=500)
    events: list[WebhookEvent] | None = Field(None, min_length=1)


class DeliveryOut(Answer, reads=Reads.MANAGED):
    """One message to one webhook; `answer` is the status or the fault of the last attempt, `url` where it went."""

    delivery: UUID = Field(validation_alias="id")
    webhook: int = Field(validation_alias="webhook_id")
    event: str
    subject: str
    state: str
    attempts: int
    url: str
    answer: str
    created_at: datetime
    sent_at: datetime | None


@router.get("projects/{slug:slug}/webhooks", response=list[WebhookOut], summary="The project's webhooks")
def list_webhooks(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    return [_webhook(each) for each in Webhook.objects.filter(project=project, removed_at=None).order_by("pk")]


@router.post(
    "projects/{slug:slug}/webhooks",
    response={201: WebhookAddedOut},
    summary="Add a webhook; the answer alone shows its secret, and no key repeats it",
    openapi_extra=responses(409, responses=NO_STORE),
)
def add_webhook(request: HttpRequest, response: HttpResponse, slug: str, body: WebhookIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    made, secret = webhooks.add_webhook(
        project=project, url=body.url.strip(), events=[event.value for event in body.events]
    )
    response.headers["Cache-Control"] = "no-store"
    return _webhook(made) | {"secret": secret}


@router.pages(
    "projects/{slug:slug}/webhooks/deliveries", response=list[DeliveryOut], summary="Messages to webhooks, newest first"
)
def list_deliveries(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    found = WebhookDelivery.objects.filter(webhook__project=project).order_by("-created_at", "-pk")
    return page_of(found, page, request=request, response=response)


@router.write(
    "projects/{slug:slug}/webhooks/deliveries/{uuid:delivery_id}",
    response={202: DeliveryOut},
    summary="Send a message once more",
)
def send_webhook_again(request: HttpRequest, slug: str, delivery_id: UUID) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    delivery = get_object_or_404(WebhookDelivery, pk=delivery_id, webhook__project=project)
    webhooks.send_message_again(delivery=delivery)
    delivery.refresh_from_db()
    return delivery


@router.remove("projects/{slug:slug}/webhooks/{webhook_id}", summary="Send nothing more to an address")
def remove_webhook(request: HttpRequest, slug: str, webhook_id: str) -> None:
    webhooks.remove_webhook(webhook=_found(request, slug, webhook_id, Scope.PROJECTS_WRITE))


@router.write(
    "projects/{slug:slug}/webhooks/{webhook_id}",
    response=WebhookOut,
    summary="Give a webhook another address or other events; its secret stays",
    method="PATCH",
)
def change_webhook(request: HttpRequest, slug: str, webhook_id: str, body: WebhookChangeIn) -> Any:
    webhook = _found(request, slug, webhook_id, Scope.PROJECTS_WRITE)
    url = webhook.url if body.url is None else body.url.strip()
    events = webhook.events if body.events is None else [event.value for event in body.events]
    return _webhook(webhooks.change_webhook(webhook=webhook, url=url, events=events))


@router.post(
    "projects/{slug:slug}/webhooks/{webhook_id}/secret",
    response={201: WebhookAddedOut},
    summary="Replace a webhook's secret; the answer alone shows it, and no key repeats it",
    openapi_extra=responses(409, responses=NO_STORE),
)
def rotate_webhook_secret(request: HttpRequest, response: HttpResponse, slug: str, webhook_id: str) -> Any:
    changed, secret = webhooks.rotate_secret(webhook=_found(request, slug, webhook_id, Scope.PROJECTS_WRITE))
    response.headers["Cache-Control"] = "no-store"
    return _webhook(changed) | {"secret": secret}


def _found(request: HttpRequest, slug: str, webhook_id: str, scope: Scope) -> Webhook:
    project = project_for(request, slug, scope, Role.MANAGER)
    return get_object_or_404(Webhook, pk=row_id(webhook_id), project=project, removed_at=None)


def _webhook(one: Webhook) -> dict[str, Any]:
    return {"webhook": one.pk, "url": one.url, "events": one.events, "created_at": one.created_at}
