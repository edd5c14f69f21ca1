"""Queues and stuck work, for whoever runs the site: no text, no label, no annotator."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.people.identity import note_nothing, person_of
from annotation.work import scanning
from annotation.work.services import broker
from dpal_site.operations import checks, long_work


def for_staff(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @login_required
    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not person_of(request).is_staff:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return checked


def standing() -> dict[str, Any]:
    depths = broker.depths()
    limit = timedelta(seconds=settings.HEARTBEAT_LIMIT_SECONDS)
    queues = [
        {
            "name": name,
            "waiting": depths.get(name),
            "heard": timezone.now() - age if age is not None else None,
            "just_heard": age is not None and age < timedelta(minutes=1),
            "silent": age is None or age > limit,
        }
        for name, age in checks.ages().items()
    ]
    return {
        "queues": queues,
        "broker_away": not depths,
        "scanner_away": scanning.is_on() and not scanning.is_there(),
        "leases": long_work.leases(),
        "unfinished": long_work.unfinished(),
        "failed": long_work.failed_lately(),
    }


@for_staff
def work(request: HttpRequest) -> HttpResponse:
    return render(request, "work.html", standing() | {"days": long_work.FAILED_DAYS})


@for_staff
@require_POST
def send_again(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    return _answered(
        request,
        kind,
        done=lambda: long_work.resend_long_work(kind=kind, key=key),
        said=_("Sent."),
    )


@for_staff
@require_POST
def cancel(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    by = person_of(request).get_username()
    return _answered(
        request,
        kind,
        done=lambda: long_work.stop_long_work(kind=kind, key=key, by=by),
        said=_("It stops at its next safe point. Reserved epsilon stays charged."),
    )


def _answered(request: HttpRequest, kind: str, *, done: Callable[[], bool], said: str) -> HttpResponse:
    if kind not in long_work.KINDS:
        raise Http404
    if done():
        messages.success(request, said)
    else:
        messages.info(request, _("It is running or has ended."))
        note_nothing(request)
    return redirect("operations:work")


app_name = "operations"
urlpatterns = [
    path("", work, name="work"),
    path("<slug:kind>/<slug:key>/send/", send_again, name="send_again"),
    path("<slug:kind>/<slug:key>/cancel/", cancel, name="cancel"),
]
