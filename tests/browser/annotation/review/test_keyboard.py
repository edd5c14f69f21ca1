import csv
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import DatasetRole, Membership, Project, Query, QueryState, Role
from annotation.models.kinds import Aggregation
from annotation.models.quality import GoldQuery, PauseReason, QualityReport
from annotation.questions.services import labels, queue
from annotation.review import services as comparing
from tests.clients import come_in
from tests.factories import add_members, make_annotators, make_project, make_records, make_user, open_records
from tests.keyboard import Keyboard

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WAIT = 30_000


@pytest.fixture
def keys(page: Page) -> Keyboard:
    return Keyboard(page)


@pytest.fixture
def project() -> Project:
    manager = make_user("manager")
    made = make_project(owner=manager, name="Voice queries", overlap=2, price_per_label="0.05", currency="EUR")
    add_members(made, manager, role=Role.MANAGER)
    return made


@pytest.fixture
def annotators(project) -> list[User]:
    return make_annotators(project, 2)


@pytest.fixture
def answered(project, annotators) -> list[Query]:
    queries = open_records(project, 2)
    for person, choices in zip(annotators, ((1, 0), (1, 2)), strict=True):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    return queries


def enter(page: Page, live_server, person: User, name: str, *args: object) -> None:
    come_in(page.context, person, live_server.url)
    page.goto(live_server.url + reverse(f"annotation:{name}", args=args))


def test_checks_are_made_and_retired(page, live_server, project, keys):
    public = make_records(project, ["goal in the last minute", "a quartet"], role=DatasetRole.PUBLIC_TEST)
    public[0].dataset.records.update(label=1)
    enter(page, live_server, project.created_by, "quality", project.slug)
    keys.choose(page.get_by_label("Public examples"), str(public[0].dataset))
    keys.type(page.get_by_label("Checks at most"), "2")
    keys.follow(page.get_by_role("button", name="Add", exact=True), key="Space")
    expect(page.get_by_role("status")).to_contain_text("2 checks were added.", timeout=WAIT)
    keys.follow(page.get_by_role("link", name="Hidden checks"))
    keys.follow(page.get_by_role("button", name="Retire").last)
    expect(page.get_by_role("status")).to_contain_text("Saved.", timeout=WAIT)
    expect(page.get_by_role("button", name="Retire")).to_have_count(1, timeout=WAIT)
    assert GoldQuery.objects.filter(retired_at=None).count() == 1
    # What was just passed lies behind.
    keys.reach(page.get_by_role("link", name="Back", exact=True))
    keys.follow(page.get_by_role("navigation").get_by_role("link", name="Quality"), back=True)
    keys.type(page.get_by_label("Hidden checks in percent"), "20")
    keys.choose(page.get_by_label("Compare answers by"), Aggregation.MACE.label)
    keys.follow(page.get_by_role("button", name="Save"))
    project.refresh_from_db()
    assert (project.gold_share, project.aggregation) == (0.2, Aggregation.MACE)


def test_answers_are_compared_and_paid(page, live_server, project, annotators, answered, broker, keys):
    enter(page, live_server, project.created_by, "quality", project.slug)
    keys.follow(page.get_by_role("button", name="Compare"))
    comparing.make_report(job_id=str(QualityReport.objects.get().job_id))
    page.reload()
    expect(page.get_by_text("4 to 2 questions")).to_be_visible(timeout=WAIT)
    opinions = keys.download(page.get_by_role("link", name="Model predictions (CSV)"))
    assert opinions.suggested_filename == f"{project.slug}-opinions.csv"
    paid = keys.download(page.get_by_role("link", name="Payment (CSV)"))
    with Path(paid.path()).open(encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    assert sorted(rows[1:]) == [
        [person.username, "2", "1", "0", "1", "0.0500", "0.0500", "EUR"] for person in annotators
    ]


def test_a_dispute_is_settled_and_becomes_a_check(page, live_server, project, annotators, answered, keys):
    enter(page, live_server, project.created_by, "quality", project.slug)
    keys.follow(page.get_by_role("link", name="1 question to review"))
    keys.choose(page.get_by_label("Class"), "other")
    keys.tick(page.get_by_label("Use as a hidden check"))
    keys.follow(page.get_by_role("button", name="Decide"))
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible(timeout=WAIT)
    check = GoldQuery.objects.get()
    assert (check.query.state, check.choice) == (QueryState.GOLD, 2)
    keys.follow(page.get_by_role("link", name="Back", exact=True))
    expect(page.get_by_text("1 question has a known answer.")).to_be_visible(timeout=WAIT)


def test_somebody_paused_reads_why_in_their_own_statistics(page, live_server, project, annotators, answered, keys):
    ann = annotators[0]
    enter(page, live_server, project.created_by, "quality", project.slug)
    keys.follow(page.get_by_role("button", name=f"Pause {ann.username}", exact=True), key="Space")
    assert Membership.objects.get(user=ann).pause_reason == PauseReason.MANAGER
    enter(page, live_server, ann, "label", project.slug)
    keys.follow(page.get_by_role("link", name="Your statistics").last)
    expect(page.get_by_text("A manager paused you")).to_be_visible(timeout=WAIT)
    expect(page.locator("dt:text-is('Answers') + dd")).to_have_text("2", timeout=WAIT)
    keys.follow(page.get_by_role("link", name="Back", exact=True))
    enter(page, live_server, project.created_by, "quality", project.slug)
    keys.follow(page.get_by_role("button", name=f"Resume {ann.username}", exact=True))
    assert Membership.objects.get(user=ann).paused_at is None
