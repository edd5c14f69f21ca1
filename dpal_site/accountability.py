"""Every request that changes something leaves a line that says who did what, and no other request leaves one."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from annotation.log.action_words import SENTENCES
from annotation.log.services import history
from annotation.people.identity import is_noted_nothing

READING = ("GET", "HEAD", "OPTIONS", "TRACE")
# Programs and the administration have methods of their own.
PAGES = ("annotation:", "learner:", "operations:")


class AccountabilityMiddleware:
    """Name the person to the database while a page changes something, and note what was done.

    The lines are never rewritten, so whoever may write one by doing nothing could fill the log for ever: a page that
    only shows something takes nothing that is sent, and where another middleware answered nothing was done.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in READING:
            return self.get_response(request)
        with ExitStack() as stack:
            request.acting = stack  # type: ignore[attr-defined]
            response = self.get_response(request)
        match = request.resolver_match
        if match and _is_done(request, response, match.view_name):
            history.note_action(
                actor=request.user.get_username(),
                route=match.view_name,
                arguments=match.kwargs,
                project_id=getattr(request, "noted_project", None),
            )
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Let the change log know whose change it is; programs change no configuration."""
        stack, match = getattr(request, "acting", None), request.resolver_match
        if stack is None or match is None:
            return None
        if match.view_name.startswith(PAGES) and (request.method != "POST" or not may_change(match.view_name)):
            return HttpResponseNotAllowed(["GET", "HEAD", "OPTIONS"])
        request.is_reached = True  # type: ignore[attr-defined]
        if history.is_noted(match.view_name) and request.user.is_authenticated:
            stack.enter_context(history.acting(request.user.get_username()))
        return None


def may_change(name: str) -> bool:
    """Say whether a page takes what is sent: it has a sentence for the log, or a reason to have none."""
    return name in SENTENCES or name in history.UNNOTED


def _is_done(request: HttpRequest, response: HttpResponse, name: str) -> bool:
    if response.status_code >= 400 or not getattr(request, "is_reached", False) or is_noted_nothing(request):
        return False
    if name.startswith(PAGES) and response.status_code == 200 and not (request.POST or request.FILES):
        # A form without anything in it, which the page shows again.
        return False
    # Whoever may not see the administration is sent to its login, which is no refusal by number.
    # A token's user is read without what only the administration asks for.
    may = not name.startswith("admin:") or request.user.is_staff
    return may and request.user.is_authenticated and history.is_noted(name)
