"""Django's test client takes a session's key for what its cookie holds; here that is the session's secret."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.test.client import ClientMixin

from dpal_site.accounts.logins import SessionStore


def _set_login_cookies(client: ClientMixin, request: HttpRequest) -> None:
    _hand_out(client, request.session)  # type: ignore[arg-type]


def _session(client: ClientMixin) -> SessionStore:
    cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
    if cookie:
        return SessionStore(secret=cookie.value)
    session = SessionStore()
    session.save()
    _hand_out(client, session)
    return session


def _hand_out(client: ClientMixin, session: SessionStore) -> None:
    client.cookies[settings.SESSION_COOKIE_NAME] = session.secret
    client.cookies[settings.SESSION_COOKIE_NAME].update(
        {
            "max-age": "",
            "path": "/",
            "domain": settings.SESSION_COOKIE_DOMAIN or "",
            "secure": settings.SESSION_COOKIE_SECURE or "",
            "expires": "",
        }
    )


def let_clients_log_in(patch: Any) -> None:
    """Have every test client hold the secret, by an object with `setattr` as pytest's patches have it."""
    patch.setattr(ClientMixin, "_set_login_cookies", _set_login_cookies)
    patch.setattr(ClientMixin, "session", property(_session))
