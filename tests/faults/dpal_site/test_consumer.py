import signal
import subprocess
import sys
import time

import pytest

from dpal_site.embedded import host, servers

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
WORKER = """
import sys, time
from celery import bootsteps
from dpal_site import consumer
from dpal_site.celery import app

consumer.ASKED_EVERY_SECONDS, consumer.PATIENCE_SECONDS, consumer.MOST_MISSED = 0.5, 10.0, 2
FAULT = sys.argv[1]

class Faulty(bootsteps.StartStopStep):
    requires = {"celery.worker.consumer.tasks:Tasks"}

    def start(self, parent):
        if FAULT == "ends":
            raise AttributeError("'NoneType' object has no attribute 'hostname'")
        if FAULT == "hangs":
            consumer.PATIENCE_SECONDS = 0.5
            time.sleep(3600)

class NeverStops(bootsteps.StartStopStep):
    def stop(self, parent):
        time.sleep(3600 if FAULT == "ends" else 0)

app.steps["consumer"].add(Faulty)
app.steps["worker"].add(NeverStops)
app.worker_main("worker --loglevel INFO --pool solo --queues light --without-gossip --without-mingle".split())
"""


@pytest.fixture
def worker_with(supervisor, tmp_path):
    started = []

    def start(fault):
        environment = supervisor._environment | {"TASK_GRACE_SECONDS": "0"}
        with (tmp_path / "worker.log").open("w") as log:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-c", WORKER, fault],
                    cwd=servers.REPOSITORY,
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
        return started[-1], tmp_path / "worker.log"

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("fault", "said"), [("ends", "the consumer has ended by a fault"), ("hangs", "the consumer answers nothing")]
)
def test_a_worker_without_a_consumer_ends(worker_with, fault, said):
    process, log = worker_with(fault)
    assert process.wait(120) == 1, log.read_text()
    assert said in log.read_text()


def test_a_worker_that_hears_goes_on_until_it_is_asked_to_stop(worker_with):
    process, log = worker_with("none")
    assert host.wait_until(lambda: "ready." in log.read_text(), 120)
    # For more than the questions that a silent one would have missed.
    time.sleep(5)
    assert process.poll() is None, log.read_text()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
