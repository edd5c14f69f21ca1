"""The page of a project's webhooks: addresses, deliveries, sending again; for managers."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from addons.webhooks import services as webhooks
from addons.webhooks.models import Webhook, WebhookDelivery, WebhookEvent
from annotation.access import managed_project
from annotation.errors import AddressRefused
from annotation.models import Project
from annotation.people.identity import note_nothing
from annotation.wording import localized

SHOWN_DELIVERIES = 100


def _project(request: HttpRequest, slug: str) -> Project:
    return managed_project(request, slug)


def _page(request: HttpRequest, project: Project, *, status: int = 200, **more: Any) -> HttpResponse:
    deliveries = WebhookDelivery.objects.filter(webhook__project=project).select_related("webhook")
    context = {
        "project": project,
        "webhooks": Webhook.objects.filter(project=project, removed_at=None).order_by("pk"),
        "deliveries": deliveries.order_by("-created_at", "-pk")[:SHOWN_DELIVERIES],
        "events": WebhookEvent.choices,
        "hosts": ", ".join(settings.WEBHOOK_HOSTS),
        **more,
    }
    response = render(request, "webhooks/webhooks.html", context, status=status)
    if "secret" in more:
        response.headers["Cache-Control"] = "no-store"
    return response


@login_required
def webhook_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = _project(request, slug)
    if request.method != "POST":
        return _page(request, project)
    url, chosen = _sent(request)
    try:
        _added, secret = webhooks.add_webhook(project=project, url=url, events=chosen)
    except (AddressRefused, webhooks.WebhookRefused) as refusal:
        return _page(request, project, status=422, refusal=localized(str(refusal)), url=url, chosen=chosen)
    messages.success(request, _("Saved."))
    return _page(request, project, secret=secret)


def _sent(request: HttpRequest) -> tuple[str, list[str]]:
    return request.POST.get("url", "").strip(), request.POST.getlist("events")


@login_required
def change(request: HttpRequest, slug: str, webhook_id: int) -> HttpResponse:
    webhook = _webhook(request, slug, webhook_id)
    context = {"project": webhook.project, "webhook": webhook, "events": WebhookEvent.choices}
    if request.method != "POST":
        return render(request, "webhooks/webhook.html", context | {"url": webhook.url, "chosen": webhook.events})
    url, chosen = _sent(request)
    try:
        webhooks.change_webhook(webhook=webhook, url=url, events=chosen)
    except (AddressRefused, webhooks.WebhookRefused) as refusal:
        refused = {"refusal": localized(str(refusal)), "url": url, "chosen": chosen}
        return render(request, "webhooks/webhook.html", context | refused, status=422)
    messages.success(request, _("Saved."))
    return redirect("webhooks:webhooks", slug=slug)


@require_POST
@login_required
def rotate_secret(request: HttpRequest, slug: str, webhook_id: int) -> HttpResponse:
    webhook = _webhook(request, slug, webhook_id)
    if "replace" not in request.POST:
        note_nothing(request)
        return redirect("webhooks:change_webhook", slug=slug, webhook_id=webhook_id)
    _changed, secret = webhooks.rotate_secret(webhook=webhook)
    messages.success(request, _("Saved."))
    return _page(request, webhook.project, secret=secret)


def _webhook(request: HttpRequest, slug: str, webhook_id: int) -> Webhook:
    return get_object_or_404(Webhook, pk=webhook_id, project=_project(request, slug), removed_at=None)


@require_POST
@login_required
def remove(request: HttpRequest, slug: str, webhook_id: int) -> HttpResponse:
    webhooks.remove_webhook(webhook=_webhook(request, slug, webhook_id))
    messages.success(request, _("Removed."))
    return redirect("webhooks:webhooks", slug=slug)


@require_POST
@login_required
def send_again(request: HttpRequest, slug: str, delivery_id: str) -> HttpResponse:
    delivery = WebhookDelivery.objects.filter(pk=delivery_id, webhook__project=_project(request, slug)).first()
    if delivery is None:
        raise Http404
    webhooks.send_message_again(delivery=delivery)
    messages.success(request, _("Sent."))
    return redirect("webhooks:webhooks", slug=slug)
