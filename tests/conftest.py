"""What every test shares: real servers of their own, a site's processes, and a browser.

Pure tests start nothing. The first test that asks for the database starts an embedded Postgres and Valkey under
`var/test/`; any number of test runs share them, each with its own databases, and the last one out stops them.
"""

import contextlib
import fcntl
import gc
import os
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import redis
from celery import Celery
from psycopg import sql

from dpal_site.embedded import host, servers
from dpal_site.embedded.database_address import parse_database_url
from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.processes import Supervisor
from dpal_site.embedded.valkey import EmbeddedValkey

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from playwright.sync_api import Browser, ConsoleMessage, Page, Route
    from pytest_django.plugin import DjangoDbBlocker

    from annotation.models import Project
    from learner.models import ModelRelease
    from tests.memory_store import MemoryStore
    from tests.programs import Program
    from tests.remembering import Beginning
    from tests.spark_cluster import Cluster

SHARED = servers.REPOSITORY / "var" / "test"
# One name for the controller and its xdist workers, another for any run beside it.
RUN = os.environ.setdefault("DPAL_TEST_RUN", str(os.getpid()))
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
# A test that starts pytest gives its environment away; what that one removes at its end is its own.
RUN_DIR = SHARED / f"run-{RUN}" / f"{WORKER}-{os.getpid()}"

# Before the settings load, which is why pyproject.toml does not name them to pytest: a developer's own site stays out
# of reach.
for name in ("DATABASE_URL", "DATABASE_OWNER_URL", "CELERY_BROKER_URL", "STORAGE_URL", "LEDGER_COUNTER_PATH"):
    os.environ.pop(name, None)
# Threads of a BLAS wait for each other by turning round; beside another busy process that is ten times the work.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ["DPAL_VAR"] = str(RUN_DIR)
os.environ["DPAL_NO_SERVERS"] = "1"
# Tests have every add-on, unless the environment names some.
os.environ.setdefault(
    "DPAL_ADDONS", ",".join(sorted(path.parent.name for path in servers.REPOSITORY.glob("addons/*/apps.py")))
)
os.environ["DJANGO_SETTINGS_MODULE"] = "dpal_site.settings"
# Two processes of tests that start servers at one time draw no port twice.
host.QUIET_PORTS = host.QUIET_PORTS[int(WORKER.removeprefix("gw")) % 8 if WORKER != "main" else 0 :: 8]
# Every released model asks its canary; tests/statistical listens to it with more trials.
os.environ["CANARY_TRIALS"] = "8"

from django.conf import settings  # noqa: E402 - the lines above must come first
from django.contrib.auth.hashers import PBKDF2PasswordHasher  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.db import connections  # noqa: E402
from django.middleware import csrf  # noqa: E402
from django.test import TransactionTestCase  # noqa: E402
from django.utils import translation  # noqa: E402
from hypothesis import HealthCheck  # noqa: E402
from hypothesis import settings as drawn  # noqa: E402

from dpal_site.celery import app as celery_app  # noqa: E402
from tests.again import try_again  # noqa: E402
from tests.chance import let_chance_repeat  # noqa: E402
from tests.counting import begin_over, know_the_counter, new_counter  # noqa: E402
from tests.emptying import empty_after, needs_new_sessions  # noqa: E402
from tests.owning import site_url  # noqa: E402
from tests.spark_cluster import needs_spark  # noqa: E402
from tests.template import drop_others, make_template, template_name  # noqa: E402

assert settings.DATABASES  # loads them, so that pytest-django finds Django configured
# Pages under test use the static files as they lie in the apps: nothing to collect, nothing to go stale.
settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
settings.WHITENOISE_AUTOREFRESH = settings.WHITENOISE_USE_FINDERS = True

# The token of a form spells no word that its page must not say; of all letters, one in 240,000 spells "nats".
csrf.CSRF_ALLOWED_CHARS = "JQVWXZ"

# How long an example takes says how busy the machine is, and nothing of what is tested.
drawn.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# An ordinary run draws fewer examples and the same ones each time; `make test-slow` draws more, and new ones.
drawn.register_profile("ordinary", parent=drawn.get_profile("patient"), max_examples=25, derandomize=True)
# A planted fault is noticed or not, and not by luck.
drawn.register_profile("planted", deadline=None, derandomize=True, database=None)
drawn.load_profile("patient")

