import os
import signal
import socket
import subprocess
import sys

import pytest

from dpal_site.embedded import host, servers
from dpal_site.embedded.host import EmbeddedError, ProcessDied
from dpal_site.embedded.processes import Supervisor
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.embedded.valkey import EmbeddedValkey

pytestmark = pytest.mark.faults
POLITE = [sys.executable, "-c", "import time; print('polite is up', flush=True); time.sleep(600)"]
STUBBORN = """
import signal, subprocess, time
for number in (signal.SIGTERM, signal.SIGQUIT): signal.signal(number, signal.SIG_IGN)
print("grandchild", subprocess.Popen(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""
SITE = """
import sys
from pathlib import Path
from dpal_site.embedded import host, servers
from dpal_site.embedded.processes import Supervisor

log_dir, polite, stubborn = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
servers.broker_url()
with Supervisor(log_dir, grace_seconds=0.3) as site:
    site.start("polite", [sys.executable, "-c", polite])
    if stubborn:
        site.start("stubborn", [sys.executable, "-c", stubborn])
        host.wait_until(lambda: "grandchild" in site.log_path("stubborn").read_text(), 120)
        print(*site.log_path("stubborn").read_text().split()[1:], site.pid("stubborn"), end=" ")
    host.wait_until(lambda: "up" in site.log_path("polite").read_text(), 120)
    print(site.pid("polite"), flush=True)
    site.wait()
