"""A write that is sent again with the same Idempotency-Key happens once, and is answered the same."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now

from annotation.errors import IdempotencyKeyReused
from annotation.models.people import IdempotentAnswer

KEPT = timedelta(hours=24)
# By the database's clock: to a process whose own lags behind, the answer would seem to have lapsed already.
KEEP_ANSWER = """
INSERT INTO annotation_idempotentanswer (key, user_id, request_digest, status, body, created_at)
VALUES (%s, %s, %s, %s, %s, now())
ON CONFLICT (key) DO UPDATE SET user_id = excluded.user_id, request_digest = excluded.request_digest,
    status = excluded.status, body = excluded.body, created_at = excluded.created_at
"""


@dataclass(frozen=True, slots=True)
class StoredReply:
    status: int
    body: str
    repeated: bool = False


def answer_once(*, user: User, key: str, request_digest: bytes, perform: Callable[[], StoredReply]) -> StoredReply:
    """Return the answer that was given to this key before, or perform the write and keep its answer with its effects.

    A refusal is not kept: the write did not happen, and may later.
    """
    digest = hashlib.sha256(f"{user.pk}\0{key}".encode()).digest()
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Sent twice at once, the second waits for the first and then finds its answer.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(digest[:8], signed=True)])
        known = IdempotentAnswer.objects.filter(key=digest, created_at__gt=Now() - KEPT).first()
        if known is not None:
            if bytes(known.request_digest) != request_digest:
                raise IdempotencyKeyReused("This Idempotency-Key was used for another request; make a new one.")
            return StoredReply(known.status, known.body, repeated=True)
        answer = perform()
        if answer.status >= 400:
            transaction.set_rollback(True)
            return answer
        with connection.cursor() as cursor:
            cursor.execute(KEEP_ANSWER, [digest, user.pk, request_digest, answer.status, answer.body])
    return answer


def forget_old_answers() -> int:
    """Delete the answers whose keys may be used anew; return how many."""
    return IdempotentAnswer.objects.filter(created_at__lt=Now() - KEPT).delete()[0]
