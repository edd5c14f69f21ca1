"""Sessions under the digest of a secret that only the browser holds, read with their person in one statement."""

# The process of the label pages reads neither table: it asks functions, by the secret.

import hashlib
import re
from contextvars import ContextVar
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from allauth.account import auth_backends as allauth_backends
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth import backends as django_backends
from django.contrib.auth.models import User
from django.contrib.sessions import middleware
from django.contrib.sessions.backends import db
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import DEFAULT_DB_ALIAS
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from annotation.models.database import Columns, fetch_one
from dpal_site.models import Session
from privacy.wording import in_english

SESSION = "SELECT session_data, seen_at FROM dpal_site_session_of(%s)"
SESSION_BY_KEY = "SELECT session_data, seen_at FROM dpal_site_session WHERE session_key = %s AND expire_date > now()"
SEEN = "SELECT dpal_site_session_seen(%s)"
ENDED = "SELECT dpal_site_session_ended(%s)"
USER = Columns(User, "person")
# With the person, who is asked for next.
SESSION_AND_PERSON = (
    f"SELECT kept.session_data, kept.seen_at, {USER.sql} FROM dpal_site_session kept"  # noqa: S608 - names of columns
    " LEFT JOIN auth_user person ON person.id = kept.person_id"
    " WHERE kept.session_key = %s AND kept.expire_date > now()"
)
PERSON = f"SELECT {USER.sql} FROM auth_user person WHERE person.id = %s"  # noqa: S608 - names of columns
# In the model's order, as `from_db` takes them.
VISITOR_FIELDS = ["id", "is_superuser", "username", "is_staff", "is_active"]
VISITOR = f"SELECT {', '.join(VISITOR_FIELDS)}, verified FROM dpal_site_visitor(%s, %s, %s)"  # noqa: S608 - names
# As `AbstractBaseUser.get_session_auth_hash` has it.
KEY_SALT = "django.contrib.auth.models.AbstractBaseUser.get_session_auth_hash"
BLOCK_BYTES = 64
SECRET = re.compile(r"[a-z0-9]{32}")
_secret: ContextVar[str] = ContextVar("secret of the visitor's session", default="")
# Read with the session of this request, and used once.
_beside: ContextVar[User | None] = ContextVar("person of the visitor's session", default=None)


class NotWritable(Exception):
    """The process of the label pages would change a session, which it may not."""


def session_digest(secret: str) -> str:
    """Return the key that a session stands under; `dpal_site_session_digest` says the same."""
    return hashlib.sha256(secret.encode()).hexdigest()[:40]


class SessionStore(db.SessionStore):
    """Sessions in the database; `session_key` opens nothing, `secret` is what the browser holds."""

    def __init__(self, session_key: str | None = None, *, secret: str | None = None) -> None:
        # The sign-in library opens the visitor's session anew by its key: it stays the one whose secret was shown.
        if secret is None and session_key and session_digest(_secret.get()) == session_key:
            secret = _secret.get()
        self.secret = secret or ""
        self.seen_at: datetime | None = None
        super().__init__(session_digest(secret) if secret else session_key)

    @classmethod
    def get_model_class(cls) -> type[AbstractBaseSession]:
        return Session

    def load(self) -> dict[str, Any]:
        if not self.secret:
            row = fetch_one(SESSION_BY_KEY, [self.session_key])
        elif settings.SERVES_LABELS_ALONE:
            row = fetch_one(SESSION, [self.secret])
        else:
            row = fetch_one(SESSION_AND_PERSON, [self.session_key])
        if row is None:
            self._session_key = None
            return {}
        data, self.seen_at, *person = row
        if person:
            _beside.set(USER.build(iter(person)))
        return self.decode(data)

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = cast(Session, super().create_model_instance(data))
        person = data.get(SESSION_KEY)
        row.person_id, row.seen_at = (None if person is None else int(person)), self.seen_at
        return row

    def save(self, must_create: bool = False) -> None:
        if settings.SERVES_LABELS_ALONE:
            raise NotWritable(in_english("the label process writes no session"))
        super().save(must_create=must_create)

    def delete(self, session_key: str | None = None) -> None:
        """End it; the label process ends the one it was shown the secret of."""
        if not settings.SERVES_LABELS_ALONE:
            super().delete(session_key)
        elif self.secret and session_key in (None, self.session_key):
            fetch_one(ENDED, [self.secret])

    def note_seen(self) -> None:
        """Write down that somebody was here just now, without rewriting what the session holds."""
        fetch_one(SEEN, [self.secret])

    def _get_new_session_key(self) -> str:
        secret: str = super()._get_new_session_key()  # type: ignore[misc]
        self.secret = secret
        _secret.set(secret)
        return session_digest(secret)


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's own, but that the cookie holds the secret and not the key."""

    def process_request(self, request: HttpRequest) -> None:
        shown = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        secret = shown if SECRET.fullmatch(shown) else ""
        _secret.set(secret)
        _beside.set(None)
        request.session = SessionStore(secret=secret)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response = super().process_response(request, response)
        cookie = response.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie is not None and cookie.value:
            response.cookies[settings.SESSION_COOKIE_NAME] = cast(SessionStore, request.session).secret
        return response


class ByUserName(django_backends.ModelBackend):
    def get_user(self, user_id: int) -> User | None:
        return _person(self, user_id)


class ByEmail(allauth_backends.AuthenticationBackend):  # type: ignore[misc]
    def get_user(self, user_id: int) -> User | None:
        return _person(self, user_id)


def _person(backend: django_backends.ModelBackend, user_id: int) -> User | None:
    user = _visitor(user_id) if settings.SERVES_LABELS_ALONE else _read_beside(user_id) or _read(user_id)
    return user if user and backend.user_can_authenticate(user) else None


def _read_beside(user_id: int) -> User | None:
    """Return whom the session was read with; once, for the row may have changed by the second time."""
    user = _beside.get()
    _beside.set(None)
    return user if user and user.pk == user_id else None


def _read(user_id: int) -> User | None:
    row = fetch_one(PERSON, [user_id])
    return USER.build(iter(row)) if row else None


def _visitor(user_id: int) -> User | None:
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    rows = [fetch_one(VISITOR, [_secret.get(), *_blocks(key)]) for key in keys]
    row = rows[0]
    if row is None or row[0] != user_id:
        return None
    *known, verifier = row
    verified = bytes(verifier).hex()
    if len(keys) > 1:
        # Django would write a session that was begun under an earlier key anew, which this process may not.
        held = SessionStore(secret=_secret.get()).load().get(HASH_SESSION_KEY, "")
        under_keys = [bytes(each[-1]).hex() for each in rows if each is not None]
        verified = next((each for each in under_keys if constant_time_compare(each, held)), verified)
    user = User.from_db(DEFAULT_DB_ALIAS, VISITOR_FIELDS, known)
    user.get_session_auth_hash = lambda: verified  # type: ignore[method-assign]
    return user


@lru_cache(maxsize=4)
def _blocks(secret_key: str) -> tuple[bytes, bytes]:
    """Return the inner and outer block of HMAC-SHA-256 (RFC 2104) under the key that sessions are checked with."""
    key = hashlib.sha256((KEY_SALT + secret_key).encode()).digest().ljust(BLOCK_BYTES, b"\0")
    inner, outer = (bytes(byte ^ pad for byte in key) for pad in (0x36, 0x5C))
    return inner, outer
