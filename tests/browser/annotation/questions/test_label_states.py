from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Label, Membership, Project, QueryState, ReportKind, Role
from annotation.people.services import crowd_links
from annotation.projects.services.lifecycle import ProjectState
from annotation.questions.services import checks as gold
from annotation.questions.services import flags, guidelines, labels, queue
from tests.axe import violations
from tests.factories import (
    add_members,
    answer_once,
    asked_project,
    make_account,
    make_annotators,
    make_candidates,
    make_project,
    make_records,
    make_user,
    open_records,
    write_settings,
)
from tests.keyboard import read_first

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = {"light": {"width": 1100, "height": 800}, "dark": {"width": 320, "height": 640}}
WAIT = 30_000
Enter = Callable[..., Page]


def press(page: Page, key: str) -> None:
    read_first(page)
    page.keyboard.press(key)


def answer(project: Project, person: User, choice: int = 0) -> Label:
    held = queue.claim_next(project=project, user=person)
    assert held is not None
    return labels.submit_label(assignment=held, choice=choice)


def set_project(**values: object) -> None:
    write_settings(Project.objects.get(), **values)


def round_is_answered(project: Project, person: User) -> None:
    open_records(project, 1)
    answer(project, person)


def others_still_answer(project: Project, person: User) -> None:
    set_project(overlap=2)
    project.refresh_from_db()
    round_is_answered(project, person)


def somebody_is_paused(project: Project, person: User) -> None:
    open_records(project, 1)
    gold.pause_member(membership=Membership.objects.get(user=person), reason="manager")


def all_is_answered(project: Project, person: User) -> None:
    write_settings(project, answers_per_person=1)
    answer_once(project)


# The five others are scenes of test_label.
STATES: dict[str, Callable[[Project, User], None]] = {
    "Every question so far is answered": round_is_answered,
    "You have answered all your questions": others_still_answer,
    "You are paused in this project": somebody_is_paused,
    "This project has all its answers": lambda project, person: set_project(labels_limit=0),
    "The privacy budget is spent": lambda project, person: set_project(pool_account=make_account(epsilon_limit=0.5)),
    "Your work here is done": all_is_answered,
}


@pytest.mark.parametrize("heading", STATES)
def test_every_state_says_what_happens_next_and_is_clean(enter, heading):
    project = make_project()
    (person,) = make_annotators(project, 1)
    STATES[heading](project, person)
    page = enter(project, person, viewport=SIZES["light"], reduced_motion="reduce")
    expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
    assert len(page.locator("#question p").first.inner_text()) > 30
    look_at(page)


def look_at(page: Page) -> None:
    for scheme, size in SIZES.items():
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_the_page_comes_alive_for_whoever_is_invited_and_when_a_pause_ends(enter):
    project = make_project(state=ProjectState.PAUSED)
    person = make_user()
    open_records(project, 1)
    page = enter(project, person)
    expect(page.get_by_role("heading", name="Nothing to label for you here")).to_be_visible()
    add_members(project, person, role=Role.ANNOTATOR)
    expect(page.get_by_role("heading", name="This project is paused")).to_be_visible(timeout=WAIT)
    set_project(state=ProjectState.ACTIVE)
    expect(page.locator("#question")).to_have_text("record 0", timeout=WAIT)
    expect(page.locator("#announcement")).to_have_text("Next question.", timeout=WAIT)


def test_nobody_sees_more_of_a_pool_than_the_limit_and_others_go_on(enter):
    project, _, (first, second) = asked_project(3, 2, encounter_limit=2)
    page = enter(project, first)
    for number in (0, 1):
        expect(page.locator("#question")).to_have_text(f"record {number}")
        press(page, "1")
    expect(page.get_by_role("heading", level=1)).to_contain_text("You have seen as many people")
    expect(enter(project, second).locator("#question")).to_have_text("record 2")


def answer_check(project: Project, person: User, choice: int) -> None:
    held = queue.claim_next(project=project, user=person)
    while held.query.state != QueryState.GOLD:
        labels.submit_label(assignment=held, choice=0)
        held = queue.claim_next(project=project, user=person)
    labels.submit_label(assignment=held, choice=choice)


def test_wrong_answers_to_hidden_checks_warn_and_then_pause(enter):
    project = make_project(gold_share=0.5, gold_minimum=5, gold_warn_below=0.9, gold_pause_below=0.3)
    (person,) = make_annotators(project, 1)
    for query in open_records(project, 6):
        gold.keep_as_check(query=query, choice=0, owner=project.created_by, answered=0)
    page = enter(project, person)
    open_records(project, 60)
    for choice in (0, 0, 0, 1, 1):
        answer_check(project, person, choice)
    page.reload()
    page.get_by_role("link", name="Your statistics").click()
    expect(page.get_by_text("Read the guidelines again.")).to_be_visible()
    expect(page.get_by_text("3 of 5, interval 23-88 %")).to_be_visible()
    set_project(gold_pause_below=0.97)
    project.refresh_from_db()
    answer_check(project, person, 1)
    page.go_back()
    page.reload()
    expect(page.get_by_role("heading", name="You are paused in this project")).to_be_visible()
    page.locator("main .empty").get_by_role("link", name="Your statistics").click()
    expect(page.get_by_text("You are paused: only")).to_be_visible()


