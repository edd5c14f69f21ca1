"""Consumer of a worker: where it ends or falls silent, the process ends too, to be started again."""

import logging
import os
import threading

from celery.worker.consumer import Consumer
from django.conf import settings

from annotation.work.services.broker import AWAY

logger = logging.getLogger(__name__)
ASKED_EVERY_SECONDS = 15.0
PATIENCE_SECONDS = 10.0
MOST_MISSED = 4


class WatchedConsumer(Consumer):
    def start(self) -> None:
        ended = threading.Event()
        threading.Thread(target=self._watch, args=(ended,), name="watch of the consumer", daemon=True).start()
        try:
            super().start()
        except Exception:
            logger.critical("the consumer has ended by a fault", exc_info=True)
            _end_process()
            raise
        finally:
            ended.set()

    def _watch(self, ended: threading.Event) -> None:
        missed = 0
        while missed < MOST_MISSED:
            if ended.wait(ASKED_EVERY_SECONDS):
                return
            missed = 0 if self._answers() else missed + 1
        logger.critical("the consumer answers nothing")
        _end_process()

    def _answers(self) -> bool:
        """Say whether the consumer answers; where the broker is away, nobody could."""
        try:
            return bool(self.app.control.ping(destination=[self.hostname], timeout=PATIENCE_SECONDS))
        except AWAY:
            return True


def _end_process() -> None:
    """End the process once its tasks had a while to end, whatever its threads wait for."""
    threading.Timer(settings.TASK_GRACE_SECONDS, os._exit, [1]).start()
