from collections.abc import Callable

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from PIL import Image
from playwright.sync_api import Page, expect

from annotation.data.readers.images import as_webp
from annotation.models import Consensus, Picture, Project, Query, QueryState, Report, Role
from annotation.models.quality import Review, ReviewState
from annotation.questions.services import guidelines, labels, queue
from tests import axe
from tests.clients import come_in
from tests.factories import add_members, make_annotators, make_project, make_records, make_user, open_records

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WAIT = 30_000


@pytest.fixture
def project() -> Project:
    manager = make_user("manager")
    made = make_project(owner=manager, name="Voice queries", overlap=2, reviewed="all")
    add_members(made, manager, role=Role.MANAGER)
    guidelines.save_guidelines(project=made, text="Sport is what people play.", examples=[], author=manager)
    return made


@pytest.fixture
def reviewer(project) -> User:
    person = make_user("reviewer")
    add_members(project, person, role=Role.REVIEWER)
    return person


def answered(project: Project, *pairs: tuple[int, int]) -> list[Query]:
    asked = open_records(project, len(pairs))
    for person, choices in zip(make_annotators(project, 2), zip(*pairs, strict=True), strict=True):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    return asked


def enter(page: Page, live_server, person: User, project: Project) -> None:
    come_in(page.context, person, live_server.url)
    page.goto(live_server.url + reverse("annotation:project", args=[project.slug]))
    expect(page.get_by_role("heading", name="Review", exact=True)).to_be_visible(timeout=WAIT)


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Wait for what a page does by itself; no string may be evaluated there."""
    for _try in range(100):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it never came about")


def press(page: Page, key: str, *, then: str) -> None:
    page.keyboard.press(key)
    expect(page.locator("#shown, .empty")).to_contain_text(then, timeout=WAIT)
    # What takes the next key is there once the page is.
    page.wait_for_load_state()


@pytest.mark.every_change
def test_a_reviewer_goes_through_the_queue_by_keys(page, live_server, project, reviewer):
    alike, disputed, other = answered(project, (1, 1), (0, 1), (1, 1))
    enter(page, live_server, reviewer, project)
    expect(page.locator("#shown")).to_contain_text("record 1")
    expect(page.get_by_text("0 of 3 reviewed.")).to_be_visible()
    page.keyboard.press("3")
    expect(page.get_by_label("Class")).to_have_value("2")
    press(page, "Enter", then="record 0")
    assert (Consensus.objects.get(query=disputed).choice, Consensus.objects.get(query=disputed).settled_by) == (
        2,
        reviewer,
    )
    press(page, "u", then="record 1")
    press(page, "s", then="record 0")
    press(page, "a", then="record 2")
    assert Consensus.objects.get(query=alike).settled_by == reviewer
    page.keyboard.press("g")
    expect(page.get_by_text("Sport is what people play.")).to_be_visible(timeout=WAIT)
    page.keyboard.press("Escape")
    expect(page.get_by_text("Sport is what people play.")).to_be_hidden(timeout=WAIT)
    press(page, "x", then="record 1")
    other.refresh_from_db()
    assert other.state == QueryState.SET_ASIDE
    page.keyboard.press("b")
    expect(page.get_by_role("textbox")).to_be_focused(timeout=WAIT)
    page.keyboard.type("Look at the end again.")
    page.keyboard.press("Tab")
    press(page, "Enter", then="Nothing waits for you.")
    assert {report.comment for report in Report.objects.all()} == {"Look at the end again."}
    assert not Review.objects.filter(state=ReviewState.LEASED).exists()


def test_a_disputed_question_is_decided_by_nobody_who_chose_nothing(page, live_server, project, reviewer):
    answered(project, (0, 1))
    enter(page, live_server, reviewer, project)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Class")).to_be_focused(timeout=WAIT)
    assert not Consensus.objects.exists()


@pytest.fixture
def pictured(project, own_storage) -> Project:
    np.save(own_storage / "pixels.npy", np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28))
    made = make_project(name="Digits", data_kind="image", image_height=28, image_width=28, overlap=2, reviewed="all")
    records = make_records(made, rows=2, pixels="pixels.npy")
    colours = np.linspace(0, 255, 1200, dtype=np.uint8)[None, :, None].repeat(900, axis=0).repeat(3, axis=2)
    Picture.objects.create(record=records[1], width=1200, height=900, content=as_webp(Image.fromarray(colours)))
    queue.open_queries(project=made, round_number=1, record_ids=[record.pk for record in records])
    for person in make_annotators(made, 2):
        for _ in records:
            labels.submit_label(assignment=queue.claim_next(project=made, user=person), choice=1)
    return made


@pytest.mark.one_in(6)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 844), (320, 640)])
def test_a_picture_is_looked_at_closely(page, live_server, pictured, reviewer, size, scheme):
    add_members(pictured, reviewer, role=Role.REVIEWER)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    enter(page, live_server, reviewer, pictured)
    for query in Query.objects.order_by("priority"):
        image = page.get_by_role("img", name=f"The image of question {query.pk}", exact=True)
        expect(image).to_be_visible(timeout=WAIT)
        # However few pixels it has, it can be seen, and the way to accept it is on the same screen of a desk.
        until(page, lambda image=image: image.evaluate("it => it.naturalWidth") > 0)
        width = image.bounding_box()["width"]
        assert width >= 200
        if size[0] == 1280:
            assert page.get_by_role("button", name="Accept").bounding_box()["y"] < size[1]
        assert axe.violations(page) == []
        page.keyboard.press("z")
        expect(page.locator("#question")).to_have_class("question picture enlarged")
        assert image.bounding_box()["width"] > 2 * width
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        assert axe.violations(page) == []
        page.keyboard.press("Escape")
        expect(page.locator("#question")).to_have_class("question picture")
        page.keyboard.press("a")
        expect(image).to_be_hidden(timeout=WAIT)
    assert Consensus.objects.filter(settled_by=reviewer, choice=1).count() == 2


def test_a_drawn_question_says_why_it_is_shown(page, live_server, reviewer):
    drawing = make_project(name="Voice queries", overlap=2, review_share=1.0)
    add_members(drawing, reviewer, role=Role.REVIEWER)
    answered(drawing, (1, 1))
    enter(page, live_server, reviewer, drawing)
    expect(page.get_by_text("Drawn at random: the answer counts once you decide.")).to_be_visible(timeout=WAIT)
    assert axe.violations(page) == []
    press(page, "a", then="Nothing waits for you.")
    assert Consensus.objects.get().changed is False


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 844), (320, 640)])
def test_the_page_is_sound(page, live_server, project, reviewer, size, scheme):
    answered(project, (1, 1), (0, 1))
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    enter(page, live_server, reviewer, project)
    for then in ("record 0", "record 1"):
        assert axe.violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        press(page, "s", then=then)
    for key in ("b", "g"):
        page.locator("h1").click()
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(key)
    expect(page.get_by_text("Sport is what people play.")).to_be_visible(timeout=WAIT)
    assert axe.violations(page) == []
