"""The person behind a request."""

from allauth.account.adapter import get_adapter
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest


def person_of(request: HttpRequest) -> User:
    """Return who asks; a request without a login has no business here."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Log in first.")
    return request.user


def network_address(request: HttpRequest) -> str:
    address: str = get_adapter().get_client_ip(request)
    return address


def note_nothing(request: HttpRequest) -> None:
    """Leave no line about this request: it was refused, or repeats what had been done already."""
    request.noted_nothing = True  # type: ignore[attr-defined]


def is_noted_nothing(request: HttpRequest) -> bool:
    return getattr(request, "noted_nothing", False)


def note_about(request: HttpRequest, project_id: int | None) -> None:
    """Let the line about this request stand in a project's log, where the address does not name the project."""
    request.noted_project = project_id  # type: ignore[attr-defined]
