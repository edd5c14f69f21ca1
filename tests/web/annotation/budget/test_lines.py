"""The statement: plain sentences, filters, pages, and a JSON document whose chain anybody verifies."""

import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.budget.words import how_words
from annotation.models import Project, Role
from annotation.work.services.tokens import Scope
from privacy.accounting.events import (
    BernoulliScreenEvent,
    MinibatchSgdEvent,
    RandomizedAnswersEvent,
    SecretSampleEvent,
    TopCEvent,
)
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from tests.clients import browser_of, program_of
from tests.factories import add_members, make_account, make_project, make_records

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_counter")]
DIGEST = "ab" * 32
SCREEN = BernoulliScreenEvent(q_hi=0.6, q_lo=0.4)
TOP_C = TopCEvent(pool_size=1000, picks=5, scale=0.1)


@pytest.fixture
def project(manager: User) -> Project:
    made = make_project(pool_account=make_account(epsilon_limit=100.0, delta_limit=1e-6), name="Messages")
    add_members(made, manager, role=Role.MANAGER)
    return made


def spend(account: BudgetAccount, event=SCREEN, **words: str):
    reservation = ledger.reserve(account=account, event=event, key=uuid4(), **{"purpose": "a test"} | words)
    with transaction.atomic():
        ledger.commit(reservation=reservation, output_digest=DIGEST)
    return reservation


def lines_of(user: User, project: Project, **query: object) -> list:
    response = browser_of(user).get(reverse("annotation:statement", args=[project.slug]), query)
    assert response.status_code == 200
    return list(response.context["page"].lines)


def test_a_line_says_what_who_what_came_of_it_and_what_it_descends_from(project: Project, manager: User) -> None:
    upload = make_records(project, ["one"])[0].dataset
    account = project.pool_account
    paid = spend(account, TOP_C, subject="round:3", actor="ada")
    ledger.record_post_processing(
        account=account,
        parent=paid,
        operation="training",
        purpose="train on gate output",
        subject="release:2",
        output_digest=DIGEST,
        key=uuid4(),
    )
    lost = ledger.reserve(account=account, event=SCREEN, purpose="p", key=uuid4(), subject=f"dataset:{upload.pk}")
    ledger.charge(reservation=lost, reason="the worker died")
    unread = ledger.reserve(account=account, event=SCREEN, purpose="Count the queue", key=uuid4())
    ledger.void(reservation=unread, reason="no pool was there", actor="bob")
    running = ledger.reserve(account=account, event=SCREEN, purpose="p", key=uuid4(), subject="start")
    ledger.change_account_limits(account=account, epsilon_limit=120.0, delta_limit=0.0, actor=manager, reason="agreed")
    found = [(line.what, line.reason, line.who, line.descends_from, line.state) for line in lines_of(manager, project)]
    screen = "one coin per record, rate 0.6 or 0.4"
    assert found == [
        ("Limit: ε 120.000, δ 0.", "agreed", "manager", None, "in force"),
        (
            f"Private start: {screen}.",
            "",
            "automatic",
            None,
            "reserved, not settled yet",
        ),
        (f"Count the queue: {screen}.", "no pool was there", "bob", None, "given back, nothing was read"),
        (
            f"Upload {upload.name}: {screen}.",
            "the worker died",
            "automatic",
            None,
            "spent without an output",
        ),
        ("Release 2: paid outputs only.", "", "automatic", 2, "free"),
        ("Round 3: 5 of 1,000 records by a noisy score.", "", "ada", None, "spent"),
        (
            "Limit: ε 100.000, δ 1.0e-6.",
            "opened for a test",
            "test",
            None,
            "in force",
        ),
    ]
    assert running.pk
    (free,) = (line for line in lines_of(manager, project) if line.descends_from)
    assert free.ancestor.startswith("Round 3")


def test_what_runs_on_a_secret_sample_is_named(project: Project) -> None:
    inner = MinibatchSgdEvent(noise_scale=1.0, dimension=4)
    event = SecretSampleEvent(rate=0.25, inner=inner)
    assert how_words(event.to_json()) == "on a secret 0.25 sample; noisy mini-batches"
    assert how_words({"kind": "nobody knows"}) == ""


