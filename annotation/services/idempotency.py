"""A write that is sent again with the same Idempotency-Key happens once, and is answered the same."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from annotation.errors import KeyReused
from annotation.idempotent_models import IdempotentAnswer

KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a write was answered with."""

    status: int
    body: str
    repeated: bool = False


def answer_once(*, user: User, key: str, request_digest: bytes, perform: Callable[[], Answer]) -> Answer:
    """Return the answer that was given to this key before, or perform the write and keep its answer with its effects.

    A refusal is not kept: the write did not happen, and may later.
    """
    digest = hashlib.sha256(f"{user.pk}\0{key}".encode()).digest()
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Sent twice at once, the second waits for the first and then finds its answer.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(digest[:8], signed=True)])
        known = IdempotentAnswer.objects.filter(key=digest, created_at__gt=timezone.now() - KEPT).first()
        if known is not None:
            if bytes(known.request_digest) != request_digest:
                raise KeyReused("This Idempotency-Key was used for another request; make a new one.")
            return Answer(known.status, known.body, repeated=True)
        answer = perform()
        if answer.status >= 400:
            transaction.set_rollback(True)
            return answer
        IdempotentAnswer.objects.filter(key=digest).delete()
        IdempotentAnswer.objects.create(
            key=digest, user=user, request_digest=request_digest, status=answer.status, body=answer.body
        )
    return answer


def forget_old_answers() -> int:
    """Delete the answers whose keys may be used anew; return how many."""
    return IdempotentAnswer.objects.filter(created_at__lt=timezone.now() - KEPT).delete()[0]
