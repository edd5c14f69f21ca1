"""A write that is sent again with the same Idempotency-Key happens once, and is answered the same."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now

from annotation.errors import IdempotencyKeyReused, TooOften
from annotation.models.database import wait_for_lock
from annotation.models.joining import RateCount
from annotation.models.people import IdempotentAnswer

KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class StoredReply:
    status: int
    body: str
    repeated: bool = False


def answer_once(*, user: User, key: str, request_digest: bytes, perform: Callable[[], StoredReply]) -> StoredReply:
    """Return the answer given to this key before, or perform the write and keep its answer; refusals are not kept."""
    digest = hashlib.sha256(f"{user.pk}\0{key}".encode()).digest()
    with transaction.atomic():
        # Sent twice at once, the second waits for the first and then finds its answer.
        wait_for_lock(int.from_bytes(digest[:8], signed=True))
        known = IdempotentAnswer.objects.filter(key=digest, created_at__gt=Now() - KEPT).first()
        if known is not None:
            if bytes(known.request_digest) != request_digest:
                raise IdempotencyKeyReused("This Idempotency-Key was used for another request; use a new one.")
            return StoredReply(known.status, known.body, repeated=True)
        answer = perform()
        if answer.status >= 400:
            transaction.set_rollback(True)
            return answer
        # By the database's clock: to a process whose own lags behind, the answer would seem to have lapsed already.
        kept = IdempotentAnswer(
            key=digest,
            user=user,
            request_digest=request_digest,
            status=answer.status,
            body=answer.body,
            created_at=Now(),
        )
        IdempotentAnswer.objects.bulk_create(
            [kept],
            update_conflicts=True,
            unique_fields=["key"],
            update_fields=["user", "request_digest", "status", "body", "created_at"],
        )
    return answer


def forget_old_answers() -> int:
    """Delete the answers whose keys may be used anew; return how many."""
    return IdempotentAnswer.objects.filter(created_at__lt=Now() - KEPT).delete()[0]


def count_try(*, what: str, who: str, limit: int, seconds: int) -> None:
    # Addresses and ids are nobody's business later on; a digest counts as well.
    key = hashlib.blake2b(f"{what}\0{who}".encode(), digest_size=16).hexdigest()
    ends = Now() + timedelta(seconds=seconds)
    counts, is_over = RateCount.objects.filter(key=key), Q(ends_at__lt=Now())
    with transaction.atomic():
        # Those that count at the same time wait for one another.
        RateCount.objects.select_for_update().get_or_create(key=key, defaults={"tries": 0, "ends_at": ends})
        counts.update(
            tries=Case(When(is_over, then=1), default=F("tries") + 1),
            ends_at=Case(When(is_over, then=ends), default=F("ends_at")),
        )
        tries, left = counts.values_list("tries", F("ends_at") - Now()).get()
    refuse_beyond(limit, tries=tries, seconds_left=math.ceil(left.total_seconds()))


def refuse_beyond(limit: int, *, tries: int, seconds_left: int) -> None:
    if tries > limit:
        raise TooOften(
            "This was tried too often. Wait a few minutes and try again.", retry_after_seconds=max(1, seconds_left)
        )


def forget_old_tries() -> int:
    """Delete the counts of windows that are over; return how many."""
    return RateCount.objects.filter(ends_at__lt=Now()).delete()[0]