# Of each test that is marked `one_in`, how many cases were collected.
CASES_SEEN: Counter[str] = Counter()
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_ON_MACOS = (
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register what only this file knows about, and keep the order of files where no seed asks for another."""
    # What is collected stays; looking for garbage meanwhile finds none and takes a sixth of the time.
    gc.disable()
    if config.option.randomly_seed == "default":
        config.option.randomly_reorganize = False
    config.addinivalue_line("markers", "slow: takes long; left out of `make test`, run by `make test-slow`")
    config.addinivalue_line("markers", "every_change: a test in a browser that `make test` runs, too")
    config.addinivalue_line("markers", "real_chance: draws from the operating system; states its false-alarm rate")
    config.addinivalue_line("markers", "one_in(n): of its cases `make test` takes every nth, `make test-slow` all")
    if "not slow" in config.option.markexpr and not config.getoption("--hypothesis-profile"):
        drawn.load_profile("ordinary")
    if getattr(config.option, "numprocesses", None):
        # Workers inherit this environment and would load the settings before their own conftest names their folder.
        del os.environ["DJANGO_SETTINGS_MODULE"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark as slow what an ordinary run leaves out.

    Those are the tests in a browser that are not for every change, and of the cases that are marked `one_in(n)` all but
    the first of every n. What needs a cluster gets the mark that `make test-spark` asks for.
    """
    if item.get_closest_marker("browser") is not None and item.get_closest_marker("every_change") is None:
        item.add_marker(pytest.mark.slow)
    if (share := item.get_closest_marker("one_in")) is not None:
        test = item.nodeid.partition("[")[0]
        if CASES_SEEN[test] % share.args[0]:
            item.add_marker(pytest.mark.slow)
        CASES_SEEN[test] += 1
    if needs_spark.mark in item.iter_markers("skipif"):
        item.add_marker("spark")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let what failed by the browser alone be tried again."""
    # `-p no:rerunfailures` tries nothing again.
    if config.pluginmanager.hasplugin("rerunfailures"):
        try_again(items, config.rootpath)


def pytest_collection_finish() -> None:
    """Keep the collector of garbage from what was collected, which stays, and from looking as often as a site needs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    """Remove what this run wrote."""
    shutil.rmtree(RUN_DIR, ignore_errors=True)
    with contextlib.suppress(OSError):
        RUN_DIR.parent.rmdir()


@dataclass(frozen=True, slots=True)
class TestServers:
    """Where this test process finds its database server and its broker.

    `database_url` names the role that the product runs as, `owner_url` the one that owns the tables.
    """

    __test__ = False

    database_url: str
    owner_url: str
    broker_url: str


@pytest.fixture(scope="session")
def embedded_servers() -> Iterator[TestServers]:
    """Start, or join, the servers all test runs share; fast rather than durable."""
    SHARED.mkdir(parents=True, exist_ok=True, mode=0o711)
    postgres = EmbeddedPostgres(SHARED / "postgres", durable=False)
    valkey = EmbeddedValkey(SHARED / "valkey", durable=False)
    with (SHARED / "users.lock").open("a") as users:
        alone = _lock_if_alone(users.fileno())
        if not alone:
            fcntl.flock(users, fcntl.LOCK_SH)
        postgres.start()
        valkey.start()
        if alone:
            _drop_leftovers(postgres)
            fcntl.flock(users, fcntl.LOCK_SH)
        database = f"test_{RUN}_{WORKER}"
        owner_url = postgres.url(database)
        # Roles belong to the whole server, which other runs share.
        used_url = site_url(owner_url, f"site_{database}")
        yield TestServers(used_url, owner_url, valkey.url(1 + zlib.crc32(database.encode()) % 1023))
        if _lock_if_alone(users.fileno()):
            postgres.stop()
            valkey.stop()


def _lock_if_alone(users: int) -> bool:
    """Take the lock for ourselves if no other test process holds a share of it."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _drop_leftovers(postgres: EmbeddedPostgres) -> None:
    """Remove the databases of runs that were killed, and then their roles, and of other versions."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        drop_others(connection, template_name())
        for (name,) in connection.execute(r"SELECT datname FROM pg_database WHERE datname LIKE 'test\_%'").fetchall():
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        for (name,) in connection.execute(r"SELECT rolname FROM pg_roles WHERE rolname LIKE '%\_test\_%'").fetchall():
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    embedded_servers: TestServers, emptying_what_was_written: None, django_db_blocker: "DjangoDbBlocker"
) -> None:
    """Point Django and Celery, whose settings loaded without any server, at the test servers."""
    settings.DATABASE_URL, settings.EMBEDDED = embedded_servers.database_url, False
    settings.DATABASE_OWNER_URL = embedded_servers.owner_url
    # Making a database takes its owner; `django_db_setup` steps down from that.
    address = parse_database_url(embedded_servers.owner_url)
    database = connections.settings["default"]
    database.update(address)
    database["TEST"]["NAME"] = address["NAME"]
    # Test databases are created from a connection to an existing one.
    database["NAME"] = "dpal"
    settings.CELERY_BROKER_URL = celery_app.conf.broker_url = embedded_servers.broker_url
    # `migrate` then finds nothing to do but to give the site's role its rights.
    database["TEST"]["TEMPLATE"] = template_name()
    with django_db_blocker.unblock():
        make_template(EmbeddedPostgres(SHARED / "postgres", durable=False), template_name(), SHARED / "template.lock")


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: "DjangoDbBlocker", embedded_servers: TestServers
) -> Iterator[None]:
    """Run what is tested as the site's role, which owns nothing; `tests.owning` is for what the owner does."""
    with django_db_blocker.unblock():
        know_the_counter()
    begin_over()
    role = parse_database_url(embedded_servers.database_url)["USER"]
    options = connections.settings["default"]["OPTIONS"]
    with django_db_blocker.unblock():
        connections["default"].close()
    options["options"] = f"-c role={role}"
    yield
    connections["default"].close()
    del options["options"]
    with psycopg.connect(embedded_servers.owner_url, autocommit=True) as connection:
        # A thread or a process that ends a moment later would hold up that the database goes.
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            [connections["default"].settings_dict["NAME"]],
        )
        for statement in ("DROP OWNED BY {}", "DROP ROLE {}"):
            connection.execute(sql.SQL(statement).format(sql.Identifier(role)))