def test_scripts_run_from_their_own_side(enter):
    project = make_project(oracle="crowd", selection="uncertainty", classes=["نقل", "Weather"])
    candidates = make_candidates(project, ["متى يغادر آخر قطار؟", "weather tomorrow"])
    queue.open_queries(project=project, round_number=1, query_ids=[candidate.pk for candidate in candidates])
    page = enter(project, make_annotators(project, 1)[0])
    right_to_left = "element => element.matches(':dir(rtl)')"
    expect(page.locator("#question")).to_have_text("متى يغادر آخر قطار؟")
    assert page.locator("#question").evaluate(right_to_left)
    assert [page.locator(".choice span").nth(n).evaluate(right_to_left) for n in (0, 1)] == [True, False]
    press(page, "1")
    expect(page.locator("#question")).to_have_text("weather tomorrow")
    assert not page.locator("#question").evaluate(right_to_left)


def test_a_table_shows_every_declared_field_on_a_phone(enter):
    columns = [{"name": "amount", "low": 0.0, "high": 5000.0}, {"name": "country", "categories": ["NO", "SE"]}]
    project = make_project(data_kind="table", columns=[*columns, {"name": "remark"}])
    (record,) = make_records(project, payloads=[{"amount": 1234.5, "country": "NO", "remark": None, "hidden": "x"}])
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
    page = enter(project, make_annotators(project, 1)[0], viewport=SIZES["dark"])
    rows = [row.split() for row in page.locator("#question tr").all_inner_texts()]
    assert [row[0] for row in rows] == ["amount", "country", "remark"]
    assert rows[0][1] == "1,234.5"
    assert rows[2][1:] == ["not", "given"]
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["dark"]["width"]


def test_ten_answers_about_a_picture_fit_on_a_phone(enter, own_storage):
    np.save(own_storage / "pixels.npy", np.arange(28 * 28, dtype=np.uint8).reshape(1, 28, 28))
    project = make_project(data_kind="image", image_height=28, image_width=28, classes=[str(n) for n in range(10)])
    (record,) = make_records(project, rows=1, pixels="pixels.npy")
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
    page = enter(project, make_annotators(project, 1)[0], viewport={"width": 390, "height": 780})
    for answer in (*page.locator(".choice").all(), page.locator("#question img")):
        expect(answer).to_be_in_viewport(ratio=1)


def test_pictures_small_and_large_and_why_they_are_shown_are_clean(enter, live_server, own_storage):
    np.save(own_storage / "pixels.npy", np.arange(28 * 28, dtype=np.uint8).reshape(1, 28, 28))
    project = make_project(data_kind="image", image_height=28, image_width=28, classes=[str(n) for n in range(10)])
    records = make_records(project, rows=1, pixels="pixels.npy")
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])
    page = enter(project, make_annotators(project, 1)[0], reduced_motion="reduce")
    assert [mark.inner_text() for mark in page.locator(".choice kbd").all()] == [*"1234567890"]
    look_at(page)
    press(page, "z")
    expect(page.locator("#question")).to_have_class("question picture enlarged")
    look_at(page)
    page.goto(live_server.url + reverse("annotation:why", args=[project.slug]))
    look_at(page)


def test_what_a_participant_of_a_platform_sees_is_clean(enter, live_server):
    project = make_project(oracle="crowd")
    candidates = make_candidates(project, ["play jazz", "rain tomorrow"])
    queue.open_queries(project=project, round_number=1, query_ids=[candidate.pk for candidate in candidates])
    link, token = crowd_links.create_link(
        project=project,
        platform="mturk",
        study="",
        answers_wanted=1,
        maximum_participants=1,
        lifetime=timedelta(days=1),
        owner=project.created_by,
    )
    page = enter(project, project.created_by, reduced_motion="reduce")
    start = live_server.url + reverse("annotation:crowd_start", args=[token]) + "?workerId=w&hitId=h&assignmentId="
    page.goto(start + "a")
    expect(page.get_by_text("Log out first")).to_be_visible()
    look_at(page)
    page.context.clear_cookies()
    page.goto(start + "ASSIGNMENT_ID_NOT_AVAILABLE")
    expect(page.get_by_text("Accept the task on the platform")).to_be_visible()
    look_at(page)
    page.goto(start + "a")
    page.get_by_role("button", name="Begin").click()
    expect(page.locator("#question")).to_have_text("play jazz")
    done = live_server.url + reverse("annotation:crowd_done", args=[project.slug])
    page.goto(done)
    expect(page.get_by_role("heading", name="Not done")).to_be_visible()
    look_at(page)
    page.get_by_role("link", name="Go on").click()
    expect(page.locator("#question")).to_have_text("play jazz")
    page.locator(".choice").first.click()
    expect(page.get_by_text(link.completion_code, exact=True)).to_be_visible()
    expect(page.get_by_text("Paste it into the platform's task")).to_be_visible()
    look_at(page)


def test_reports_and_earlier_guidelines_are_clean(enter, live_server):
    project = make_project(guidelines="First.")
    manager, (ann, _bob) = project.created_by, make_annotators(project, 2)
    add_members(project, manager, role=Role.MANAGER)
    guidelines.save_guidelines(project=project, text="Second.", examples=[], author=manager)
    open_records(project, 2)
    flags.comment_on(assignment=queue.claim_next(project=project, user=ann), comment="two classes fit")
    held = queue.claim_next(project=project, user=ann)
    flags.flag_question(assignment=held, kind=ReportKind.SENSITIVE, comment="a name")
    page = enter(project, manager, reduced_motion="reduce")
    for name, heading in (("reported", "Set aside"), ("guidelines", "Earlier versions")):
        page.goto(live_server.url + reverse(f"annotation:{name}", args=[project.slug]))
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
        look_at(page)
