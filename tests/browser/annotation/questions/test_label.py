from datetime import time

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from annotation.models import Assignment, AssignmentState, Label, Query
from annotation.questions.services import guidelines, queue
from tests.axe import violations
from tests.clients import browser_of, come_in
from tests.factories import (
    answer_once,
    make_annotators,
    make_candidates,
    make_project,
    make_records,
    open_records,
    write_settings,
)
from tests.keyboard import read_first, settle

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PHONE = {"width": 320, "height": 640}
DESK = {"width": 1100, "height": 800}


@pytest.fixture
def project():
    return make_project(
        name="Voice queries",
        question="What does this person want?",
        classes=["Transport", "Weather", "Music", "Calendar", "Something else"],
        guidelines="Answer what the person asked for.\nIf two fit, take the first.",
    )


@pytest.fixture
def annotator(project):
    (person,) = make_annotators(project, 1)
    return person


@pytest.fixture
def at(page, live_server):
    def go(name, *args):
        page.goto(live_server.url + (name if name.startswith("/") else reverse(name, args=args)))
        return page

    return go


@pytest.fixture
def logged_in(page, live_server, annotator):
    come_in(page.context, annotator, live_server.url)
    return page


def choice(page, name):
    return page.locator(".choice", has_text=name)


def choices():
    return list(Label.objects.filter(superseded_at=None).order_by("pk").values_list("choice", flat=True))


def press_on_layout(page, printed, code):
    """Press a key of another layout than Chromium's own."""
    session = page.context.new_cdp_session(page)
    for kind in ("keyDown", "keyUp"):
        session.send("Input.dispatchKeyEvent", {"type": kind, "key": printed, "code": code})


