"""API tokens: shown once when made, stored as a digest, scoped, expiring, revocable."""

import hashlib
import secrets
from datetime import timedelta
from enum import StrEnum

from django.contrib.auth.models import User
from django.db.models import F
from django.utils import timezone

from annotation.models import ApiToken

PREFIX = "dpal_"
MAXIMUM_LIFETIME = timedelta(days=366)


class Scope(StrEnum):
    """What a token may do, within what its person may do."""

    PROJECTS_READ = "projects:read"
    DATASETS_WRITE = "datasets:write"
    LABELS_WRITE = "labels:write"
    LABELS_READ = "labels:read"
    LEDGER_READ = "ledger:read"
    MODELS_READ = "models:read"


def create_token(*, user: User, name: str, scopes: list[str], lifetime: timedelta) -> tuple[ApiToken, str]:
    """Make a token and return it with its only copy in clear."""
    unknown = set(scopes) - set(Scope)
    if unknown or not scopes:
        raise ValueError(f"scopes must be among {sorted(Scope)}, got {sorted(scopes)}")
    if not timedelta(0) < lifetime <= MAXIMUM_LIFETIME:
        raise ValueError(f"lifetime must be above 0 and at most 366 days, got {lifetime}")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user, name=name, digest=_digest(secret), scopes=sorted(scopes), expires_at=timezone.now() + lifetime
    )
    return token, secret


def find_token(*, secret: str) -> ApiToken | None:
    """Return the live token behind `secret`; its last use is noted to the minute."""
    now = timezone.now()
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=_digest(secret), revoked_at=None, expires_at__gt=now, user__is_active=True)
        .first()
    )
    if token and (token.last_used_at is None or now - token.last_used_at > timedelta(minutes=1)):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def revoke_token(*, token: ApiToken) -> ApiToken:
    """End a token; revoking twice keeps the first time."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    token.refresh_from_db()
    return token


def live_tokens(*, user: User) -> list[ApiToken]:
    """Return the tokens of `user` that still open something, the one that ends first on top."""
    return list(user.api_tokens.filter(revoked_at=None, expires_at__gt=timezone.now()).order_by(F("expires_at").asc()))


def _digest(secret: str) -> str:
    # The secret has 256 bits of entropy, so a plain hash is enough: there is nothing to guess.
    return hashlib.sha256(secret.encode()).hexdigest()
