"""Send a task by name once the data it is about is committed."""

import logging
from functools import partial

from celery import current_app
from django.db import transaction

from annotation.work.services.broker import AWAY

logger = logging.getLogger(__name__)
RUN_ROUND_TASK = "learner.tasks.run_round_task"
TRAIN_MODEL_TASK = "learner.tasks.train_model_task"
CHECK_RELEASE_TASK = "learner.tasks.check_release_task"
EVALUATE_RELEASE_TASK = "learner.tasks.evaluate_release_task"
SEND_WEBHOOK_TASK = "learner.tasks.send_webhook_task"
RUN_STREAM_TASK = "learner.tasks.run_stream_task"
ANSWER_BY_MACHINE_TASK = "learner.tasks.answer_by_machine_task"


def send_on_commit(task: str, **ids: int | str) -> None:
    """Send the task after the commit; a broker that is down delays it until the beat sends it again."""
    transaction.on_commit(partial(_send, task, ids))


def _send(task: str, ids: dict[str, int | str]) -> None:
    try:
        current_app.send_task(task, kwargs=ids, retry=False)
    except AWAY as error:
        logger.warning("%s %s left to the beat, broker not reached: %s", task, ids, type(error).__name__)