class TestKeys:
    @pytest.mark.parametrize(
        ("printed", "code", "choice"),
        [("&", "Digit1", 0), ("é", "Digit2", 1), ("š", "Digit3", 2), ("٢", "Digit2", 1), ("۳", "Numpad3", 2)],
    )
    def test_digits_work_by_their_place(self, project, logged_in, at, printed, code, choice):
        open_records(project, 2)
        page = at("annotation:label", project.slug)
        read_first(page)
        press_on_layout(page, printed, code)
        expect(page.locator("#question")).to_have_text("record 1")
        assert choices() == [choice]

    @pytest.mark.parametrize(("printed", "code"), [("ы", "KeyS"), ("σ", "KeyS"), ("س", "KeyS"), ("s", "KeyO")])
    def test_letters_work_as_printed_or_by_their_place(self, project, logged_in, at, printed, code):
        open_records(project, 1)
        page = at("annotation:label", project.slug)
        read_first(page)
        press_on_layout(page, printed, code)
        expect(page.locator("details[open] > summary[data-shortcut=s]")).to_have_count(1)

    @pytest.mark.every_change
    def test_three_questions_by_keys_alone(self, project, logged_in, at):
        open_records(project, 4)
        page = at("annotation:label", project.slug)
        for number, key in enumerate("253"):
            expect(page.locator("#question")).to_have_text(f"record {number}")
            read_first(page)
            page.keyboard.press(key)
        expect(page.locator("#question")).to_have_text("record 3")
        expect(page.locator("#question")).to_be_focused()
        expect(page.locator("#announcement")).to_have_text("Saved. Next question.")
        assert choices() == [1, 4, 2]

    def test_a_style_that_a_script_gave_is_not_put_into_the_next_question(self, project, logged_in, at):
        """As an attribute it would be an inline style, which the policy refuses at every answer."""
        open_records(project, 2)
        page = at("annotation:label", project.slug)
        page.evaluate("const { style } = document.querySelector('#question'); style.color = 'red'; style.color = '';")
        read_first(page)
        page.keyboard.press("2")
        expect(page.locator("#question")).to_have_text("record 1")
        expect(page.locator("#announcement")).to_have_text("Saved. Next question.")

    def test_undo_skip_guidelines_and_help(self, project, logged_in, at):
        open_records(project, 3)
        page = at("annotation:label", project.slug)
        page.keyboard.press("3")
        expect(page.locator("#question")).to_have_text("record 1")
        read_first(page)
        page.keyboard.press("u")
        expect(page.locator("#question")).to_have_text("record 0")
        expect(choice(page, "Music")).to_have_attribute("aria-pressed", "true")
        read_first(page)
        page.keyboard.press("1")
        expect(page.locator("#question")).to_have_text("record 1")
        read_first(page)
        expect(page.get_by_text("If two fit")).to_be_visible()
        page.keyboard.press("?")
        expect(page.get_by_text("undo the last one")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_text("undo the last one")).to_be_hidden()
        expect(page.get_by_text("If two fit")).to_be_visible()
        page.keyboard.press("g")
        expect(page.get_by_text("If two fit")).to_be_hidden()
        page.keyboard.press("s")
        expect(page.get_by_role("button", name="I cannot tell")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#question")).to_have_text("record 2")
        assert choices() == [0]
        assert Assignment.objects.get(state=AssignmentState.SKIPPED).skip_reason == "unsure"

    def test_a_held_key_answers_one_question(self, project, logged_in, at):
        open_records(project, 3)
        page = at("annotation:label", project.slug)
        page.keyboard.down("1")
        for _ in range(5):
            page.keyboard.down("1")
        expect(page.locator("#question")).to_have_text("record 1")
        page.keyboard.up("1")
        assert choices() == [0]


class TestClicks:
    @pytest.mark.every_change
    def test_a_double_click_is_one_label(self, project, logged_in, at):
        open_records(project, 3)
        page = at("annotation:label", project.slug)
        choice(page, "Weather").dblclick()
        expect(page.locator("#question")).to_have_text("record 1")
        page.wait_for_timeout(400)
        assert choices() == [1]

    def test_a_slow_double_click_does_not_answer_the_next_question_unread(self, project, logged_in, at):
        open_records(project, 3)
        page = at("annotation:label", project.slug)
        page.evaluate(
            """document.addEventListener("htmx:afterSettle", () =>
                setTimeout(() => document.querySelector(".choice").click(), 50), {once: true})"""
        )
        choice(page, "Weather").click()
        expect(page.locator("#question")).to_have_text("record 1")
        page.wait_for_timeout(400)
        assert choices() == [1]

    def test_without_scripts(self, project, browser, live_server, annotator):
        open_records(project, 2)
        client = browser_of(annotator)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        with browser.new_context(java_script_enabled=False) as context:
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
            page = context.new_page()
            page.goto(live_server.url + reverse("annotation:label", args=(project.slug,)))
            choice(page, "Music").click()
            expect(page.locator("#question")).to_have_text("record 1")
            choice(page, "Music").dblclick()
            expect(page.get_by_role("heading", name="Every question so far is answered")).to_be_visible()
        assert choices() == [2, 2]


class TestTrouble:
    def test_without_connection_the_choice_is_kept(self, project, logged_in, at):
        open_records(project, 2)
        page = at("annotation:label", project.slug)
        page.context.set_offline(True)
        choice(page, "Calendar").click()
        expect(page.get_by_role("alert")).to_contain_text("You are offline")
        expect(choice(page, "Calendar")).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#question")).to_have_text("record 0")

    def test_a_question_somebody_else_has_now_is_explained(self, project, logged_in, at, annotator):
        open_records(project, 2)
        page = at("annotation:label", project.slug)
        Assignment.objects.update(state=AssignmentState.EXPIRED)
        choice(page, "Calendar").click()
        expect(page.get_by_role("alert")).to_contain_text("The time ran out and another")
        page.get_by_role("link", name="Show the next question").click()
        expect(page.locator("#question")).to_have_text("record 1")
        assert choices() == []

    def test_new_questions_appear_by_themselves(self, project, logged_in, at):
        page = at("annotation:label", project.slug)
        expect(page.get_by_role("heading", name="The first questions are being prepared")).to_be_visible()
        open_records(project, 1)
        expect(page.locator("#question")).to_have_text("record 0", timeout=8000)

    def test_an_ended_session_leads_to_the_login_and_back(self, project, logged_in, at, annotator):
        open_records(project, 2)
        annotator.set_password("correct horse battery")
        annotator.save()
        Client().force_login(annotator)
        page = at("/login/")
        page.get_by_label("User name").fill(annotator.username)
        page.get_by_label("Password").fill("correct horse battery")
        page.get_by_role("button", name="Log in", exact=True).click()
        page.wait_for_url(lambda url: "/login/" not in url)
        page = at("annotation:label", project.slug)
        page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
        choice(page, "Music").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        page.get_by_label("User name").fill(annotator.username)
        page.get_by_label("Password").fill("correct horse battery")
        page.get_by_role("button", name="Log in", exact=True).click()
        expect(page.locator("#question")).to_have_text("record 0")


def show_question(project, at):
    text = "what time does the last train to Oslo leave, and is there one " + "even later " * 12
    (record,) = make_records(project, [text + "x" * 80])
    more = make_records(project, ["another"])[0]
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk, more.pk])
    return at("annotation:label", project.slug)


def show_answered(project, at):
    open_records(project, 12)
    page = at("annotation:label", project.slug)
    choice(page, "Music").click()
    expect(page.locator("#question")).to_have_text("record 1")
    settle(page)
    page.get_by_text("Why am I shown this?").click()
    page.locator("summary", has_text="Guidelines").click()
    page.locator("summary", has_text="Skip").click()
    return page


def show_skip_to_take_back(project, at):
    open_records(project, 3)
    page = at("annotation:label", project.slug)
    page.locator("summary", has_text="Skip").click()
    page.locator("details[open] button").first.click()
    expect(page.get_by_role("button", name="Undo last: skipped")).to_be_visible(timeout=30_000)
    return page


