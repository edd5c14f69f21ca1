"""Real brokers as Debian ships them, each a private instance on the loopback address, ended by its process id."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path

import pytest
import redis
from kombu import Connection

from dpal_site.embedded import host
from tests.faults.storm.site import quiet_port

INSTALL = "apt-get install redis-server rabbitmq-server"
# The wrapper under /usr/sbin would change the user and insist on Debian's own folders.
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PATIENCE_SECONDS = 180


class PrivateBroker(ABC):
    """A server of one test: a folder, a port, a password, and a process to kill."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self.taken: set[int] = set()
        self.port = quiet_port(self.taken)
        self.password = secrets.token_hex(16)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    @abstractmethod
    def url(self) -> str:
        """The address Celery is given."""

    def start(self) -> None:
        """Start it and wait until it takes a connection."""
        self._launch()
        assert host.wait_until(self._answers, PATIENCE_SECONDS, 0.1), host.tail(self.folder / "log")

    def kill(self) -> None:
        """End it as a machine that loses its power would."""
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    @abstractmethod
    def empty(self) -> None:
        """Throw away every message."""

    @abstractmethod
    def _launch(self) -> None:
        """Start the processes."""

    def _answers(self) -> bool:
        try:
            with Connection(self.url, connect_timeout=5) as connection:
                connection.ensure_connection(max_retries=1, timeout=5)
        except Exception:  # noqa: BLE001 - whatever it is, it does not answer yet
            return False
        return True

    def _run(self, *command: str | Path, **environment: str) -> None:
        with (self.folder / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    list(map(str, command)),
                    cwd=self.folder,
                    env=os.environ | environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )


class PrivateRedis(PrivateBroker):
    """Redis with an append-only file."""

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{host.LOOPBACK}:{self.port}/0"

    def empty(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def _launch(self) -> None:
        settings = self.folder / "redis.conf"
        host.write_private_file(
            settings,
            f"bind {host.LOOPBACK}\nport {self.port}\ndir {self.folder}\nappendonly yes\n"
            f'save ""\nmaxmemory-policy noeviction\nrequirepass {self.password}\n',
        )
        self._run(_program("redis-server"), settings)


class PrivateRabbitMQ(PrivateBroker):
    """RabbitMQ without plugins, and the port mapper its Erlang asks for, which listens to nobody else either."""

    @property
    def url(self) -> str:
        return f"amqp://dpal:{self.password}@{host.LOOPBACK}:{self.port}//"

    def empty(self) -> None:
        with Connection(self.url) as connection, connection.channel() as channel:
            for queue in ("light", "heavy"):
                channel.queue_purge(queue)

    def _launch(self) -> None:
        mapper = quiet_port(self.taken)
        settings = self.folder / "rabbitmq.conf"
        host.write_private_file(
            settings,
            f"listeners.tcp.default = {host.LOOPBACK}:{self.port}\ndefault_user = dpal\n"
            f"default_pass = {self.password}\nconsumer_timeout = 21660000\n",
        )
        (self.folder / "plugins").write_text("[].\n")
        environment = {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(mapper),
            "ERL_EPMD_ADDRESS": host.LOOPBACK,
            "RABBITMQ_NODENAME": f"dpal{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(quiet_port(self.taken)),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "no such file"),
            "RABBITMQ_CONFIG_FILE": str(settings),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
        }
        self._run(_program("epmd"), "-port", str(mapper), "-address", host.LOOPBACK)
        assert RABBITMQ.exists(), f"no RabbitMQ here; {INSTALL}"
        self._run(RABBITMQ, **environment)


KINDS = {"redis": PrivateRedis, "rabbitmq": PrivateRabbitMQ}


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed; {INSTALL}")
    return found