@pytest.fixture(scope="session")
def emptying_what_was_written() -> Iterator[None]:
    """Empty the tables after a test that commits, the append-only ones too, without what Django does on top."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_after)
        patch.setattr(TransactionTestCase, "_should_reload_connections", needs_new_sessions)
        yield


@pytest.fixture
def broker(embedded_servers: TestServers, django_db_modify_db_settings: None) -> str:
    """Return the address of this process's broker, emptied."""
    with redis.Redis.from_url(embedded_servers.broker_url) as client:
        client.flushdb()
    return embedded_servers.broker_url


@pytest.fixture
def supervisor(
    transactional_db: None, embedded_servers: TestServers, broker: str, tmp_path: Path
) -> Iterator[Supervisor]:
    """Give a supervisor whose processes share this test's database, broker, storage and secrets; none started yet."""
    environment = {
        "DATABASE_URL": embedded_servers.database_url,
        "CELERY_BROKER_URL": broker,
        "SECRET_KEY": settings.SECRET_KEY,
        "PSEUDONYM_KEY": settings.PSEUDONYM_KEY,
        "SIGNING_KEY": settings.SIGNING_KEY,
        "PYTHONWARNINGS": "default",
    }
    with Supervisor(tmp_path / "log", environment=environment, grace_seconds=5) as site:
        yield site


@pytest.fixture
def celery_worker_process(supervisor: Supervisor) -> Supervisor:
    """Run a real worker process against the test database; `restart("worker")` and `pid("worker")` act on it."""
    supervisor.start_worker()
    return supervisor


@pytest.fixture(scope="session")
def collected_static_files() -> None:
    """Collect the static files as a deployed site does, for processes that run with its own settings."""
    command = [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity", "0"]
    subprocess.run(command, cwd=servers.REPOSITORY, check=True)


@pytest.fixture(scope="session", autouse=True)
def turns_on_a_site() -> Iterator[int]:
    """Hash passwords as a site does, in fewer turns than the number given, which are a second of a test's login.

    Each hash says how many it took, so a site's own processes read it, too.
    """
    turns = PBKDF2PasswordHasher.iterations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PBKDF2PasswordHasher, "iterations", 1000)
        yield turns


