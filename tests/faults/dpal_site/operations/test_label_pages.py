import http.client
import os
import re
import signal
from collections.abc import Iterator
from secrets import token_hex
from urllib.parse import urlencode, urlsplit
from uuid import UUID

import psycopg
import pytest
from django.contrib.auth.models import User
from psycopg import sql

from annotation.models import Assignment, AssignmentState, Label
from dpal_site.demo.annotators import Browser
from dpal_site.embedded import host
from dpal_site.embedded.processes import Supervisor
from dpal_site.operations import roles
from dpal_site.operations.roles import RoleAddress
from tests.factories import add_members, make_project, open_records
from tests.owning import as_owner

pytestmark = pytest.mark.faults
PASSWORD = "correct horse battery"
NAMES = "127.0.0.1,localhost,phone.example"


@pytest.fixture
def site(supervisor, embedded_servers, collected_static_files, transactional_db) -> Iterator[Supervisor]:
    _, _, address = embedded_servers.database_url.partition("@")
    role = RoleAddress(f"front_{token_hex(6)}", token_hex(16))
    with as_owner():
        roles.grant_label_role(role)
    label_url = f"postgresql://{role.name}:{role.password}@{address}"
    supervisor._environment |= {"LABEL_DATABASE_URL": label_url, "ALLOWED_HOSTS": NAMES, "LOG_FORMAT": "json"}
    supervisor.start_web_and_label(host.free_port(), workers=1)
    supervisor.wait_until_ready()
    yield supervisor
    supervisor.stop()
    with psycopg.connect(embedded_servers.owner_url, autocommit=True) as connection:
        for statement in ("DROP OWNED BY {}", "DROP ROLE {}"):
            connection.execute(sql.SQL(statement).format(sql.Identifier(role.name)))


@pytest.fixture
def project():
    ann = User.objects.create_user("ann", password=PASSWORD)
    project = make_project()
    add_members(project, ann)
    open_records(project, 3)
    return project


def ask(site: Supervisor, path: str, method: str = "GET", body: bytes | None = None, **headers: str):
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=120)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def requests_of(site: Supervisor, name: str) -> list[str]:
    return [line for line in site.log_path(name).read_text().splitlines() if '"event": "request"' in line]


@pytest.mark.slow
def test_whoever_comes_stays_where_they_came(site):
    for name in NAMES.split(","):
        there = f"{name}:{urlsplit(site.url).port}"
        status, headers, _ = ask(site, "/projects/none/label/?guidelines=open", Host=there)
        assert status == 302
        assert headers["Location"] == "/login/?next=/projects/none/label/%3Fguidelines%3Dopen"
        for each in ("Content-Security-Policy", "X-Frame-Options", "Cache-Control", "Date", "X-Request-ID"):
            assert len(headers.get_all(each) or []) == 1, each
        status, headers, _ = ask(site, f"/assignments/{UUID(int=0)}/submit/", Host=there)
        assert (status, urlsplit(headers["Location"]).netloc) == (302, "")
    # The label process is told who asks by the other one, and by nobody else.
    ask(site, f"/assignments/{UUID(int=0)}/comment/", "POST", b"", X_Forwarded_For="203.0.113.9")
    refused = [line for line in site.log_path("label").read_text().splitlines() if '"access.refused"' in line]
    assert [re.findall(r'"network": "([^"]*)"', line) for line in refused] == [["127.0.0.0/24"]]
    # No answer is so long.
    body = urlencode({"comment": "x" * 1_100_000}).encode()
    status, _, said = ask(site, f"/assignments/{UUID(int=0)}/comment/", "POST", body)
    assert status == 413
    assert "The request is too large for" in said


@pytest.mark.slow
def test_a_person_logs_in_and_labels_by_the_name_they_came_by(site, project):
    browser = Browser(site.url.replace("127.0.0.1", "localhost"))
    browser.log_in(username="ann", password=PASSWORD)
    page = browser.open(f"/projects/{project.slug}/label/")
    for _number in range(3):
        assert page.url == f"{browser.site}/projects/{project.slug}/label/"
        held = Assignment.objects.get(state=AssignmentState.LEASED)
        assert page.question.startswith(held.query.record.text)
        form = next(form for form in page.forms.values() if form.choices)
        page = browser.send(form, {"choice": "1"})
    assert list(Label.objects.values_list("choice", flat=True)) == [1, 1, 1]
    # It was the process without rights that answered, and it was told who asked.
    answered = [line for line in requests_of(site, "label") if "submit" in line]
    assert len(answered) == 3
    assert not [line for line in requests_of(site, "web") if "submit" in line or "/label/" in line]


@pytest.mark.slow
def test_a_label_process_that_died_is_said_and_comes_back(site):
    os.killpg(site.pid("label"), signal.SIGKILL)
    assert host.wait_until(lambda: site.ended() == ["label"], 120)
    page = "/projects/none/label/"
    status, headers, said = ask(site, page, "POST", b"choice=1")
    assert (status, headers["Retry-After"]) == (503, "5")
    assert "The label page does not answer" in said
    assert "Content-Security-Policy" in headers
    assert ask(site, "/login/")[0] == 200
    told: list[str] = []

    def is_back() -> bool:
        site.revive(told.append)
        return ask(site, page)[0] == 302

    assert host.wait_until(is_back, 120, poll_seconds=0.5)
    assert "The label process ended" in told[0]
