"""Pages that this process serves: all of them, the label pages alone, or all but those."""

from enum import StrEnum
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _

from dpal_site.around import Middleware


class Part(StrEnum):
    """What a process serves."""

    ALL = ""
    LABEL = "label"
    WEB = "web"


LABEL_PAGES = frozenset(
    {
        "annotation:label",
        "annotation:undo",
        "annotation:submit",
        "annotation:skip",
        "annotation:read_guidelines",
        "annotation:told_picture",
        "annotation:why",
        "annotation:flag",
        "annotation:comment",
        "annotation:question_image",
        "annotation:own_statistics",
        "annotation:own_answers",
        "annotation:correct_answer",
        "annotation:write_back",
        "annotation:crowd_done",
    }
)
# What each process answers for itself.
EVERYWHERE = frozenset({"healthz", "readyz", "logout"})
# In a request's environment: the status that says why the label process was not asked.
NOT_HANDED_ON = "dpal.not_handed_on"
RETRY_AFTER_SECONDS = 5
SEE_OTHER_KEEPING_METHOD = 307
MISDIRECTED = 421


def is_label_page(path: str) -> bool:
    try:
        return resolve(path).view_name in LABEL_PAGES
    except Resolver404:
        return False


class PartMiddleware(Middleware):
    """Let a view run only in the part of the site that serves it."""

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        name = request.resolver_match.view_name if request.resolver_match else ""
        if not settings.SITE_PART or name in EVERYWHERE:
            return None
        wanted = Part.LABEL if name in LABEL_PAGES else Part.WEB
        if wanted == settings.SITE_PART:
            return None
        if (status := request.META.get(NOT_HANDED_ON)) is not None:
            return _not_handed_on(request, status)
        origin = settings.LABEL_URL if wanted == Part.LABEL else settings.WEB_URL
        # A proxy that leads here what it should lead there would do so again.
        if not origin or urlsplit(origin).netloc == request.get_host():
            reason = _("This address is served by another process of the site; its proxy leads to the wrong one.")
            return render(request, "refused.html", {"reason": reason}, status=MISDIRECTED)
        return HttpResponse(
            status=SEE_OTHER_KEEPING_METHOD, headers={"Location": origin.rstrip("/") + request.get_full_path()}
        )


def _not_handed_on(request: HttpRequest, status: int) -> HttpResponse:
    reason = _("The label pages do not answer. Nothing was stored; try again in a moment.")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        reason = _("That is more than a label page takes.")
    response = render(request, "refused.html", {"reason": reason}, status=status)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response
