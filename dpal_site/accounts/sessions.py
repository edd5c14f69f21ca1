"""Limits on sessions: idle time and total age."""

import time
from typing import Any, cast

from allauth.mfa import signals as factor_signals
from allauth.usersessions.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse

from dpal_site.accounts.logins import SessionStore
from dpal_site.middleware import Middleware
from dpal_site.models import Session

BEGAN, SEEN = "session_began", "session_seen"
# A row written at every click would cost more than it tells.
NOTED_EVERY_SECONDS = 300


def note_login(*, request: HttpRequest, **_signal: Any) -> None:
    request.session[BEGAN] = request.session[SEEN] = int(time.time())


def end_others_with_a_new_factor() -> None:
    """Have every other session of a person end whose second factors change, as with a new password."""
    changes = (
        factor_signals.authenticator_added,
        factor_signals.authenticator_removed,
        factor_signals.authenticator_reset,
    )
    for number, change in enumerate(changes):
        change.connect(_end_others, dispatch_uid=f"dpal_site.accounts.sessions.{number}")


def _end_others(request: HttpRequest, user: Any, **_signal: Any) -> None:
    # What this session was told about its person may not hold any more.
    request.session.pop("second_factor", None)
    others = UserSession.objects.filter(user=user).exclude(session_key=request.session.session_key or "")
    get_adapter().end_sessions(list(others))


def end_sessions(*, username: str | None = None) -> int:
    chosen = Session.objects.filter(expire_date__gt=Now())
    if username is not None:
        chosen = chosen.filter(person=User.objects.get(username=username))
    ended: int = chosen.delete()[0]
    forget_ended_sessions()
    return ended


class SessionLimitsMiddleware(Middleware):
    """End a session that was idle for too long, or has lasted too long however busy it was."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        session = cast(SessionStore, request.session)
        if SESSION_KEY in session:
            now = int(time.time())
            began, seen = session.get(BEGAN), session.get(SEEN)
            if began is None or seen is None:
                session[BEGAN] = session[SEEN] = now
                return self.get_response(request)
            if session.seen_at is not None:
                seen = max(seen, int(session.seen_at.timestamp()))
            if now - began > settings.SESSION_LIFETIME_SECONDS or now - seen > settings.SESSION_IDLE_SECONDS:
                session.flush()
            elif now - seen > min(NOTED_EVERY_SECONDS, settings.SESSION_IDLE_SECONDS // 10):
                if settings.SERVES_LABELS_ALONE:
                    session.note_seen()
                else:
                    session[SEEN] = now
        return self.get_response(request)


def forget_ended_sessions() -> int:
    SessionStore.clear_expired()
    going_on = Session.objects.filter(session_key=OuterRef("session_key"))
    forgotten: int = UserSession.objects.filter(~Exists(going_on)).delete()[0]
    return forgotten
