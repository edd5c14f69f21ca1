"""Personal tokens, and digests and sealed texts of secrets."""

import base64
import hashlib
import hmac
import secrets
from datetime import timedelta
from enum import StrEnum

from cryptography.fernet import Fernet
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from annotation.models import ApiToken
from annotation.models.database import wait_for_lock
from annotation.models.people import OutgoingKey
from annotation.work.services import idempotency


def secret_digest(secret: str) -> str:
    """Return what such a secret is looked up by; it is made of random bits, so there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


def sealer(purpose: bytes) -> Fernet:
    """Return what seals secrets of one purpose, under a key that is not in the database and never changes."""
    key = hashlib.blake2b(purpose, key=settings.PSEUDONYM_KEY.encode()[:64], digest_size=32).digest()
    return Fernet(base64.urlsafe_b64encode(key))


def outgoing_secrets(purpose: bytes, salt: bytes) -> list[bytes]:
    """Derive a secret that the site gives to others and no row holds: under today's key, then under those before it."""
    seal = sealer(b"outgoing keys")
    held = OutgoingKey.objects.filter(Q(ends_at=None) | Q(ends_at__gt=Now())).order_by("-pk")
    keys = list(held.values_list("sealed", flat=True)) or [_first_key()]
    return [hmac.new(seal.decrypt(bytes(key)), purpose + b"\0" + salt, hashlib.sha256).digest() for key in keys]


def link_secret(purpose: bytes, salt: bytes, *, digest: str = "") -> str:
    """Return the secret of a link that is new, or of the one with this digest, under whichever key it was made."""
    links = [base64.urlsafe_b64encode(each).decode()[:32] for each in outgoing_secrets(purpose, salt)]
    return next((link for link in links if secret_digest(link) == digest), links[0])


def _first_key() -> bytes:
    with transaction.atomic():
        wait_for_lock(KEY_LOCK)
        first = OutgoingKey.objects.filter(ends_at=None).first()
        return bytes(first.sealed) if first is not None else _new_key()


def replace_outgoing_key(*, kept: timedelta) -> None:
    """Derive new secrets from a new key, and honour what others hold under the old one for a while."""
    with transaction.atomic():
        wait_for_lock(KEY_LOCK)
        OutgoingKey.objects.filter(ends_at__lt=Now()).delete()
        OutgoingKey.objects.filter(ends_at=None).update(ends_at=Now() + kept)
        _new_key()


def _new_key() -> bytes:
    sealed = sealer(b"outgoing keys").encrypt(secrets.token_bytes(32))
    OutgoingKey.objects.create(sealed=sealed)
    return sealed


PREFIX = "dpal_"
KEY_LOCK = int.from_bytes(b"outgoing")
MAXIMUM_LIFETIME = timedelta(days=366)
NOTED_EVERY = timedelta(minutes=1)


class Scope(StrEnum):
    PROJECTS_READ = "projects:read"
    PROJECTS_WRITE = "projects:write"
    # What pays people.
    STUDIES_WRITE = "studies:write"
    DATASETS_WRITE = "datasets:write"
    LABELS_WRITE = "labels:write"
    LABELS_READ = "labels:read"
    LEDGER_READ = "ledger:read"
    MODELS_READ = "models:read"
    # What the token's person is told by mail: whoever could leave it out silently would not be noticed.
    MAILS_WRITE = "mails:write"
    # The site's administration, for those who administer it.
    OPERATIONS_READ = "operations:read"
    OPERATIONS_WRITE = "operations:write"


def create_token(*, user: User, name: str, scopes: list[str], lifetime: timedelta) -> tuple[ApiToken, str]:
    unknown = set(scopes) - set(Scope)
    if unknown or not scopes:
        raise ValueError(f"scopes must be among {sorted(Scope)}, got {sorted(scopes)}")
    if not timedelta(0) < lifetime <= MAXIMUM_LIFETIME:
        raise ValueError(f"lifetime must be above 0 and at most 366 days, got {lifetime}")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user, name=name, digest=secret_digest(secret), scopes=sorted(scopes), expires_at=Now() + lifetime
    )
    token.refresh_from_db(fields=["expires_at"])
    return token, secret


def find_token(*, secret: str) -> ApiToken | None:
    """Return the live token behind `secret`; its last use is noted to the minute."""
    # By the database's clock, the one clock of all processes.
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=secret_digest(secret), revoked_at=None, expires_at__gt=Now(), user__is_active=True)
        .annotate(stale=Q(last_used_at=None) | Q(last_used_at__lt=Now() - NOTED_EVERY))
        .first()
    )
    if token and token.stale:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=Now())
    return token


def use_token(*, secret: str, limit: int) -> ApiToken | None:
    """Return the live token behind `secret`, count the request, and refuse it beyond `limit` in a minute."""
    token = find_token(secret=secret)
    if token is not None:
        idempotency.count_try(what="api", who=token.digest, limit=limit, seconds=60)
    return token


def revoke_token(*, token: ApiToken) -> ApiToken:
    """End a token; revoking twice keeps the first time."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=Now())
    token.refresh_from_db()
    return token


def live_tokens(*, user: User) -> list[ApiToken]:
    """Return the tokens of `user` that still open something, the one that ends first on top."""
    return list(user.api_tokens.filter(revoked_at=None, expires_at__gt=Now()).order_by(F("expires_at").asc()))
