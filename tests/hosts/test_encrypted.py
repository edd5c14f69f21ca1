import json
import re
from urllib.parse import urlsplit

import psycopg
import pytest
import requests

from dpal_site.embedded import host
from dpal_site.operations import roles
from tests.faults.storm.load import Load
from tests.faults.storm.site import OwnSite
from tests.faults.test_storm import SEED, judged, told, unfinished
from tests.hosts.pooler import PoolerTls, PrivatePooler

pytestmark = [pytest.mark.faults, pytest.mark.hosts, pytest.mark.slow]
LOOP_SECONDS = 400
PLAIN = (
    "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.client_addr IS NOT NULL AND NOT ssl"
)
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm')"
LOG_IN = """
import django
django.setup()
from types import SimpleNamespace
from django.contrib.auth.models import User
from annotation.models import Membership
from django.test import Client
from tests.visiting import let_clients_log_in
let_clients_log_in(SimpleNamespace(setattr=setattr))
person = User.objects.get(pk=Membership.objects.filter(project__slug={slug!r}, role="annotator").first().user_id)
client = Client()
client.force_login(person)
print(client.cookies["sessionid"].value)
"""


class EncryptedSite(OwnSite):
    def __init__(self, folder, servers, pooler):
        super().__init__(folder)
        self._servers, self._pooler = servers, pooler
        self.postgres, self.valkey = _Borrowed(servers.database_url()), _Borrowed(servers.broker_url)
        self.label_port = self.web_port + 1 if host.port_is_free(self.web_port + 1) else host.free_port()

    @property
    def label_process(self):
        return f"http://{host.LOOPBACK}:{self.label_port}"

    def _environment(self):
        shared = {
            "DATABASE_URL": self._pooler.url,
            # Tables are changed past the pooler.
            "DATABASE_OWNER_URL": self._servers.database_url(),
            "DATABASE_POOLER": "transaction",
            "BROKER_CA_FILE": str(self._servers.secrets / "authority"),
            # Only this name of it: the role is made with it.
            "LABEL_DATABASE_URL": self._pooler.label_url,
        }
        return super()._environment() | shared

    def start_all(self, port):
        label = {"SITE_PART": "label", "WEB_URL": self.url, "DATABASE_URL": "", "PSEUDONYM_KEY": "", "SIGNING_KEY": ""}
        web = {"SITE_PART": "web", "LABEL_URL": self.label_process, "DATABASE_URL": self._pooler.web_url}
        self.processes._start_server("web", port, 2, web | {"LABEL_DATABASE_URL": ""})
        self.processes._start_server("label", self.label_port, 2, label)
        self.processes.start_worker(concurrency=2)
        self.processes.start_beat()
        self.processes.wait_until_ready(240)


class _Borrowed:
    """A server that somebody else starts and ends."""

    def __init__(self, url):
        self._url = url

    def url(self):
        return self._url

    def start(self):
        """Run already."""

    def stop(self):
        """Go on."""


@pytest.fixture(scope="module")
def pooler(servers, tmp_path_factory):
    secrets = servers.secrets
    tls = PoolerTls(secrets / "authority", secrets / "postgres_certificate", secrets / "postgres_key")
    addresses = servers.database_url("database_url"), servers.database_url("label_database_url")
    started = PrivatePooler(
        tmp_path_factory.mktemp("pooler") / "pooler", addresses[0], sessions=3, label_url=addresses[1], tls=tls
    )
    try:
        started.open()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def site(servers, pooler, tmp_path_factory):
    """Start the site, and end it; the roles that the pooler knows are there once its database is prepared."""
    with EncryptedSite(tmp_path_factory.mktemp("site"), servers, pooler) as started:
        pooler.wait()
        started.load_of = json.loads(started.python("-m", "tests.faults.storm.stage"))
        started.start_all(started.web_port)
        yield started


@pytest.fixture(scope="module")
def loop(site):
    """Take the site through its loop, alone; return the load and what the ledger and the tables say of it."""
    load = Load(site.url, site.load_of, SEED)
    load.start()
    released = "SELECT count(*) FROM learner_modelrelease WHERE state <> 'candidate'"
    assert host.wait_until(lambda: site.ask(released)[0][0] > 0, LOOP_SECONDS, 0.5), load.seen
    # Whoever is connected to the database over the network is so with TLS.
    assert site.ask(PLAIN) == [(0,)]
    load.stop(LOOP_SECONDS)
    assert host.wait_until(lambda: not unfinished(site), LOOP_SECONDS, 0.5), unfinished(site)
    site.processes.check_running()
    given = json.dumps(load.told())
    return load, judged(
        site, lambda: json.loads(site.python("-m", "tests.faults.storm.verdict", given=given).splitlines()[-1])
    )


def test_the_site_runs_its_loop(site, loop):
    load, found = loop
    told(load, [], found)
    ready = requests.get(f"{site.url}/readyz", timeout=60)
    assert (ready.status_code, "broker: ok" in ready.text) == (200, True), ready.text


def test_the_label_process_answers_through_the_pooler_under_its_role(site, loop):
    slug = site.load_of["experts"]["slug"]
    cookies = {"sessionid": site.python("-c", LOG_IN.format(slug=slug)).strip()}
    mine = "SELECT count(*) FROM annotation_label"
    before = site.ask(mine)[0][0]
    page = requests.get(f"{site.label_process}/projects/{slug}/label/", cookies=cookies, timeout=60)
    assert page.status_code == 200
    path = re.search(r'action="(/assignments/[^"]+/submit/)"', page.text)[1]
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]
    answer = requests.post(
        f"{site.label_process}{path}",
        data={"choice": "0", "csrfmiddlewaretoken": token},
        cookies=cookies | page.cookies.get_dict(),
        timeout=60,
        allow_redirects=False,
    )
    assert answer.status_code in (200, 303), answer.text
    assert site.ask(mine)[0][0] == before + 1
    # What is not its own it sends on.
    elsewhere = f"/projects/{slug}/data/"
    other = requests.get(f"{site.label_process}{elsewhere}", cookies=cookies, timeout=60, allow_redirects=False)
    assert (other.status_code, other.headers["Location"]) == (307, f"{site.url}{elsewhere}")


def refused(connection, statement):
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_the_label_role_still_reads_nothing_else_through_the_pooler(site, pooler):
    tables = {name for (name,) in site.ask(TABLES)}
    assert {"annotation_record", "annotation_encounter", "privacy_ledgerentry"} <= tables
    with psycopg.connect(pooler.label_url, autocommit=True, prepare_threshold=None) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("dpal_label",)
        readable = {table for table in tables if not refused(connection, f'SELECT * FROM "{table}" LIMIT 1')}
        assert readable == {table for table, rights in roles.LABEL_GRANTS.items() if "SELECT" in rights}
        for statement in (
            "SELECT contributor FROM annotation_encounter",
            "COPY annotation_record TO STDOUT",
            "SET ROLE dpal",
            "SET SESSION AUTHORIZATION dpal",
            "CREATE TABLE mine (copied text)",
        ):
            assert refused(connection, statement), statement
    # Sessions of the owner are never lent to the role, whoever came before.
    owner = urlsplit(pooler.url)
    stolen = pooler.label_url.replace("/pooled_label?", "/pooled?").replace("dpal_label:", f"{owner.username}:")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(stolen)


@pytest.mark.parametrize("demand", ["sslmode=disable", "sslmode=verify-full&sslrootcert=system"])
def test_the_pooler_is_reached_with_a_checked_certificate_or_not_at_all(site, pooler, demand):
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(f"{pooler.url.partition('?')[0]}?{demand}")
    with psycopg.connect(pooler.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
