"""What `docker compose up` would start, started: the same commands in the same order with the same environment."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from dpal_site.embedded import host
from dpal_site.embedded.processes import Supervisor
from dpal_site.embedded.servers import REPOSITORY

pytestmark = pytest.mark.faults
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
BIN = Path(sys.executable).parent


def command_of(name):
    """Return a service's command, or the image's, with this environment's programs."""
    command = COMPOSE["services"][name].get("command")
    if command is None:
        stage = DOCKERFILE.rpartition("\nFROM ")[2]
        command = json.loads(re.findall(r"^CMD (\[.*\])", stage, re.MULTILINE)[-1])
    return [str(BIN / command[0]), *command[1:]]


def order():
    """Return our services, each after those it waits for."""
    placed = []
    ours = {name: set(each.get("depends_on", ())) for name, each in COMPOSE["services"].items() if "build" in each}
    while len(placed) < len(ours):
        placed += sorted(name for name in ours if name not in placed and ours[name] & set(ours) <= set(placed))
    return placed


@pytest.fixture
def site(transactional_db, embedded_servers, broker, tmp_path):
    """Put the secrets where the compose file mounts them, and the image's folders under the test's own."""
    secrets = tmp_path / "secrets"
    made = {"SECRETS": str(secrets), "PATH": os.environ["PATH"]}
    subprocess.run(["sh", REPOSITORY / "deploy" / "secrets.sh"], env=made, check=True, capture_output=True)
    (secrets / "database_url").write_text(embedded_servers.database_url)
    (secrets / "broker_url").write_text(broker)
    places = {"/run/secrets": str(secrets), "/tmp/celerybeat": str(tmp_path / "celerybeat")}
    image = dict(re.findall(r"(DPAL_\w+|LOG_FORMAT)=(\S+)", DOCKERFILE.rpartition("\nFROM ")[2]))
    image |= {"DPAL_VAR": str(tmp_path / "var"), "DPAL_STATIC": str(tmp_path / "static")}
    (tmp_path / "var").mkdir()
    given = {
        key: re.sub(r"\$\{\w+:-(.*)\}", r"\1", str(value)) for key, value in COMPOSE["x-site"]["environment"].items()
    }
    environment = {**image, **given, "PORT": str(host.free_port()), "CANARY_TRIALS": "40"}

    def here(text):
        for there, place in places.items():
            text = text.replace(there, place)
        return text

    environment = {key: here(value) for key, value in environment.items()}
    os_environment = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return Site(tmp_path, {**os_environment, **environment}, here)


class Site:
    def __init__(self, folder, environment, here):
        self.folder, self.environment, self.here = folder, environment, here
        self.port = environment["PORT"]

    def run(self, command):
        done = subprocess.run(command, cwd=REPOSITORY, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def answer(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Host": "localhost"})
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


def test_the_commands_of_the_compose_file_make_a_site(site, tmp_path):
    collect = re.search(r"python (manage\.py collectstatic [^\\&]+)", DOCKERFILE)[1]
    site.environment["DPAL_NO_SERVERS"] = "1"
    site.run([sys.executable, *shlex.split(collect)])
    del site.environment["DPAL_NO_SERVERS"]
    names = order()
    assert names[0] == "migrate"
    site.run(command_of("migrate"))
    with Supervisor(tmp_path / "log", environment=site.environment, grace_seconds=5) as supervisor:
        supervisor._environment = site.environment
        for name in names[1:]:
            command = [site.here(part).replace("0.0.0.0:8000", f"127.0.0.1:{site.port}") for part in command_of(name)]
            supervisor.start(name, command)
        assert host.wait_until(lambda: site.answer("/readyz")[0] == 200, 90), {
            name: host.tail(supervisor.log_path(name)) for name in names[1:]
        }
        assert site.answer("/readyz")[1] == "database: ok\nbroker: ok\nworker: ok\ndisk: ok\n"
        assert site.answer("/login/")[0] == 200
        assert '"request_id":' in supervisor.log_path("web").read_text()
        site.run([sys.executable, "-m", "dpal_site.healthcheck", "web"])
        site.run([sys.executable, "-m", "dpal_site.healthcheck", "worker"])
        supervisor.check_running()
    sick = subprocess.run([sys.executable, "-m", "dpal_site.healthcheck", "web"], cwd=REPOSITORY, env=site.environment)
    assert sick.returncode == 1