@pytest.fixture(scope="session", autouse=True)
def clients_hold_the_secret() -> Iterator[None]:
    """Give test clients what a browser gets: the secret of a session, and not the key it stands under."""
    from tests.visiting import let_clients_log_in  # noqa: PLC0415  # loads models

    with pytest.MonkeyPatch.context() as patch:
        let_clients_log_in(patch)
        yield


@pytest.fixture(autouse=True)
def chance_that_repeats(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed chance by the test's name, but where chance itself is tested."""
    if "tests/statistical" not in request.node.nodeid and request.node.get_closest_marker("real_chance") is None:
        let_chance_repeat(monkeypatch, request.node.nodeid)


@pytest.fixture(autouse=True)
def own_language() -> Iterator[None]:
    """Forget the language a test's last request was answered in."""
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def leases_nobody_else_sees(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test is one open transaction, the thread that renews a lease sees no row of it, and would give it up."""
    marker = request.node.get_closest_marker("django_db")
    if marker is not None and not marker.kwargs.get("transaction"):
        monkeypatch.setattr("annotation.work.services.attempts.Lease._keep", lambda lease: None)


@pytest.fixture
def manager() -> "User":
    """Make a person; a test that opens a project as them has a manager."""
    from tests.factories import make_user  # noqa: PLC0415  # loads models

    return make_user("manager")


@pytest.fixture
def owner() -> "User":
    from tests.factories import make_user  # noqa: PLC0415  # loads models

    return make_user("owner")


@pytest.fixture
def project() -> "Project":
    from tests.factories import make_project  # noqa: PLC0415  # loads models

    return make_project()


@pytest.fixture
def people(project: "Project") -> "list[User]":
    from tests.factories import make_annotators  # noqa: PLC0415  # loads models

    return make_annotators(project, 2)


@pytest.fixture
def release(project: "Project") -> "ModelRelease":
    """The only release of a project."""
    return project.releases.get()


@pytest.fixture
def ask(project: "Project", manager: "User") -> "Program":
    """A program of the manager's that asks about the project."""
    from tests.programs import Program  # noqa: PLC0415  # loads models

    return Program(manager, project)


@pytest.fixture
def own_counter(settings, tmp_path: Path) -> None:
    """A counter of the test's own: projects of other tests are gone, and the shared one would miss them."""
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)


@pytest.fixture
def fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def sent_tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keep tasks from the broker, and return the names of those that would have gone there."""
    names: list[str] = []
    monkeypatch.setattr(Celery, "send_task", lambda app, name, *args, **options: names.append(name))
    return names


@pytest.fixture(autouse=True)
def nothing_is_sent(request: pytest.FixtureRequest) -> None:
    """Send no task where a test asks for no broker: nobody would work it off."""
    if request.node.get_closest_marker("django_db") is not None and "broker" not in request.fixturenames:
        request.getfixturevalue("sent_tasks")


@pytest.fixture
def live_site(collected_static_files: None, supervisor: Supervisor) -> Supervisor:
    """Run the site against the test database; its address is `live_site.url`.

    One process with its threads: loading the site is what such a test spends most of its time on.
    """
    supervisor.start_web(host.free_port(), workers=1)
    supervisor.wait_until_ready()
    return supervisor


def find_chromium() -> str | None:
    """Return the browser named by CHROMIUM, or one found in the usual places."""
    if chosen := os.environ.get("CHROMIUM"):
        return chosen
    in_path = (shutil.which(name) for name in CHROMIUM_NAMES)
    on_macos = (str(path) for path in CHROMIUM_ON_MACOS if sys.platform == "darwin" and path.exists())
    return next((found for found in (*in_path, *on_macos) if found), None)


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Callable[[], Browser]]":
    """Return what gives the module's Chromium, started when first asked for, and anew where it went away."""
    executable = find_chromium()
    if executable is None:
        pytest.skip("browser tests skipped: no Chromium found; install it, or name one in the variable CHROMIUM")
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415  # slow import

    # Five seconds, the default, are short where two processes of tests, their sites and browsers share two cores.
    expect.set_options(timeout=30_000)
    with pytest.MonkeyPatch.context() as environment, sync_playwright() as playwright:
        # Playwright runs an event loop on this thread, where Django would refuse every query.
        environment.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        started: list[Browser] = []

        def connected() -> "Browser":
            if not started or not started[-1].is_connected():
                started.append(playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS))
            return started[-1]

        yield connected
        for each in started:
            each.close()