def show_somebody_else(project, at):
    open_records(project, 3)
    page = at("annotation:label", project.slug)
    client = browser_of(make_annotators(project, 1)[0])
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    origin = page.evaluate("location.origin")
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": origin}])
    choice(page, "Music").click()
    expect(page.locator("#question")).to_contain_text("Somebody else is signed in here now", timeout=30_000)
    expect(page.locator(".menu")).to_have_count(0)
    return page


def show_table(project, at):
    project.data_kind = "table"
    project.columns = [{"name": name} for name in ("amount", "country", "remark")]
    project.save()
    (record,) = make_records(project, payloads=[{"amount": 1234.5, "country": "NO", "remark": None}])
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
    return at("annotation:label", project.slug)


def show_crowd(project, at):
    person = Assignment.annotator.field.related_model.objects.get(memberships__project=project)
    crowd = make_project(
        oracle="crowd",
        name="Voice queries, asked of a crowd with a long name",
        privacy_unit="contributor",
        selection="uncertainty",
        question="What does this person want?",
        classes=["Transport", "Weather"],
    )
    crowd.memberships.create(user=person, role="annotator")
    candidates = make_candidates(crowd, ["متى يغادر آخر قطار", "weather tomorrow"])
    queue.open_queries(project=crowd, round_number=1, query_ids=[candidate.pk for candidate in candidates])
    return at("annotation:label", crowd.slug)


def saying(page, heading):
    expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
    assert len(page.locator("#question p").first.inner_text()) > 60
    return page


def show_empty(project, at):
    return saying(at("annotation:label", project.slug), "The first questions are being prepared")


def show_paused(project, at):
    type(project).objects.update(state="paused")
    return saying(at("annotation:label", project.slug), "This project is paused")


def show_confirm(project, at):
    write_settings(project, confirm_answers=True)
    open_records(project, 2)
    page = at("annotation:label", project.slug)
    page.get_by_label("Music").check()
    return page


def show_changed_guidelines_and_flag(project, at):
    open_records(project, 2)
    page = at("annotation:label", project.slug)
    example = {"text": "last train?", "choice": 0, "reason": "asks how to get there"}
    guidelines.save_guidelines(project=project, text="New.", examples=[example], author=project.created_by)
    page.reload()
    page.locator("summary", has_text="Flag").click()
    page.locator("summary", has_text="Comment").click()
    expect(page.get_by_text("asks how to get there")).to_be_visible()
    return page


def show_quiet(project, at):
    hour = timezone.localtime().hour
    write_settings(project, quiet_from=time(hour), quiet_until=time((hour + 2) % 24))
    return saying(at("annotation:label", project.slug), "Questions come back at")


def show_enough_for_today(project, at):
    write_settings(project, answers_per_day=1)
    answer_once(project)
    return saying(at("annotation:label", project.slug), "That is all for today")


def show_enough_seen(project, at):
    write_settings(project, encounter_limit=1)
    answer_once(project)
    return saying(at("annotation:label", project.slug), "You have seen as many people as one annotator may")


def show_refused(project, at):
    project.memberships.update(role="engineer")
    return at("annotation:label", project.slug)


def show_missing(project, at):
    return at("/projects/nowhere/label/")


def show_login(project, at):
    page = at("/")
    page.context.clear_cookies()
    return at("login")


def show_wrong_login(project, at):
    page = show_login(project, at)
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password").fill("guess")
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("User name and password do not")
    return page


def show_menu(project, at):
    page = at("annotation:label", project.slug)
    page.locator(".menu summary").click()
    return page


SCENES = [
    show_question,
    show_answered,
    show_skip_to_take_back,
    show_somebody_else,
    show_table,
    show_crowd,
    show_empty,
    show_paused,
    show_confirm,
    show_changed_guidelines_and_flag,
    show_quiet,
    show_enough_for_today,
    show_enough_seen,
    show_refused,
    show_missing,
    show_login,
    show_wrong_login,
    show_menu,
]


@pytest.mark.every_change
@pytest.mark.one_in(20)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_every_scene_is_accessible_in_light_and_dark_at_a_desk_and_on_a_phone(project, logged_in, at, scene):
    page = scene(project, at)
    for viewport in (DESK, PHONE):
        page.set_viewport_size(viewport)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert violations(page) == []
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= viewport["width"], f"{wide} px in a window of {viewport['width']} px"
    small = page.evaluate(
        """[...document.querySelectorAll(
               "button, summary, .bar a, .tabs a, a.button, label.choice, input:not([type=hidden], [type=radio])")]
             .filter(element => element.checkVisibility() && element.getBoundingClientRect().height < 44)
             .map(element => element.textContent.trim() + " " + element.getBoundingClientRect().height)"""
    )
    assert small == []


def test_reduced_motion_moves_nothing(project, logged_in, at):
    open_records(project, 1)
    page = at("annotation:label", project.slug)
    page.emulate_media(reduced_motion="reduce")
    duration = page.locator(".choice").first.evaluate("element => getComputedStyle(element).transitionDuration")
    assert duration == "0s"
    assert Query.objects.count() == 1
