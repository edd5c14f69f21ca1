"""Which pages this process serves: all of them, the label pages alone, or all but those.

A site of two processes has one that answers annotators under a database role that cannot read what they must not see,
and one for everybody else. What reaches the wrong one is sent on, or, where nobody said where to, refused.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _


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
        "annotation:why",
        "annotation:flag",
        "annotation:comment",
        "annotation:question_image",
        "annotation:own_statistics",
        "annotation:crowd_done",
    }
)
# What each process answers for itself.
EVERYWHERE = frozenset({"healthz", "readyz", "logout"})
SEE_OTHER_KEEPING_METHOD = 307
MISDIRECTED = 421


class PartMiddleware:
    """Let a view run only in the part of the site that serves it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Send on what another process serves."""
        name = request.resolver_match.view_name if request.resolver_match else ""
        if not settings.SITE_PART or name in EVERYWHERE:
            return None
        wanted = Part.LABEL if name in LABEL_PAGES else Part.WEB
        if wanted == settings.SITE_PART:
            return None
        origin = settings.LABEL_URL if wanted == Part.LABEL else settings.WEB_URL
        # A proxy that leads here what it should lead there would do so again.
        if not origin or urlsplit(origin).netloc == request.get_host():
            reason = _("This address is served by another process of the site; its proxy leads to the wrong one.")
            return render(request, "refused.html", {"reason": reason}, status=MISDIRECTED)
        return HttpResponse(
            status=SEE_OTHER_KEEPING_METHOD, headers={"Location": origin.rstrip("/") + request.get_full_path()}
        )
