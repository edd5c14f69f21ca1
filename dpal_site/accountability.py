"""Every request that changes something leaves a line that says who did what, and no other request leaves one."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from annotation.budget.action_words import SENTENCES
from annotation.people.identity import is_noted_nothing
from annotation.work.services import history
from dpal_site.middleware import Middleware

READING = ("GET", "HEAD", "OPTIONS", "TRACE")
PROGRAMS = "api:"
# Programs and the administration have methods of their own.
NO_PAGES = (PROGRAMS, "admin:")


class AccountabilityMiddleware(Middleware):
    """Name the person to the database while a page changes something, and note what was done."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in READING:
            return self.get_response(request)
        with ExitStack() as stack:
            request.acting = stack  # type: ignore[attr-defined]
            response = self.get_response(request)
        match = request.resolver_match
        route = _route_of(request)
        if match and _is_done(request, response, route):
            history.note_action(
                actor=request.user.get_username(),
                route=route,
                arguments=match.kwargs,
                project_id=getattr(request, "noted_project", None),
            )
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        stack, match = getattr(request, "acting", None), request.resolver_match
        if stack is None or match is None:
            return None
        if is_page(match.view_name) and (request.method != "POST" or not may_change(match.view_name)):
            return HttpResponseNotAllowed(["GET", "HEAD", "OPTIONS"])
        request.is_reached = True  # type: ignore[attr-defined]
        if not history.is_noted(_route_of(request)):
            return None
        if match.view_name.startswith(PROGRAMS):
            request.act_as = lambda name: stack.enter_context(history.acting(name))  # type: ignore[attr-defined]
        elif request.user.is_authenticated:
            stack.enter_context(history.acting(request.user.get_username()))
        return None


def is_page(name: str) -> bool:
    return name.startswith(tuple(history.NOTED_APPS)) and not name.startswith(NO_PAGES)


def may_change(name: str) -> bool:
    """Say whether a page takes what is sent: it has a sentence for the log, or a reason to have none."""
    return name in SENTENCES or name in history.UNNOTED


def _route_of(request: HttpRequest) -> str:
    name = request.resolver_match.view_name if request.resolver_match else ""
    return _routes_by_method().get((name, request.method or ""), name)


@cache
def _routes_by_method() -> Mapping[tuple[str, str], str]:
    from dpal_site.api import api  # noqa: PLC0415 - it loads all apps, and this module is loaded with the settings

    return {
        (f"api:{view.operations[0].view_func.__name__}", method): f"api:{operation.view_func.__name__}"
        for _prefix, router in api._routers
        for view in router.path_operations.values()
        for operation in view.operations
        for method in operation.methods
    }


def _is_done(request: HttpRequest, response: HttpResponse, name: str) -> bool:
    if response.status_code >= 400 or not getattr(request, "is_reached", False) or is_noted_nothing(request):
        return False
    if is_page(name) and response.status_code == 200 and not (request.POST or request.FILES):
        # A form without anything in it, which the page shows again.
        return False
    # Whoever may not see the administration is sent to its login, which is no refusal by number.
    # A token's user is read without what only the administration asks for.
    may = not name.startswith("admin:") or request.user.is_staff
    return may and request.user.is_authenticated and history.is_noted(name)
