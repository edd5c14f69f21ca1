"""The log of security events: one structured line each, with ids and never a name, a text or a secret."""

import hashlib
import ipaddress
import logging
from collections.abc import Callable
from typing import Any

from allauth.account import signals as account_signals
from allauth.mfa import signals as factor_signals
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from annotation.people.identity import is_noted_nothing, network_address
from annotation.work.services import history
from dpal_site.middleware import Middleware

logger = logging.getLogger(__name__)
READING = ("GET", "HEAD", "OPTIONS")
REFUSED = frozenset({400, 401, 403, 404, 405, 413, 421})
TOO_OFTEN = 429
# What happens to an account, by the signal that tells it.
ACCOUNT_EVENTS = {
    account_signals.user_signed_up: "account.opened",
    account_signals.password_set: "password.set",
    account_signals.password_changed: "password.changed",
    account_signals.password_reset: "password.reset",
    account_signals.email_added: "email.added",
    account_signals.email_removed: "email.removed",
    account_signals.email_changed: "email.changed",
}
FACTOR_EVENTS = {
    factor_signals.authenticator_added: "factor.added",
    factor_signals.authenticator_removed: "factor.removed",
    factor_signals.authenticator_reset: "factor.renewed",
    factor_signals.authenticator_used: "factor.used",
    factor_signals.authentication_failed: "factor.failed",
}
TOKEN_ROUTES = {"annotation:tokens": "token.made", "annotation:revoke_token": "token.revoked"}
_kept: list[Callable[..., None]] = []


def note(event: str, request: HttpRequest | None = None, **fields: Any) -> None:
    """Write one line; the time, in UTC, and the request's id come with every line of the site."""
    if request is not None:
        fields.setdefault("user_id", _person_id(request))
        fields["network"] = network_of(request)
        fields["route"] = request.resolver_match.route if request.resolver_match else ""
    logger.info("security", extra={"security": event, **{key: one for key, one in fields.items() if one is not None}})


def network_of(request: HttpRequest) -> str:
    """Return the network a request came from, so far that attacks can be told apart and people cannot."""
    try:
        address = ipaddress.ip_address(network_address(request))
    except (ValueError, PermissionDenied):
        # Nobody asks: a command, or a proxy that says nothing.
        return ""
    return str(ipaddress.ip_network((address, 24 if address.version == 4 else 48), strict=False))


def account_digest(name: str) -> str:
    """Return what stands for the name somebody typed: people type their passwords there, too."""
    return hashlib.blake2b(
        name.strip().lower().encode(), key=settings.SECRET_KEY.encode()[:64], digest_size=8
    ).hexdigest()


def _person_id(request: HttpRequest) -> Any:
    token = getattr(request, "auth", None)
    if token is not None and hasattr(token, "user_id"):
        return token.user_id
    session = getattr(request, "session", None)
    return session.get(SESSION_KEY) if session is not None else None


class SecurityLogMiddleware(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        status = response.status_code
        if status in REFUSED:
            note("access.refused", request, method=_method(request), status=status, token_id=_token_id(request))
        elif status == TOO_OFTEN:
            note("limit.reached", request, method=_method(request), status=status, token_id=_token_id(request))
        elif request.resolver_match:
            self._note_done(request, response, request.resolver_match.view_name)
        return response

    def _note_done(self, request: HttpRequest, response: HttpResponse, name: str) -> None:
        if name.startswith("api:") and (token := _token_id(request)) is not None:
            note("token.used", request, method=request.method, status=response.status_code, token_id=token)
        elif request.method not in READING and response.status_code < 400 and _is_done(request, name):
            kind = "administration.done" if name.startswith(("admin:", "operations:")) else "change.done"
            note(TOKEN_ROUTES.get(name, kind), request, method=request.method, status=response.status_code)


def _is_done(request: HttpRequest, name: str) -> bool:
    return getattr(request, "is_reached", False) and not is_noted_nothing(request) and history.is_noted(name)


def _method(request: HttpRequest) -> str:
    # A client may send any word for one.
    return request.method if request.method in (*READING, "POST", "PUT", "PATCH", "DELETE") else "other"


def _token_id(request: HttpRequest) -> int | None:
    found: int | None = getattr(getattr(request, "auth", None), "pk", None)
    return found


def connect() -> None:
    user_logged_in.connect(_logged_in, dispatch_uid="security.login")
    user_login_failed.connect(_login_failed, dispatch_uid="security.login_failed")
    user_logged_out.connect(_logged_out, dispatch_uid="security.logout")
    account_signals.email_confirmed.connect(_email_confirmed, dispatch_uid="security.email_confirmed")
    account_signals.authentication_step_completed.connect(_step, dispatch_uid="security.step")
    for signal, event in {**ACCOUNT_EVENTS, **FACTOR_EVENTS}.items():
        _kept.append(_listener(event))
        signal.connect(_kept[-1], dispatch_uid=f"security.{event}")


def _listener(event: str) -> Callable[..., None]:
    def listen(request: HttpRequest | None = None, user: Any = None, **told: Any) -> None:
        factor = getattr(told.get("authenticator"), "type", None)
        note(event, request, user_id=getattr(user, "pk", None), factor=str(factor) if factor else None)

    return listen


def _logged_in(request: HttpRequest | None = None, user: Any = None, **_: Any) -> None:
    note("login.done", request, user_id=getattr(user, "pk", None))


def _step(request: HttpRequest, user: Any = None, method: str = "", **told: Any) -> None:
    # Which factor was shown: a login may take two, and so may being asked again.
    factor = told.get("type") or method
    again = "again" if told.get("reauthenticated") else None
    note("login.step", request, user_id=getattr(user, "pk", None), factor=str(factor), asked=again)


def _login_failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    name = str(credentials.get("username") or credentials.get("email") or credentials.get("login") or "")
    note("login.failed", request, account=account_digest(name))


def _logged_out(request: HttpRequest | None = None, user: Any = None, **_: Any) -> None:
    note("logout.done", request, user_id=getattr(user, "pk", None))


def _email_confirmed(request: HttpRequest | None = None, email_address: Any = None, **_: Any) -> None:
    note("email.confirmed", request, user_id=getattr(email_address, "user_id", None))
