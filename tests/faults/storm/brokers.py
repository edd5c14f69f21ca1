"""Real brokers as Debian ships them, each a private instance on the loopback address, ended by its process id."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from kombu import Connection

from dpal_site.embedded import host
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.environment import broker_tls
from tests.faults.storm.site import quiet_port

INSTALL = "apt-get install redis-server rabbitmq-server"
# The wrapper under /usr/sbin would change the user and insist on Debian's own folders.
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PATIENCE_SECONDS = 180


class PrivateBroker(ABC):
    """A server of one test: a folder, a port, a password, and a process to kill; with TLS for nobody without."""

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        folder.mkdir(mode=0o700)
        self.folder, self.tls = folder, tls
        if tls:
            given = {"SECRETS": str(folder / "secrets"), "PATH": os.environ["PATH"]}
            script = REPOSITORY / "deploy" / "secrets.sh"
            subprocess.run(["sh", script], env=given, check=True, capture_output=True)
        self.taken: set[int] = set()
        self.port = quiet_port(self.taken)
        self.password = secrets.token_hex(16)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    @abstractmethod
    def url(self) -> str:
        """The address Celery is given."""

    @property
    def authority(self) -> str:
        """Who signed its certificate; empty without TLS."""
        return str(self.folder / "secrets" / "authority") if self.tls else ""

    @property
    def _pair(self) -> dict[str, Path]:
        return {part: self.folder / "secrets" / f"valkey_{part}" for part in ("certificate", "key")}

    @property
    def _place(self) -> str:
        return f"{'localhost' if self.tls else host.LOOPBACK}:{self.port}"

    def connection(self, **changed: Any) -> Connection:
        url = changed.pop("url", self.url)
        words = {"ssl": broker_tls(url, self.authority) or None, "connect_timeout": 5}
        return Connection(url, **(words | changed))

    def answers(self, **changed: Any) -> bool:
        try:
            with self.connection(**changed) as connection:
                connection.ensure_connection(max_retries=1, timeout=5)
        except Exception:  # noqa: BLE001 - whatever it is, it does not answer
            return False
        return True

    def start(self) -> None:
        self._launch()
        assert host.wait_until(self.answers, PATIENCE_SECONDS, 0.1), host.tail(self.folder / "log")

    def kill(self) -> None:
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
    @property
    def url(self) -> str:
        return f"redis{'s' if self.tls else ''}://:{self.password}@{self._place}/0"

    def empty(self) -> None:
        words = {"ssl_ca_certs": self.authority} if self.tls else {}
        with redis.Redis.from_url(self.url, **words) as client:
            client.flushall()

    def _launch(self) -> None:
        settings = self.folder / "redis.conf"
        ports = f"port {self.port}"
        if self.tls:
            ports = f"port 0\ntls-port {self.port}\ntls-auth-clients no\ntls-ca-cert-file {self.authority}\n"
            ports += f"tls-cert-file {self._pair['certificate']}\ntls-key-file {self._pair['key']}"
        host.write_private_file(
            settings,
            f"bind {host.LOOPBACK}\n{ports}\ndir {self.folder}\nappendonly yes\n"
            f'save ""\nmaxmemory-policy noeviction\nrequirepass {self.password}\n',
        )
        self._run(_program("redis-server"), settings)


class PrivateRabbitMQ(PrivateBroker):
    """RabbitMQ without plugins, and the port mapper its Erlang asks for, which listens to nobody else either."""

    @property
    def url(self) -> str:
        return f"amqp{'s' if self.tls else ''}://dpal:{self.password}@{self._place}//"

    def empty(self) -> None:
        with self.connection() as connection, connection.channel() as channel:
            for queue in ("light", "heavy"):
                channel.queue_purge(queue)

    def _launch(self) -> None:
        mapper = quiet_port(self.taken)
        settings = self.folder / "rabbitmq.conf"
        listeners = f"listeners.tcp.default = {host.LOOPBACK}:{self.port}"
        if self.tls:
            listeners = f"listeners.tcp = none\nlisteners.ssl.default = {host.LOOPBACK}:{self.port}\n"
            listeners += f"ssl_options.cacertfile = {self.authority}\nssl_options.verify = verify_none\n"
            listeners += f"ssl_options.certfile = {self._pair['certificate']}\n"
            listeners += f"ssl_options.keyfile = {self._pair['key']}\nssl_options.versions.1 = tlsv1.3"
        host.write_private_file(
            settings, f"{listeners}\ndefault_user = dpal\ndefault_pass = {self.password}\nconsumer_timeout = 21660000\n"
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


KINDS = {
    "redis": PrivateRedis,
    "rabbitmq": PrivateRabbitMQ,
    "rediss": partial(PrivateRedis, tls=True),
    "amqps": partial(PrivateRabbitMQ, tls=True),
}


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed; {INSTALL}")
    return found
