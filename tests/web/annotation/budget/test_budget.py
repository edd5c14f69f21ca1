import csv
import io
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.budget import presenters
from annotation.models import Project, Role
from privacy.accounting.composition import pld_epsilon
from privacy.accounting.events import BernoulliScreenEvent, GaussianEvent
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import MOST_EVENTS
from tests.clients import browser_of
from tests.counting import new_counter
from tests.factories import add_members, make_account, make_project, make_records

pytestmark = pytest.mark.django_db
DIGEST = "ab" * 32
SCREEN = BernoulliScreenEvent(q_hi=0.6, q_lo=0.4)
DEAR = BernoulliScreenEvent(q_hi=0.9, q_lo=0.1)


@pytest.fixture(autouse=True)
def own_counter_and_cache(settings, tmp_path):
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    cache.clear()


@pytest.fixture
def project(manager: User) -> Project:
    return project_of(manager, make_account(delta_limit=1e-6))


def project_of(manager: User, account: BudgetAccount) -> Project:
    project = make_project(pool_account=account)
    add_members(project, manager, role=Role.MANAGER)
    return project


def page_of(user: User, project: Project, query: str = "") -> str:
    response = browser_of(user).get(reverse("annotation:budget", args=[project.slug]) + query)
    assert response.status_code == 200
    return response.content.decode()


def spend(account: BudgetAccount, event=SCREEN, *, subject: str = "", actor: str = "", purpose: str = "a test"):
    reservation = ledger.reserve(
        account=account, event=event, purpose=purpose, key=uuid4(), subject=subject, actor=actor
    )
    with transaction.atomic():
        ledger.commit(reservation=reservation, output_digest=DIGEST)
    return reservation


def table(project: Project, title: str) -> list[tuple[str, int, str, str, int]]:
    (sheet, *_) = presenters.detailed_sheets(project, compose=False)
    (found,) = (each for each in sheet.tables if each.title == title)
    return [(line.name, line.operations, line.amount, line.delta, round(line.percent)) for line in found.lines]


def test_the_tables_say_what_the_budget_went_to(project: Project, manager: User) -> None:
    dataset = make_records(project, ["one"])[0].dataset
    account = project.pool_account
    spend(account, subject="round:1", actor="ada")
    spend(account, subject="round:1")
    spend(account, subject="release:2", event=DEAR)
    spend(account, subject=f"dataset:{dataset.pk}", actor="ada")
    spend(account)
    voided = ledger.reserve(account=account, event=SCREEN, purpose="p", key=uuid4(), subject="round:9", actor="bob")
    ledger.void(reservation=voided, reason="nothing was read")
    # ln(0.6 / 0.4) each, rounded up; the dear one costs ln(0.9 / 0.1).
    assert table(project, "Mechanism") == [("screen of two rates", 5, "3.820", "0", 100)]
    assert table(project, "Round or release") == [
        ("Release 2", 1, "2.198", "0", 58),
        ("Round 1", 2, "0.811", "0", 21),
        ("not named", 1, "0.406", "0", 11),
        (f"Upload {dataset.name}", 1, "0.406", "0", 11),
    ]
    assert table(project, "Person") == [("automatic", 3, "3.009", "0", 79), ("ada", 2, "0.811", "0", 21)]
    page = page_of(manager, project)
    assert "What it went to" in page
    assert f"Upload {dataset.name}" in page
    assert ">Round 9<" not in page


def test_tables_of_a_zcdp_account_are_in_rho(manager: User) -> None:
    account = ledger.open_account(
        scope="zcdp",
        label="Pool",
        unit="record",
        filter="zcdp",
        epsilon_limit=3,
        delta_limit=1e-6,
        actor="ada",
        reason="opened for a test",
    )
    project = project_of(manager, account)
    spend(account, GaussianEvent(sensitivity_l2=1.0, sigma=100.0), subject="round:1")
    assert table(project, "Round or release") == [("Round 1", 1, "5.1e-5", "0", 100)]
    (sheet, *_) = presenters.detailed_sheets(project, compose=False)
    assert {each.currency for each in sheet.tables} == {"ρ"}