@pytest.fixture
def browser(chromium: "Callable[[], Browser]") -> "Browser":
    """Return the Chromium of this module's tests."""
    return chromium()


@pytest.fixture
def page_faults() -> list[str]:
    """Collect what the page did wrong; whatever is left in the list at the end fails the test."""
    return []


@pytest.fixture
def page(browser: "Browser", page_faults: list[str]) -> "Iterator[Page]":
    """Open a page that may talk to this machine only; a script error or a breach of the CSP fails the test."""

    def refuse_strangers(route: "Route") -> None:
        if route.request.url.startswith((f"http://{host.LOOPBACK}:", "http://localhost:")):
            route.continue_()
        else:
            page_faults.append(f"asked another host for {route.request.url}")
            route.abort()

    def hear(message: "ConsoleMessage") -> None:
        if "Content Security Policy" in message.text:
            page_faults.append(message.text)

    with browser.new_context() as context:
        context.route("**/*", refuse_strangers)
        opened = context.new_page()
        opened.set_default_timeout(30_000)
        opened.on("pageerror", lambda error: page_faults.append(f"script error: {error}"))
        opened.on("console", hear)
        yield opened
    assert not page_faults


@pytest.fixture
def own_storage(settings, tmp_path) -> Path:
    """Keep the site's files in a folder of the test's own, and return it."""
    folder: Path = tmp_path / "storage"
    folder.mkdir()
    backend = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(folder)}}
    settings.STORAGES = settings.STORAGES | {"default": backend}
    return folder


@pytest.fixture(scope="session")
def beginnings() -> "dict[str, Beginning]":
    """Give what tests of this process begin with and keep for each other."""
    return {}


@pytest.fixture
def remembered(
    beginnings: "dict[str, Beginning]", own_storage: Path, tmp_path_factory: pytest.TempPathFactory
) -> "Callable[[str, Callable[[], Any]], Any]":
    """Give a function that returns what a build makes, such as a project, which an empty site begins with.

    It is built for the first test that asks for its name and put back for the others; people and other rows of the
    test's own come afterwards.
    """
    from tests.remembering import begin  # noqa: PLC0415  # loads models

    def beginning(name: str, build: Callable[[], Any]) -> Any:
        return begin(beginnings, name, build, storage=own_storage, room=tmp_path_factory.getbasetemp())

    return beginning


@pytest.fixture
def reads_here() -> Iterator[None]:
    """Read files in the test's process; `tests.in_process` says why."""
    from tests.in_process import reading_here  # noqa: PLC0415  # loads the readers

    with reading_here():
        yield


@pytest.fixture
def bucket(settings, monkeypatch) -> "Iterator[MemoryStore]":
    """Have the site's files, and whatever else, in an S3 store in memory."""
    from django.core.files.storage import default_storage, storages  # noqa: PLC0415  # few tests need them
    from django.utils.functional import empty  # noqa: PLC0415

    from dpal_site.environment import storage_settings  # noqa: PLC0415
    from tests import memory_store  # noqa: PLC0415

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "its secret")
    before = settings.STORAGES
    with memory_store.running() as started:
        address = storage_settings(f"s3://site/files?endpoint_url={started.endpoint}&region=eu-central-1")
        settings.STORAGES = before | {"default": address}
        storages._storages.clear()
        default_storage._wrapped = empty
        yield started
    settings.STORAGES = before
    storages._storages.clear()
    default_storage._wrapped = empty


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Cluster]":
    """Run a cluster of Spark for the tests of a module."""
    from tests.spark_cluster import Cluster  # noqa: PLC0415  # few tests need one

    running = Cluster(tmp_path_factory.mktemp("spark"))
    try:
        running.start()
        yield running
    finally:
        running.stop()
