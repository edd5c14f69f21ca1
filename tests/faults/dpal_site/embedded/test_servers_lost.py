"""Database and broker of `make run` stop or stand still: people are told, and the site comes back by itself."""

import http.client
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from dpal_site.embedded import host
from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.embedded.valkey import EmbeddedValkey
from tests.faults.storm.site import descendants

pytestmark = pytest.mark.faults
# Of nobody, but the database has to say so.
SOMEBODY = {"Cookie": "sessionid=" + "a" * 32}


class RunningSite:
    def __init__(self, folder):
        self.port, self.said = host.free_port(), folder / "said"
        self.postgres, self.valkey = EmbeddedPostgres(folder / "var/postgres"), EmbeddedValkey(folder / "var/valkey")
        environment = {**os.environ, "DPAL_VAR": str(folder / "var"), "DPAL_NO_SERVERS": "", "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "manage.py", "run", "--port", str(self.port), "--workers", "1"]
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                command, cwd=REPOSITORY, env=environment, stdout=said, stderr=subprocess.STDOUT
            )
        assert host.wait_until(lambda: "The site runs at" in self.said.read_text(), 300, 0.2), self.said.read_text()

    def stop(self):
        for pid in self.database_processes():
            os.kill(pid, signal.SIGCONT)
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(90) == 0
        assert (self.postgres.status, self.valkey.status) == ("stopped", "stopped")

    def database_processes(self):
        return [self.postgres.pid, *descendants(self.postgres.pid)] if self.postgres.pid else []

    def ask(self, path):
        began = time.monotonic()
        connection = http.client.HTTPConnection(host.LOOPBACK, self.port, timeout=120)
        try:
            connection.request("GET", path, headers=SOMEBODY if path == "/" else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), time.monotonic() - began
        finally:
            connection.close()

    def answers(self):
        return self.ask("/")[0] == 302 and self.ask("/readyz?check=database&check=broker")[0] == 200


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    site = RunningSite(tmp_path_factory.mktemp("site"))
    yield site
    site.stop()


@pytest.mark.slow
def test_a_frozen_database_holds_no_page_for_long(running):
    """Pages hung for a minute and a half, and so did the check that should have told."""
    assert host.wait_until(running.answers, 120, 0.2)
    answers = []
    for pid in running.database_processes():
        os.kill(pid, signal.SIGSTOP)
    try:
        crowd = [threading.Thread(target=lambda: answers.append(running.ask("/"))) for _ in range(8)]
        for each in crowd:
            each.start()
        for each in crowd:
            each.join()
        assert {status for status, _, _ in answers} == {503}
        assert all("does not answer in time" in page for _, page, _ in answers)
        # A few seconds of silence, and a few more for a new connection.
        assert max(seconds for _, _, seconds in answers) < 20
        for _ in range(3):
            assert running.ask("/")[::2] < (503, 8)
            status, said, seconds = running.ask("/readyz?check=database&check=worker")
            assert (status, "database: no answer" in said, seconds < 8) == (503, True, True)
    finally:
        for pid in running.database_processes():
            os.kill(pid, signal.SIGCONT)
    assert host.wait_until(running.answers, 120, 0.2)


@pytest.mark.slow
def test_a_database_that_stops_is_started_again_and_so_is_the_broker(running):
    """It stayed away: every request got 503, and nobody was told why."""
    assert host.wait_until(running.answers, 120, 0.2)
    database, broker = running.postgres.pid, running.valkey.pid
    os.kill(database, signal.SIGKILL)
    os.kill(broker, signal.SIGKILL)
    assert host.wait_until(lambda: running.postgres.pid not in (None, database), 120)
    assert host.wait_until(running.answers, 120, 0.2), running.said.read_text()
    for server in ("The database", "The broker"):
        assert f"{server} has ended; it is started again." in running.said.read_text()
        # Pages answer as soon as the server does, which may be before anybody says so.
        assert host.wait_until(lambda server=server: f"{server} runs again." in running.said.read_text(), 120)
    assert running.process.poll() is None