def test_the_page_asks_as_much_however_long_the_ledger(project: Project, manager: User) -> None:
    client, url = browser_of(manager), reverse("annotation:budget", args=[project.slug])
    spend(project.pool_account, subject="round:1")
    with CaptureQueriesContext(connection) as few:
        client.get(url)
    for number in range(2, 12):
        spend(project.pool_account, subject=f"round:{number}")
    with CaptureQueriesContext(connection) as many:
        client.get(url)
    assert len(many) == len(few)


def rows_of(user: User, project: Project) -> list[dict[str, str]]:
    response = browser_of(user).get(reverse("annotation:statement_csv", args=[project.slug]))
    assert response.status_code == 200
    assert response.streaming
    assert response["Content-Type"].startswith("text/csv")
    assert f'filename="{project.slug}-statement.csv"' in response["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(response.getvalue().decode(), newline="")))


def test_the_statement_holds_every_line_in_exact_integers(project: Project, manager: User) -> None:
    entry = spend(project.pool_account, subject="round:1", actor="ada", purpose='say "hello", then go')
    ledger.record_post_processing(
        account=project.pool_account, parent=entry, operation="rank", purpose="p", output_digest=DIGEST, key=uuid4()
    )
    granted, spent, free = rows_of(manager, project)
    assert (granted["kind"], granted["sequence"]) == ("grant", "1")
    entry.refresh_from_db()
    expected = {
        "account": project.pool_account.label,
        "sequence": "2",
        "kind": "reserve",
        "state": "commit",
        "subject": "round:1",
        "purpose": 'say "hello", then go',
        "actor": "ada",
        "epsilon_nano": str(entry.epsilon_nano),
        "rho_nano": str(entry.rho_nano),
        "delta_atto": "0",
        "event_json": entry.event_json,
        "settled_digest": DIGEST,
        "created_at": entry.created_at.isoformat(),
        "hash": entry.hash,
    }
    assert {name: spent[name] for name in expected} == expected
    assert (free["kind"], free["descends_from"]) == ("post_processing", "2")


def test_a_numerical_accountant_answers_when_asked_and_is_remembered(project: Project, manager: User) -> None:
    for _ in range(3):
        spend(project.pool_account)
    voided = ledger.reserve(account=project.pool_account, event=SCREEN, purpose="p", key=uuid4())
    ledger.void(reservation=voided, reason="nothing was read")
    expected = pld_epsilon([SCREEN] * 3, 1e-6)
    words = "valid only for parameters fixed beforehand"
    page = page_of(manager, project)
    assert words not in page
    assert 'href="?compose"' in page
    page = page_of(manager, project, "?compose")
    assert words in page
    (sheet, *_) = presenters.detailed_sheets(project, compose=False)
    assert sheet.numerical_epsilon == expected
    # Its grid rounds each loss up by at most 1e-4.
    assert expected <= sheet.guarantee.epsilon_spent + 3e-4
    assert words in page_of(manager, project)
    # Another entry, another answer.
    spend(project.pool_account)
    assert words not in page_of(manager, project)


def test_a_numerical_accountant_is_not_asked_without_delta_or_for_too_much(project: Project, manager: User) -> None:
    without_delta = project_of(manager, make_account())
    spend(without_delta.pool_account)
    for _ in range(2):
        spend(project.pool_account)
    assert "?compose" not in page_of(manager, without_delta)
    assert "numerical accountant" not in page_of(manager, without_delta, "?compose")
    assert "?compose" in page_of(manager, project)
    nothing = BernoulliScreenEvent(q_hi=0.5, q_lo=0.5)
    for _ in range(MOST_EVENTS - 1):
        ledger.reserve(account=project.pool_account, event=nothing, purpose="p", key=uuid4())
    assert "?compose" not in page_of(manager, project)
