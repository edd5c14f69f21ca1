"""Send a task by name once the data it is about is committed; where the broker is away, the beat sends it again."""

import logging
from functools import partial

from celery import current_app
from django.db import transaction

from annotation.work.services.broker import AWAY

logger = logging.getLogger(__name__)


def send_on_commit(task: str, **ids: int | str) -> None:
    """Send the task after the commit; a broker that is down delays it until the beat sends it again."""
    transaction.on_commit(partial(send, task, **ids))


def send(task: str, **ids: int | str) -> bool:
    """Send the task; false where the broker is away."""
    try:
        current_app.send_task(task, kwargs=ids, retry=False)
    except AWAY as error:
        logger.warning("%s %s left to the beat, broker not reached: %s", task, ids, type(error).__name__)
        return False
    return True
