"""Telling a worker that a study wants something; where the broker is away, the beat tells it."""

import logging
from functools import partial

from celery import current_app
from django.db import transaction

from annotation.work.services.broker import AWAY

logger = logging.getLogger(__name__)
FOLLOW_TASK = "annotation.tasks.follow_study_task"
CHECK_ACCOUNT_TASK = "annotation.tasks.check_platform_account_task"


def tell_worker(task: str, **ids: int) -> None:
    """Send the task after the commit."""
    transaction.on_commit(partial(_send, task, ids))


def _send(task: str, ids: dict[str, int]) -> None:
    try:
        current_app.send_task(task, kwargs=ids, retry=False)
    except AWAY as error:
        logger.warning("%s %s left to the beat, broker not reached: %s", task, ids, type(error).__name__)
