"""The common account for strangers: its statement as a file, and a witness that sees it forget."""

import base64
import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings as site_settings
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation.budget import services
from annotation.models import Role
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from privacy.accounting.events import BernoulliScreenEvent, OutputPerturbationEvent
from privacy.ledger import services as ledger
from privacy.ledger.auditor.merkle import leaf_hash, verify_inclusion
from privacy.ledger.auditor.notes import open_checkpoint
from privacy.ledger.auditor.statement import StatementRefused, audit_statement
from privacy.ledger.checkpoints import site_key
from privacy.ledger.counter import site_counter
from privacy.ledger.keys import decoded_key
from privacy.ledger.marks import AccountIdentity, Mark
from privacy.ledger.models import EntryKind
from tests.clients import browser_of
from tests.counting import new_counter
from tests.factories import add_members, make_account, make_project, make_user, open_population
from tests.owning import without_rules

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_counter")]
RELEASE = OutputPerturbationEvent(10.0, 0.3, 5, 1e-6)


@pytest.fixture
def project():
    return make_project(slug="notes", pool_account=make_account(epsilon_limit=100.0, delta_limit=1e-4))


@pytest.fixture
def population(owner, project):
    opened = open_population(owner=owner)
    services.add_project(population=opened, project=project, records_per_person=2, actor=owner)
    return opened


@pytest.fixture
def secret(owner):
    return tokens.create_token(user=owner, name="t", scopes=[Scope.LEDGER_READ], lifetime=timedelta(days=1))[1]


def spend(project, times=1):
    for _ in range(times):
        ledger.reserve(account=project.pool_account, event=RELEASE, purpose="a test", key=uuid4())


def statement_of(owner, population) -> bytes:
    client = browser_of(owner)
    answer = client.get(reverse("annotation:population_statement", args=[population.slug]))
    return b"".join(answer.streaming_content)


def test_a_populations_statement_is_audited_from_the_file_alone(owner, project, population, secret):
    spend(project, 3)
    content = statement_of(owner, population)
    found = audit_statement(content, public_key=site_key().public_key)
    assert found.sound, found.verdicts
    document = json.loads(content)
    assert document["population"] == population.slug
    assert "project" not in document
    (account,) = document["accounts"]
    assert account["scope"] == population.scope
    # Costs are computed anew from what each operation of a project costs a person with two records.
    assert [entry["kind"] for entry in account["entries"]].count(EntryKind.RESERVE) == 3
    cheaper = re.sub(rb"(records_per_person[^0-9]+)2", rb"\g<1>1", content, count=1)
    assert cheaper != content
    assert not audit_statement(cheaper, public_key=site_key().public_key).sound
    by_rest = Client(headers={"Authorization": f"Bearer {secret}"}).get(
        f"/api/v1/populations/{population.slug}/ledger/statement"
    )
    same = json.loads(b"".join(by_rest.streaming_content))
    assert same["accounts"][0]["entries"] == account["entries"]


def test_a_statement_of_nobody_or_of_two_is_none(owner, population):
    document = json.loads(statement_of(owner, population))
    for change in ({"project": "notes"}, {"population": None}):
        wrong = {name: value for name, value in (document | change).items() if value is not None}
        with pytest.raises(StatementRefused, match="project or population"):
            audit_statement(json.dumps(wrong).encode())


def test_a_witness_sees_the_common_limit_forget(live_server, project, population, secret, tmp_path, settings):
    kept = tmp_path / "witness" / "seen.json"

    def look() -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "privacy.audit", "witness", live_server.url, population.slug, "--population"]
        options = ["--public-key", site_key().public_key, "--keep", str(kept)]
        told = {"PATH": os.environ["PATH"], "DPAL_TOKEN": secret}
        return subprocess.run(
            [*command, *options], cwd=site_settings.BASE_DIR, env=told, capture_output=True, text=True
        )

    spend(project, 3)
    first = look()
    assert first.returncode == 0, first.stderr
    assert f"/{population.scope}: 4 entries" in first.stdout
    spend(project)
    assert "5 entries" in look().stdout
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with without_rules("privacy_ledgerentry") as cursor:
        cursor.execute("DELETE FROM privacy_ledgerentry WHERE account_id = %s AND sequence > 3", [population.pk])
    (tmp_path / "another").mkdir()
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path / "another")
    forgot = look()
    assert forgot.returncode == 1
    assert "ROLLBACK" in forgot.stderr


SCREEN = BernoulliScreenEvent(q_hi=0.6, q_lo=0.4)