def test_lines_are_found(project: Project, manager: User) -> None:
    spend(project.pool_account, subject="round:1", actor="ada")
    spend(project.pool_account, subject="release:1", actor="Bob")
    open_one = ledger.reserve(account=project.pool_account, event=SCREEN, purpose="p", key=uuid4(), subject="round:2")
    today, tomorrow = timezone.localdate(), timezone.localdate() + timedelta(days=1)

    def numbers(**query: object) -> list[int]:
        return [line.sequence for line in lines_of(manager, project, **query)]

    assert numbers() == [6, 4, 2, 1]
    assert numbers(about="rounds") == [6, 2]
    assert numbers(about="releases") == [4]
    assert numbers(about="limits") == [1]
    assert numbers(state="commit") == [4, 2]
    assert numbers(state="reserve") == [open_one.sequence]
    assert numbers(who="bo") == [4]
    assert numbers(entry=2) == [2]
    # A release's card names the entry that settled an operation: that is its line, which says so.
    assert numbers(entry=3) == [2]
    page = browser_of(manager).get(reverse("annotation:statement", args=[project.slug]), {"entry": 3})
    assert "Settled as #3." in page.content.decode()
    assert numbers(entry=3, account=project.pool_account_id) == [2]
    assert numbers(entry=7) == []
    assert numbers(account=project.pool_account_id, about="rounds", state="commit") == [2]
    assert numbers(since=tomorrow) == []
    assert numbers(until=today - timedelta(days=2)) == []
    # What is wrong in the form does not choose; it is named.
    assert numbers(since="yesterday", about="everything", account="77") == [6, 4, 2, 1]


def test_a_long_statement_comes_in_pages_at_the_same_price(
    project: Project, manager: User, django_assert_max_num_queries
) -> None:
    for number in range(52):
        ledger.reserve(account=project.pool_account, event=SCREEN, purpose=f"no {number}", key=uuid4())
    client, address = browser_of(manager), reverse("annotation:statement", args=[project.slug])
    with django_assert_max_num_queries(15):
        first = client.get(address, {"about": ""})
    assert [line.sequence for line in first.context["page"].lines] == list(range(53, 3, -1))
    assert f"{first.context['older']}" == "?about=&page=2"
    second = client.get(address + first.context["older"])
    assert [line.sequence for line in second.context["page"].lines] == [3, 2, 1]
    assert not second.context["page"].has_older
    for odd in ("0", "-1", "x", "9" * 30, "²"):
        assert client.get(address, {"page": odd}).status_code == 200


def test_the_page_shows_the_verdict_when_asked(project: Project, manager: User) -> None:
    spend(project.pool_account)
    client, address = browser_of(manager), reverse("annotation:statement", args=[project.slug])
    assert "was computed again" not in client.get(address).content.decode()
    page = client.get(address + "?check").content.decode()
    assert "sound. Every cost, total and hash of 3 entries was computed again." in page


def checker(tmp_path: Path) -> Path:
    manual = (Path(__file__).parents[4] / "docs" / "statement.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", manual, flags=re.DOTALL)
    path = tmp_path / "check.py"
    path.write_text(program, encoding="utf-8")
    return path


