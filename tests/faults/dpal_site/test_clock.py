import os
import signal

import pytest
import redis
from django.conf import settings
from django.test import Client

from dpal_site.embedded import host

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def readiness():
    answer = Client().get("/readyz?check=worker")
    return answer.status_code, answer.content.decode()


def test_a_light_queue_that_is_behind_is_reported_and_does_not_grow(supervisor, broker):
    supervisor.start_worker(concurrency=2)
    supervisor.start_beat()
    assert host.wait_until(lambda: readiness() == (200, "worker: ok\n"), 120, 0.2), readiness()
    os.kill(supervisor.pid("worker"), signal.SIGSTOP)
    try:
        behind = (503, "worker: nothing heard for 30 s from queue light\n")
        assert host.wait_until(lambda: readiness() == behind, 60, 0.2), readiness()
        with redis.Redis.from_url(broker) as client:
            waiting = {name: client.llen(name) for name in settings.QUEUES}
        # Of each task one, and one more that has expired.
        assert sum(waiting.values()) <= 2 * len(settings.CELERY_BEAT_SCHEDULE)
    finally:
        os.kill(supervisor.pid("worker"), signal.SIGCONT)
    assert host.wait_until(lambda: readiness()[0] == 200, 60, 0.2), readiness()
