"""A real cluster of Spark on this machine, started by the very lines of the manual's page on running a site."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from dpal_site.embedded import host, servers
from tests.faults.storm.site import descendants

MANUAL = servers.REPOSITORY / "docs" / "operations.md"
ABSENT = [
    reason
    for reason, found in (
        ("the extra `spark` (pyspark) is not installed", find_spec("pyspark")),
        ("no Java on this machine", shutil.which("java")),
    )
    if found is None
]
needs_spark = pytest.mark.skipif(bool(ABSENT), reason=" and ".join(ABSENT) or "never")
PATIENCE_SECONDS = 300
EXECUTOR = b"CoarseGrainedExecutorBackend"


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    return found.strip().splitlines()


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder, self.secret = folder, secrets.token_hex(16)
        self.local, self.work = folder / "local", folder / "work"
        for each in (self.local, self.work):
            each.mkdir()
        self.port = host.free_port()
        self.address = f"spark://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def configuration(self, name, **changed):
        """Write what the manual says into a folder of its own, with some settings changed; return the environment."""
        folder = self.folder / name
        folder.mkdir()
        lines = [line.replace("SECRET", self.secret) for line in block("spark-defaults")]
        lines += [f"{setting} {value}" for setting, value in changed.items()]
        (folder / "spark-defaults.conf").touch(mode=0o600)
        (folder / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
        return {"SPARK_CONF_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}

    def start(self):
        self._told = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "SPARK_LOCAL_DIRS": str(self.local),
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "MASTER": "127.0.0.1",
            "HERE": "127.0.0.1",
            "PORT": str(self.port),
            "CORES": "4",
            "MEMORY": "6g",
            "WORK": str(self.work),
        } | self.configuration("daemons")
        for number, known in enumerate(("started", "Registering worker")):
            self.processes.append(self._begun(number))
            assert host.wait_until(lambda known=known: known in self.said(0), PATIENCE_SECONDS, 0.2), self.said(0)

    def _begun(self, number):
        line = block("spark-cluster")[number]
        with (self.folder / f"{number}.log").open("ab") as log:
            options = {"env": self._told, "cwd": self.folder, "stdout": log, "stderr": log, "start_new_session": True}
            return subprocess.Popen(["sh", "-c", f"exec {line}"], **options)

    def strike_worker(self, dead_for):
        os.killpg(self.processes[1].pid, signal.SIGKILL)
        self.processes[1].wait()
        time.sleep(dead_for)
        known = self.said(0).count("Registering worker")
        self.processes[1] = self._begun(1)
        again = host.wait_until(lambda: self.said(0).count("Registering worker") > known, PATIENCE_SECONDS, 0.2)
        assert again, self.said(1)

    def said(self, number):
        return (self.folder / f"{number}.log").read_text()

    def executors(self):
        return sorted(pid for pid in descendants(self.processes[1].pid) if EXECUTOR in command_line(pid))

    def everything(self):
        return [pid for process in self.processes for pid in (process.pid, *descendants(process.pid))]

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
