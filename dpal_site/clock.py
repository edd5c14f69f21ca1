"""The clock: it sends a periodic task unless the one before still waits for a worker."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry
from django.db import DatabaseError, close_old_connections, transaction
from django.db.models.functions import Now

logger = logging.getLogger(__name__)


class Clock(PersistentScheduler):
    """Sends each periodic task once until a worker takes it or it expires."""

    def apply_async(self, entry: ScheduleEntry, producer: Any = None, advance: bool = True, **options: Any) -> Any:
        # Unlike a worker's task, nothing does this around ours.
        close_old_connections()
        name, given = str(entry.name), dict(entry.options or {})
        if not note_sent(name, seconds=given["expires"]):
            logger.info("%s waits already, so it is not sent again", name)
            return None
        try:
            return super().apply_async(entry, producer=producer, advance=advance, **options)
        except Exception:
            note_taken(name)
            raise


def note_sent(name: str, *, seconds: float) -> bool:
    """Note that a task is about to be sent; false where the one before waits, and has not expired after so long."""
    from dpal_site.models import SentTask  # noqa: PLC0415 - Celery loads this module before Django has its models

    # While the database is away everything is sent, and expires.
    with _asked_database(), transaction.atomic():
        if SentTask.objects.filter(name=name, sent_at__gt=Now() - timedelta(seconds=seconds)).exists():
            return False
        SentTask.objects.update_or_create(name=name, defaults={"sent_at": Now()})
    return True


def note_taken(name: str) -> None:
    from dpal_site.models import SentTask  # noqa: PLC0415 - as above

    with _asked_database():
        SentTask.objects.filter(name=name).delete()


@contextmanager
def _asked_database() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        logger.warning("the database does not say which periodic tasks wait: %s", error)
