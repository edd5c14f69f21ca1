"""A supervisor leaves nothing behind, however it ends."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from dpal_site.embedded import host
from dpal_site.embedded.errors import EmbeddedError, ProcessDied
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
        host.wait_until(lambda: "grandchild" in site.log_path("stubborn").read_text(), 20)
        print(*site.log_path("stubborn").read_text().split()[1:], site.pid("stubborn"), end=" ")
    host.wait_until(lambda: "up" in site.log_path("polite").read_text(), 20)
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
    return host.wait_until(lambda: not any(host.running_process(pid) for pid in pids), 10)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_children_grandchildren_and_own_servers(tmp_path, number, code):
    site, pids = run_site(tmp_path)
    with site.stdout:
        site.send_signal(number)
        site.send_signal(number)  # an impatient second Ctrl-C changes nothing
        assert site.wait(20) == code
    assert len(pids) == 3
    assert all_gone(pids)
    assert EmbeddedValkey(tmp_path / "var" / "valkey").status == "stopped"


def test_a_server_that_ran_before_keeps_running(tmp_path):
    valkey = EmbeddedValkey(tmp_path / "var" / "valkey")
    valkey.start()
    try:
        site, pids = run_site(tmp_path, stubborn="")
        with site.stdout:
            site.terminate()
            site.wait(20)
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


def test_a_restart_gives_a_new_process_of_the_same_command(tmp_path):
    with Supervisor(tmp_path) as site:
        site.start("polite", POLITE)
        first = site.pid("polite")
        with pytest.raises(EmbeddedError, match="already runs"):
            site.start("polite", POLITE)
        assert host.wait_until(lambda: "polite is up" in site.log_path("polite").read_text(), 10)
        site.restart("polite")
        second = host.running_process(site.pid("polite"))
        assert second is not None
        assert second.pid != first
        assert host.wait_until(lambda: site.log_path("polite").read_text().count("polite is up") == 2, 10)
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
        assert host.wait_until(lambda: heard.append(capfd.readouterr().out) or "polite is up" in "".join(heard), 10)
    assert "polite | polite is up\n" in "".join(heard)


def test_a_port_in_use_is_told(tmp_path):
    with Supervisor(tmp_path) as site, socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(EmbeddedError, match=f"port {port} is in use"):
            site.start_web(port)
