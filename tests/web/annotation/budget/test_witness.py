import base64
import json
import os
import subprocess
import sys
from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings as site_settings
from django.db import connection

from annotation.models import Role
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from privacy.accounting.events import BernoulliScreenEvent
from privacy.ledger import services as ledger
from privacy.ledger.auditor.merkle import leaf_hash, verify_inclusion
from privacy.ledger.auditor.notes import open_checkpoint
from privacy.ledger.checkpoints import site_key
from privacy.ledger.counter import site_counter
from privacy.ledger.keys import decoded_key
from privacy.ledger.marks import AccountIdentity, Mark
from tests.counting import new_counter
from tests.factories import add_members, make_account, make_project, make_user
from tests.owning import without_rules

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_counter")]
SCREEN = BernoulliScreenEvent(q_hi=0.6, q_lo=0.4)


@pytest.fixture
def project():
    return make_project(pool_account=make_account(epsilon_limit=100.0, delta_limit=1e-6))


@pytest.fixture
def secret(project):
    person = make_user()
    add_members(project, person, role=Role.ENGINEER)
    return tokens.create_token(user=person, name="t", scopes=[Scope.LEDGER_READ], lifetime=timedelta(days=1))[1]


def spend(account, times=1):
    for _ in range(times):
        ledger.reserve(account=account, event=SCREEN, purpose="a test", key=uuid4())


def forget(account, last: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with without_rules("privacy_ledgerentry") as cursor:
        cursor.execute("DELETE FROM privacy_ledgerentry WHERE account_id = %s AND sequence > %s", [account.pk, last])


def get(client, project, name: str, secret: str, **query):
    return client.get(
        f"/api/v1/projects/{project.slug}/ledger/{name}", query, headers={"Authorization": f"Bearer {secret}"}
    )


def test_another_host_notices_what_the_site_itself_has_forgotten(live_server, project, secret, tmp_path, settings):
    """The counter goes back with the database, so the site sees nothing; the witness does, also after it grew."""
    account, kept = project.pool_account, tmp_path / "witness" / "seen.json"

    def look() -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "privacy.audit", "witness", live_server.url, project.slug]
        options = ["--public-key", site_key().public_key, "--keep", str(kept)]
        environment = {"PATH": os.environ["PATH"], "DPAL_TOKEN": secret}
        return subprocess.run(
            [*command, *options], cwd=site_settings.BASE_DIR, env=environment, capture_output=True, text=True
        )

    spend(account, 4)
    first = look()
    assert first.returncode == 0, first.stderr
    assert f"/{account.scope}: 5 entries" in first.stdout
    spend(account, 3)
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
    spend(account, 5)


def test_an_entry_is_proven_to_be_in_the_log(client, project, secret):
    spend(project.pool_account, 6)
    entries = list(project.pool_account.entries.order_by("sequence"))
    for size in (3, 7, 0):
        answer = get(client, project, "inclusion", secret, sequence=3, size=size).json()
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
def test_proofs_of_what_is_not_there_are_refused(client, project, secret, name, query):
    spend(project.pool_account)
    assert get(client, project, name, secret, **query).status_code == 422
    assert get(client, project, name, secret, account="another").status_code == 404


def test_checkpoints_are_named_after_the_site(client, project, secret, settings):
    settings.LEDGER_ORIGIN = "labels.example/ledger"
    (row,) = get(client, project, "checkpoints", secret).json()
    assert row["account"] == project.pool_account.scope
    assert row["checkpoint"].startswith("labels.example/ledger/")
    assert json.dumps(row).count(project.pool_account.entries.latest("sequence").hash) == 0