@pytest.fixture
def watched():
    return make_project(pool_account=make_account(epsilon_limit=100.0, delta_limit=1e-6))


@pytest.fixture
def token(watched):
    person = make_user()
    add_members(watched, person, role=Role.ENGINEER)
    return tokens.create_token(user=person, name="t", scopes=[Scope.LEDGER_READ], lifetime=timedelta(days=1))[1]


def pay(account, times=1):
    for _ in range(times):
        ledger.reserve(account=account, event=SCREEN, purpose="a test", key=uuid4())


def forget(account, last: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with without_rules("privacy_ledgerentry") as cursor:
        cursor.execute("DELETE FROM privacy_ledgerentry WHERE account_id = %s AND sequence > %s", [account.pk, last])


def get(client, watched, name: str, token: str, **query):
    return client.get(
        f"/api/v1/projects/{watched.slug}/ledger/{name}", query, headers={"Authorization": f"Bearer {token}"}
    )


def test_another_host_notices_what_the_site_itself_has_forgotten(live_server, watched, token, tmp_path, settings):
    """The counter goes back with the database, so the site sees nothing; the witness does, also after it grew."""
    account, kept = watched.pool_account, tmp_path / "witness" / "seen.json"

    def look() -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "privacy.audit", "witness", live_server.url, watched.slug]
        options = ["--public-key", site_key().public_key, "--keep", str(kept)]
        environment = {"PATH": os.environ["PATH"], "DPAL_TOKEN": token}
        return subprocess.run(
            [*command, *options], cwd=site_settings.BASE_DIR, env=environment, capture_output=True, text=True
        )

    pay(account, 4)
    first = look()
    assert first.returncode == 0, first.stderr
    assert f"/{account.scope}: 5 entries" in first.stdout
    pay(account, 3)
    assert "8 entries" in look().stdout
    forget(account, 6)
    # The site knows: it signs no checkpoint that contradicts an earlier one.
    assert "409" in look().stderr
    (tmp_path / "another").mkdir()
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path / "another")
    rolled_back = look()
    assert rolled_back.returncode == 1
    assert "ROLLBACK" in rolled_back.stderr
    assert "8 entries were seen, 6 are shown" in rolled_back.stderr
    go_on(account)
    grown = look()
    assert grown.returncode == 1
    assert "FORK" in grown.stderr


def go_on(account) -> None:
    last = account.entries.latest("sequence")
    site_counter().advance(AccountIdentity(account.scope, account.created_at), Mark(last.sequence, last.hash))
    pay(account, 5)


def test_an_entry_is_proven_to_be_in_the_log(client, watched, token):
    pay(watched.pool_account, 6)
    entries = list(watched.pool_account.entries.order_by("sequence"))
    for size in (3, 7, 0):
        answer = get(client, watched, "inclusion", token, sequence=3, size=size).json()
        checkpoint = open_checkpoint(answer["checkpoint"], public_key=decoded_key(site_key().public_key))
        assert checkpoint.size == answer["size"] == (size or 7)
        assert answer["hash"] == entries[2].hash
        hashes = [base64.b64decode(each) for each in answer["hashes"]]
        leaf = leaf_hash(bytes.fromhex(entries[2].hash))
        assert verify_inclusion(leaf, 2, checkpoint.size, hashes, checkpoint.root)
        another = leaf_hash(bytes.fromhex(entries[1].hash))
        assert not verify_inclusion(another, 2, checkpoint.size, hashes, checkpoint.root)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("consistency", {"old": 3, "size": 2}),
        ("consistency", {"old": 1, "size": 99}),
        ("inclusion", {"sequence": 99}),
        ("inclusion", {"sequence": 2, "size": 1}),
        ("inclusion", {"sequence": 0}),
        ("consistency", {"size": -1}),
    ],
)
def test_proofs_of_what_is_not_there_are_refused(client, watched, token, name, query):
    pay(watched.pool_account)
    assert get(client, watched, name, token, **query).status_code == 422
    assert get(client, watched, name, token, account="another").status_code == 404


def test_checkpoints_are_named_after_the_site(client, watched, token, settings):
    settings.LEDGER_ORIGIN = "labels.example/ledger"
    (row,) = get(client, watched, "checkpoints", token).json()
    assert row["account"] == watched.pool_account.scope
    assert row["checkpoint"].startswith("labels.example/ledger/")
    assert json.dumps(row).count(watched.pool_account.entries.latest("sequence").hash) == 0