def verdict_of(program: Path, document: dict, *heads: str) -> tuple[int, str]:
    path = program.with_name("statement.json")
    path.write_text(json.dumps(document), encoding="utf-8")
    # Isolated and without site-packages: plain Python must do.
    done = subprocess.run(
        [sys.executable, "-I", "-S", program, path, *heads], capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def document_of(client: Client, address: str) -> dict:
    response = client.get(address)
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    return json.loads(response.getvalue())


@pytest.fixture
def spent(manager: User) -> Project:
    """A project of two accounts with an entry of every kind, and words that tempt a writer of JSON."""
    account = make_account(epsilon_limit=100.0, delta_limit=1e-6)
    answers = ledger.open_account(
        scope="answers",
        label="Answers",
        unit="answer",
        filter="zcdp",
        epsilon_limit=3,
        delta_limit=1e-6,
        actor="ada",
        reason="opened",
    )
    project = make_project(oracle="crowd", pool_account=account, labels_account=answers)
    add_members(project, manager, role=Role.MANAGER)
    paid = spend(account, TOP_C, subject="round:1", actor="ada", purpose='say "ä \\ \x7f \u2028 😀"\nand go')
    ledger.record_post_processing(
        account=account, parent=paid, operation="rank", purpose="p", output_digest=DIGEST, key=uuid4()
    )
    lost = ledger.reserve(account=account, event=SCREEN, purpose="p", key=uuid4())
    ledger.charge(reservation=lost, reason="gone")
    unread = ledger.reserve(account=account, event=SCREEN, purpose="p", key=uuid4())
    ledger.void(reservation=unread, reason="nothing was read")
    ledger.change_account_limits(account=account, epsilon_limit=120.0, delta_limit=1e-6, actor="ada", reason="agreed")
    spend(answers, RandomizedAnswersEvent(0.5, 3))
    return project


def test_the_chain_is_verified_from_the_document_alone_by_the_printed_program(
    spent: Project, manager: User, tmp_path: Path
) -> None:
    document = document_of(browser_of(manager), reverse("annotation:statement_json", args=[spent.slug]))
    program = checker(tmp_path)
    heads = [account["chain_head"] for account in document["accounts"]]
    assert verdict_of(program, document, *heads) == (0, "sound: 12 entries of 2 accounts\n")
    assert [account["verdict"]["sound"] for account in document["accounts"]] == [True, True]
    assert [account["verdict"]["entries"] for account in document["accounts"]] == [9, 3]
    assert document["accounts"][0]["limits"]["epsilon_limit_nano"] == 120_000_000_000
    assert document["accounts"][0]["entries"][1]["mechanism_in_words"].startswith("5 of 1000 records by noisy score")
    status, said = verdict_of(program, document, "0f" * 32)
    assert (status, said) == (1, f"the head {'0f' * 32} is no longer in the chain\n")


def test_the_document_says_what_the_command_says(spent: Project, manager: User, capsys) -> None:
    document = document_of(browser_of(manager), reverse("annotation:statement_json", args=[spent.slug]))
    capsys.readouterr()
    call_command("audit_ledger", "--json", scope=spent.pool_account.scope)
    verdict, counter = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert verdict == document["accounts"][0]["verdict"]
    assert counter["sound"] is True


def machine(user: User) -> Client:
    return program_of(user, Scope.LEDGER_READ)


def test_rest_lists_accounts_and_entries_in_pages(spent: Project, manager: User) -> None:
    client, base = machine(manager), f"/api/v1/projects/{spent.slug}/ledger"
    pool, answers = client.get(base).json()
    assert (pool["entries"], answers["entries"]) == (9, 3)
    first = client.get(base, {"limit": 1})
    assert [account["scope"] for account in first.json()] == [pool["scope"]]
    assert 'rel="next"' in first["Link"]
    listed = []
    address = f"{base}/entries?limit=5"
    while address:
        response = client.get(address)
        listed += response.json()
        link = re.fullmatch(r'<http://testserver(.*)>; rel="next"', response.headers.get("Link", ""))
        address = link[1] if link else ""
    assert [(entry["account"], entry["sequence"]) for entry in listed] == [
        (account["scope"], number) for account in (pool, answers) for number in range(1, account["entries"] + 1)
    ]
    assert listed[8]["hash"] == pool["chain_head"]
    newer = client.get(f"{base}/entries", {"account": pool["scope"], "after": 7}).json()
    assert [entry["sequence"] for entry in newer] == [8, 9]
    assert client.get(f"{base}/entries", {"after": -1}).status_code == 422
    assert client.get(f"{base}/entries", {"account": "of another"}).json() == []
    document = document_of(client, f"{base}/statement")
    assert [account["chain_head"] for account in document["accounts"]] == [pool["chain_head"], answers["chain_head"]]
