"""How long somebody stays logged in: up to a while without a request, and never longer than a week or what is set."""

import time
from collections.abc import Callable
from typing import Any

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse

BEGAN, SEEN = "session_began", "session_seen"
# A row written at every click would cost more than it tells.
NOTED_EVERY_SECONDS = 300


def note_login(*, request: HttpRequest, **_signal: Any) -> None:
    """Start both clocks when somebody logs in."""
    request.session[BEGAN] = request.session[SEEN] = int(time.time())


class SessionLimitsMiddleware:
    """End a session that was idle for too long, or has lasted too long however busy it was."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        session = request.session
        if SESSION_KEY in session:
            now = int(time.time())
            began, seen = session.get(BEGAN), session.get(SEEN)
            if began is None or seen is None:
                session[BEGAN] = session[SEEN] = now
            elif now - began > settings.SESSION_LIFETIME_SECONDS or now - seen > settings.SESSION_IDLE_SECONDS:
                session.flush()
            elif now - seen > min(NOTED_EVERY_SECONDS, settings.SESSION_IDLE_SECONDS // 10):
                session[SEEN] = now
        return self.get_response(request)


def forget_ended_sessions() -> int:
    """Delete sessions that are over, and what was noted about their browsers; return how many of the latter."""
    call_command("clearsessions")
    going_on = Session.objects.filter(session_key=OuterRef("session_key"))
    forgotten: int = UserSession.objects.filter(~Exists(going_on)).delete()[0]
    return forgotten
