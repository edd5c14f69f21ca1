"""Every request that changes something leaves a line that says who did what."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.http import HttpRequest, HttpResponse

from annotation.services import history

READING = ("GET", "HEAD", "OPTIONS", "TRACE")


class AccountabilityMiddleware:
    """Name the person to the database while a page changes something, and note what was done."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in READING:
            return self.get_response(request)
        with ExitStack() as stack:
            request.acting = stack  # type: ignore[attr-defined]
            response = self.get_response(request)
        match = request.resolver_match
        noted = match is not None and response.status_code < 400 and history.is_noted(match.view_name)
        if match and noted and request.user.is_authenticated:
            history.note_action(
                actor=request.user.get_username(),
                route=match.view_name,
                arguments=match.kwargs,
                project_id=getattr(request, "noted_project", None),
            )
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        """Let the change log know whose change it is; programs change no configuration."""
        stack, match = getattr(request, "acting", None), request.resolver_match
        if stack and match and history.is_noted(match.view_name) and request.user.is_authenticated:
            stack.enter_context(history.acting(request.user.get_username()))
