"""Who asks, found out at every click: the session and the person, each by one prepared statement.

Django's own stores and backends ask the same, but write the statement anew every time, which takes longer than the
answer.
"""

from typing import Any

from allauth.account import auth_backends as allauth_backends
from django.contrib.auth import backends as django_backends
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db

from annotation.prepared import fetch_one
from annotation.rows import Columns

SESSION = "SELECT session_data FROM django_session WHERE session_key = %s AND expire_date > now()"
USER = Columns(User, "person")
PERSON = f"SELECT {USER.sql} FROM auth_user person WHERE person.id = %s"  # noqa: S608 - names of columns


class SessionStore(db.SessionStore):
    """Sessions in the database."""

    def load(self) -> dict[str, Any]:
        """Return what the session holds; nothing, and no key, where there is none or it is over."""
        row = fetch_one(SESSION, [self.session_key])
        if row is None:
            self._session_key = None
            return {}
        return self.decode(row[0])


class ByUserName(django_backends.ModelBackend):
    """Signing in by user name, and looking up whose session it is."""

    def get_user(self, user_id: int) -> User | None:
        """Return who has this id, if they may still come in."""
        return _person(self, user_id)


class ByEmail(allauth_backends.AuthenticationBackend):  # type: ignore[misc]
    """Signing in by user name or email, and looking up whose session it is."""

    def get_user(self, user_id: int) -> User | None:
        """Return who has this id, if they may still come in."""
        return _person(self, user_id)


def _person(backend: django_backends.ModelBackend, user_id: int) -> User | None:
    row = fetch_one(PERSON, [user_id])
    user = row and USER.build(iter(row))
    return user if user and backend.user_can_authenticate(user) else None
