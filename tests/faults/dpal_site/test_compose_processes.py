import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml
from psycopg import sql

from dpal_site.embedded import host
from dpal_site.embedded.processes import Supervisor
from dpal_site.embedded.servers import REPOSITORY
from tests.counting import new_counter
from tests.tls_front import TlsFront

pytestmark = pytest.mark.faults
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
BIN = Path(sys.executable).parent


def command_of(name):
    command = COMPOSE["services"][name].get("command")
    if command is None:
        stage = DOCKERFILE.rpartition("\nFROM ")[2]
        command = json.loads(re.findall(r"^CMD (\[.*\])", stage, re.MULTILINE)[-1])
    return [str(BIN / command[0]), *command[1:]]


def order():
    placed = []
    ours = {name: set(each.get("depends_on", ())) for name, each in COMPOSE["services"].items() if "build" in each}
    while len(placed) < len(ours):
        placed += sorted(name for name in ours if name not in placed and ours[name] & set(ours) <= set(placed))
    return placed


@pytest.fixture
def site(transactional_db, embedded_servers, broker, tmp_path):
    secrets = tmp_path / "secrets"
    made = {"SECRETS": str(secrets), "PATH": os.environ["PATH"]}
    subprocess.run(["sh", REPOSITORY / "deploy" / "secrets.sh"], env=made, check=True, capture_output=True)
    there = {"postgres": urlsplit(embedded_servers.database_url), "valkey": urlsplit(broker)}
    # Roles belong to the whole server, which other runs share.
    role = f"label_{there['postgres'].path[1:]}"
    places = {"/run/secrets": str(secrets), "/tmp/celerybeat": str(tmp_path / "celerybeat")}
    # The database is one that other tests use, and knows the counter of theirs.
    places["/var/lib/dpal-counter"] = str(new_counter(tmp_path / "counter").parent)
    image = dict(re.findall(r"(DPAL_\w+|LOG_FORMAT)=(\S+)", DOCKERFILE.rpartition("\nFROM ")[2]))
    image |= {"DPAL_VAR": str(tmp_path / "var"), "DPAL_STATIC": str(tmp_path / "static")}
    (tmp_path / "var").mkdir()

    def write_addresses(fronts):
        """Have the addresses that were made lead here; what they demand of the server stays."""
        here_is = f"@postgres:{fronts['postgres']}{there['postgres'].path}"
        owner, user = (url.partition("@")[0] for url in (embedded_servers.owner_url, embedded_servers.database_url))
        label = f"postgresql://{role}:{token_hex(16)}"
        for name, who in (("database_owner_url", owner), ("database_url", user), ("label_database_url", label)):
            demands = (secrets / name).read_text().partition("?")[2]
            (secrets / name).write_text(f"{who}{here_is}?{here(demands)}&hostaddr={host.LOOPBACK}")
        scheme = urlsplit((secrets / "broker_url").read_text()).scheme
        password, path = there["valkey"].password, there["valkey"].path
        (secrets / "broker_url").write_text(f"{scheme}://:{password}@localhost:{fronts['valkey']}{path}")

    ports = {"web": host.free_port()}
    ports["label"] = host.free_port_from(ports["web"] + 1)

    def here(text):
        for there, place in places.items():
            text = text.replace(there, place)
        return text

    def environment_of(name):
        given = {
            key: here(re.sub(r"\$\{\w+:-(.*)\}", r"\1", str(value)))
            for key, value in COMPOSE["services"][name]["environment"].items()
        }
        found = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        found |= image | given | {"CANARY_TRIALS": "40", "PORT": str(ports.get(name, 8000))}
        for key, part in (("WEB_URL", "web"), ("LABEL_PROCESS_URL", "label")):
            if key in found:
                found[key] = f"http://127.0.0.1:{ports[part]}"
        return found

    with contextlib.ExitStack() as stack:
        fronts = {
            name: TlsFront(
                address.port, secrets / f"{name}_certificate", secrets / f"{name}_key", asks_first=name == "postgres"
            )
            for name, address in there.items()
        }
        for front in fronts.values():
            stack.enter_context(front.running())
        write_addresses({name: front.port for name, front in fronts.items()})
        yield Site(tmp_path, environment_of, here, ports)
        # Nobody found another way.
        assert all(front.served for front in fronts.values())
    with psycopg.connect(embedded_servers.owner_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {0}").format(sql.Identifier(role)))
        connection.execute(sql.SQL("DROP ROLE {0}").format(sql.Identifier(role)))


class Site:
    def __init__(self, folder, environment_of, here, ports):
        self.folder, self.environment_of, self.here, self.ports = folder, environment_of, here, ports

    def run(self, name, command, **more):
        environment = self.environment_of(name) | more
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def answer(self, path, part="web"):
        address = f"http://127.0.0.1:{self.ports[part]}{path}"
        request = urllib.request.Request(address, headers={"Host": "localhost"})
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


@pytest.mark.slow
def test_the_commands_of_the_compose_file_make_a_site(site, tmp_path):
    collect = re.search(r"python (manage\.py collectstatic [^\\&]+)", DOCKERFILE)[1]
    site.run("web", [sys.executable, *shlex.split(collect)], DPAL_NO_SERVERS="1")
    names = order()
    assert names[0] == "migrate"
    site.run("migrate", command_of("migrate"))
    with Supervisor(tmp_path / "log", grace_seconds=5) as supervisor:
        # Only what the compose file gives a service, nothing of ours.
        supervisor._environment = {}
        for name in names[1:]:
            port = site.ports.get(name)
            command = [site.here(part).replace("0.0.0.0:8000", f"127.0.0.1:{port}") for part in command_of(name)]
            supervisor.start(name, command, site.environment_of(name))
        for part in ("web", "label"):
            assert host.wait_until(lambda part=part: site.answer("/readyz", part)[0] == 200, 240), {
                name: host.tail(supervisor.log_path(name)) for name in names[1:]
            }
            assert site.answer("/readyz", part)[1] == "database: ok\nbroker: ok\nworker: ok\ndisk: ok\n"
        assert site.answer("/login/")[0] == 200
        # The label process asks a stranger to log in, where the other one answers; what is not theirs the one sends on
        # and the other hands on.
        assert site.answer("/login/", "label")[0] == 200
        assert site.answer("/projects/none/label/")[0] == 200
        lines = [json.loads(line) for line in supervisor.log_path("label").read_text().splitlines() if "{" in line[:1]]
        assert [line["status"] for line in lines if line.get("route") == "projects/<slug:slug>/label/"] == [302]
        assert '"request_id":' in supervisor.log_path("web").read_text()
        site.run("web", [sys.executable, "-m", "dpal_site.operations.healthcheck", "web"])
        site.run("label", [sys.executable, "-m", "dpal_site.operations.healthcheck", "web"])
        site.run("worker", [sys.executable, "-m", "dpal_site.operations.healthcheck", "worker"])
        supervisor.check_running()
        assert_the_label_process_has_its_own_role(site)
        assert_nobody_who_serves_or_works_owns_a_table(site, names[1:])
    environment = site.environment_of("web")
    sick = subprocess.run(
        [sys.executable, "-m", "dpal_site.operations.healthcheck", "web"], cwd=REPOSITORY, env=environment
    )
    assert sick.returncode == 1


def assert_the_label_process_has_its_own_role(site):
    url = Path(site.environment_of("label")["LABEL_DATABASE_URL_FILE"]).read_text()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT current_setting('is_superuser')").fetchone() == ("off",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT text FROM annotation_record")


def assert_nobody_who_serves_or_works_owns_a_table(site, names):
    for name in names:
        environment = site.environment_of(name)
        assert "DATABASE_OWNER_URL_FILE" not in environment
        address = environment.get("DATABASE_URL_FILE") or environment["LABEL_DATABASE_URL_FILE"]
        with psycopg.connect(Path(address).read_text(), autocommit=True) as connection:
            for statement in (
                "ALTER TABLE privacy_ledgerentry DISABLE TRIGGER ALL",
                "COPY (SELECT 1) TO PROGRAM 'id'",
                "SET session_replication_role = replica",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)