"""


def run_site(tmp_path, *, stubborn=STUBBORN):
    environment = {**os.environ, "DPAL_VAR": str(tmp_path / "var"), "DPAL_NO_SERVERS": ""}
    command = [sys.executable, "-c", SITE, str(tmp_path / "log"), POLITE[2], stubborn]
    site = subprocess.Popen(command, env=environment, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in site.stdout.readline().split()]
    assert pids
    assert all(host.running_process(pid) for pid in pids)
    return site, pids


def all_gone(pids):
    return host.wait_until(lambda: not any(host.running_process(pid) for pid in pids), 120)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_children_grandchildren_and_own_servers(tmp_path, number, code):
    site, pids = run_site(tmp_path)
    with site.stdout:
        site.send_signal(number)
        site.send_signal(number)  # an impatient second Ctrl-C changes nothing
        assert site.wait(120) == code
    assert len(pids) == 3
    assert all_gone(pids)
    assert EmbeddedValkey(tmp_path / "var" / "valkey").status == "stopped"


class LockWithSignal:
    def __init__(self, lock):
        self.lock, self.pending = lock, True

    def acquire(self, *args):
        taken = self.lock.acquire(*args)
        if self.pending:
            self.pending = False
            os.kill(os.getpid(), signal.SIGINT)
        return taken

    def release(self):
        self.lock.release()

    def __enter__(self):
        # What `wait` does without a timeout: where the lock stayed held, it would never return.
        assert self.lock.acquire(timeout=5)

    def __exit__(self, *error):
        self.lock.release()


@pytest.mark.parametrize("poll", ["check_running", "ended"])
def test_a_signal_amid_a_poll_still_stops_the_child(tmp_path, poll):
    # The interrupt leaves the supervisor's block, which stops the child.
    with pytest.raises(KeyboardInterrupt), Supervisor(tmp_path, grace_seconds=0.3) as site:  # noqa: PT012
        site.start("polite", POLITE)
        polite = site.pid("polite")
        child = site._children["polite"].process
        child._waitpid_lock = LockWithSignal(child._waitpid_lock)
        getattr(site, poll)()
    assert all_gone([polite])


def test_a_server_that_ran_before_keeps_running(tmp_path):
    valkey = EmbeddedValkey(tmp_path / "var" / "valkey")
    valkey.start()
    try:
        site, pids = run_site(tmp_path, stubborn="")
        with site.stdout:
            site.terminate()
            site.wait(120)
        assert all_gone(pids)
        assert valkey.status == "ready"
    finally:
        valkey.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed outright")
def test_children_follow_a_killed_supervisor(tmp_path):
    site, pids = run_site(tmp_path, stubborn="")
    try:
        with site.stdout:
            site.kill()
            site.wait()
        assert all_gone(pids)
    finally:
        EmbeddedValkey(tmp_path / "var" / "valkey").stop()


def test_a_process_that_ends_by_itself_is_told_with_its_last_words(tmp_path):
    with Supervisor(tmp_path) as site:
        site.start("polite", POLITE)
        site.start("hasty", [sys.executable, "-c", "import sys; sys.exit('no licence for haste')"])
        with pytest.raises(ProcessDied, match=r"hasty ended with code 1(.|\n)*no licence for haste"):
            site.wait()
        polite = site.pid("polite")
    assert all_gone([polite])


def test_what_ends_by_itself_is_started_again_and_the_others_go_on(tmp_path):
    told = []
    with Supervisor(tmp_path) as site:
        site.start("polite", POLITE)
        site.start("short", [sys.executable, "-c", "import time; print('once more', flush=True); time.sleep(0.1)"])
        polite = site.pid("polite")
        started = site.log_path("short")

        def thrice():
            site.revive(told.append)
            return started.read_text().count("once more") >= 3

        assert host.wait_until(thrice, 120)
        assert site.pid("polite") == polite
    # Whoever keeps ending waits longer each time, and says why it ended.
    assert [line for line in told if "started again" in line][:2] == [
        "The short process ended with code 0; it is started again in 1 s.",
        "The short process ended with code 0; it is started again in 3 s.",
    ]
    assert told[1].endswith("once more")


@pytest.fixture
def own_broker(tmp_path, monkeypatch):
    monkeypatch.setenv("DPAL_VAR", str(tmp_path / "var"))
    monkeypatch.setenv("DPAL_NO_SERVERS", "")
    monkeypatch.setattr(servers, "_used", {})
    monkeypatch.setattr(servers, "_started_here", [])
    servers.broker_url()
    yield servers.valkey()
    servers.stop_started()


def test_where_a_server_comes_back_at_another_port_all_are_started_again(tmp_path, own_broker):
    told = []
    with Supervisor(tmp_path / "log") as site:
        site.start("polite", POLITE)
        polite, port = site.pid("polite"), own_broker.port
        own_broker.stop()
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stranger.bind((host.LOOPBACK, port))
            stranger.listen()
            site.revive(told.append)
        assert own_broker.status == "ready"
        assert own_broker.port != port
        assert site.pid("polite") != polite
    assert told[1:] == ["The broker runs again.", "Another program took the old port; polite are started again."]


def test_a_server_that_does_not_come_back_is_tried_again_later_and_the_others_go_on(tmp_path, own_broker):
    told = []
    with Supervisor(tmp_path / "log") as site:
        site.start("polite", POLITE)
        own_broker.stop()
        (kept,) = own_broker.data_dir.glob("appendonlydir/*.manifest")
        whole = kept.read_bytes()
        kept.write_bytes(b"nonsense\n")
        site.revive(told.append)
        site.revive(told.append)  # too soon
        assert [line.rpartition("\n")[2] for line in told][1:] == ["The next try is in 1 s."]
        assert site.ended() == []
        kept.write_bytes(whole)
        assert host.wait_until(lambda: site.revive(told.append) or own_broker.status == "ready", 120, 0.1)
    assert told[-1] == "The broker runs again."


def test_a_restart_gives_a_new_process_of_the_same_command(tmp_path):
    with Supervisor(tmp_path) as site:
        site.start("polite", POLITE)
        first = site.pid("polite")
        with pytest.raises(EmbeddedError, match="already runs"):
            site.start("polite", POLITE)
        assert host.wait_until(lambda: "polite is up" in site.log_path("polite").read_text(), 120)
        site.restart("polite")
        second = host.running_process(site.pid("polite"))
        assert second is not None
        assert second.pid != first
        assert host.wait_until(lambda: site.log_path("polite").read_text().count("polite is up") == 2, 120)
    assert all_gone([first, second.pid])


def test_old_signal_handlers_come_back(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with Supervisor(tmp_path):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_echo_names_the_speaker(tmp_path, capfd):
    with Supervisor(tmp_path, echo=True) as site:
        site.start("polite", POLITE)
        heard = []
        assert host.wait_until(lambda: heard.append(capfd.readouterr().out) or "polite is up" in "".join(heard), 120)
    assert "polite | polite is up\n" in "".join(heard)


def test_a_port_in_use_is_told(tmp_path):
    with Supervisor(tmp_path) as site, socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(EmbeddedError, match=f"port {port} is in use"):
            site.start_web(port)
