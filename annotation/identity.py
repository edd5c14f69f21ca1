"""The person behind a request."""

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest


def person_of(request: HttpRequest) -> User:
    """Return who asks; a request without a login has no business here."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Log in first.")
    return request.user
