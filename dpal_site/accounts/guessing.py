"""Limits on password tries: an attacker is slowed down, the owner of the account still gets in."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from allauth.core.internal.ratelimit import get_ip
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.db.models import F, Q
from django.db.models.functions import Greatest, Now
from django.http import HttpRequest, HttpResponse

from annotation.models.database import fetch_one
from annotation.models.joining import RateCount
from annotation.work.services.idempotency import refuse_beyond
from dpal_site.models import CachedCount

SALT = "dpal_site.accounts.guessing"
COOKIE_SECONDS = 180 * 24 * 3600
MOST_ACCOUNTS = 8
# A row is forgotten so long after its last try.
WINDOW_SECONDS = 3600
COUNT = """
INSERT INTO annotation_ratecount AS counted (key, tries, next_at, ends_at)
VALUES (%(key)s, 1, 'epoch', now() + make_interval(secs => %(window)s))
ON CONFLICT (key) DO UPDATE SET
    tries = CASE WHEN counted.ends_at < now() THEN 1 ELSE counted.tries + 1 END,
    next_at = CASE
        WHEN counted.ends_at < now() OR counted.tries + 1 < %(free)s THEN 'epoch'
        ELSE now() + make_interval(secs => least(2.0 ^ least(counted.tries + 1 - %(free)s, 30), %(longest)s))
    END,
    ends_at = now() + make_interval(secs => %(window)s)
WHERE counted.next_at <= now() OR counted.ends_at < now()
RETURNING tries
"""
LEFT = "SELECT ceil(extract(epoch FROM next_at - now()))::int FROM annotation_ratecount WHERE key = %s"


@dataclass(frozen=True, slots=True)
class Limit:
    what: str
    free: int
    longest_seconds: int


CLIENT = Limit("client", free=5, longest_seconds=900)
BROWSER = Limit("browser", free=10, longest_seconds=900)
# Reached by many networks together alone, since each of them is slowed by then.
STRANGERS = Limit("strangers", free=100, longest_seconds=30)


@dataclass(frozen=True, slots=True)
class Attempt:
    keys: tuple[str, ...]


def count_password_try(request: HttpRequest, name: str) -> Attempt:
    account = account_of(name)
    browser = known_browser(request, account)
    lanes = [(BROWSER, browser)] if browser else [(CLIENT, get_ip(request)), (STRANGERS, "")]
    counted = []
    for limit, who in lanes:
        key = _key(limit, account, who)
        _count(limit, key)
        counted.append(key)
    return Attempt(tuple(counted))


def take_back(attempt: Attempt) -> None:
    RateCount.objects.filter(key__in=attempt.keys).update(
        tries=Greatest(F("tries") - 1, 0), next_at=datetime.fromtimestamp(0, UTC)
    )


def forget(request: HttpRequest, name: str) -> None:
    """Let who has just shown that the account's mail is theirs begin anew."""
    account = account_of(name)
    keys = [_key(CLIENT, account, get_ip(request)), _key(STRANGERS, account, "")]
    RateCount.objects.filter(key__in=keys).delete()


def forget_old_counts() -> int:
    return CachedCount.objects.filter(expires__lt=Now()).delete()[0]


def cache_key(key: str, prefix: str, version: int) -> str:
    """Return under what the cache keeps a count: a digest, for keys hold addresses."""
    return hashlib.blake2b(f"{prefix}:{version}:{key}".encode(), digest_size=32).hexdigest()


def account_of(name: str) -> str:
    typed = name.strip().lower()
    named = Q(username__iexact=typed) | Q(email__iexact=typed) | Q(emailaddress__email__iexact=typed)
    found = User.objects.filter(named).order_by("pk").values_list("pk", flat=True).first()
    return f"name {typed}" if found is None else f"user {found}"


def known_browser(request: HttpRequest, account: str) -> str:
    browser, marks = _read(request)
    return browser if browser and _mark(browser, account) in marks else ""


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Give a browser the cookie that says it was in this account; of whom it speaks nobody reads from it."""
    browser, marks = _read(request)
    browser = browser or secrets.token_urlsafe(16)
    own = _mark(browser, f"user {user.pk}")
    kept = [mark for mark in marks if mark != own][1 - MOST_ACCOUNTS :]
    response.set_cookie(
        settings.KNOWN_BROWSER_COOKIE_NAME,
        signing.dumps([browser, [*kept, own]], salt=SALT),
        max_age=COOKIE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _read(request: HttpRequest) -> tuple[str, list[str]]:
    try:
        browser, marks = signing.loads(
            request.COOKIES.get(settings.KNOWN_BROWSER_COOKIE_NAME, ""), salt=SALT, max_age=COOKIE_SECONDS
        )
    except signing.BadSignature:
        return "", []
    return browser, marks


def _mark(browser: str, account: str) -> str:
    return hashlib.blake2b(
        f"{browser}\0{account}".encode(), key=settings.SECRET_KEY.encode()[:64], digest_size=12
    ).hexdigest()


def _key(limit: Limit, account: str, who: str) -> str:
    # Addresses and names are nobody's business later on.
    return hashlib.blake2b(
        f"{limit.what}\0{account}\0{who}".encode(), key=settings.SECRET_KEY.encode()[:64], digest_size=32
    ).hexdigest()


def _count(limit: Limit, key: str) -> None:
    values: dict[str, str | int] = {
        "key": key,
        "free": limit.free,
        "longest": limit.longest_seconds,
        "window": WINDOW_SECONDS,
    }
    if fetch_one(COUNT, values) is None:
        (seconds,) = fetch_one(LEFT, [key]) or (1,)
        refuse_beyond(0, tries=1, seconds_left=max(1, seconds))
