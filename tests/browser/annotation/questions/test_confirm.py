import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import expect

from annotation.data.services.streams import post_records
from annotation.models import Label, Role
from annotation.people.services import members
from tests import streaming
from tests.axe import violations
from tests.clients import come_in
from tests.factories import make_user, write_settings
from tests.keyboard import read_first

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = ({"width": 1100, "height": 800}, {"width": 320, "height": 640})


@pytest.fixture
def project():
    manager = make_user("manager")
    made = streaming.open_stream(manager, "confirm-or-reject")
    members.add_member(project=made, user=manager, role=Role.ANNOTATOR)
    post_records(project=made, records=streaming.rows(12))
    streaming.work_off(made)
    return made


@pytest.fixture
def desk(page, live_server, project):
    come_in(page.context, project.created_by, live_server.url)

    def go():
        page.goto(live_server.url + reverse("annotation:label", args=[project.slug]))
        return page

    return go


def answer(page, *keys):
    shown = page.locator("#answer").get_attribute("action")
    read_first(page)
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_function("shown => document.querySelector('#answer')?.getAttribute('action') !== shown", arg=shown)


def choices():
    return list(Label.objects.order_by("pk").values_list("choice", flat=True))


def test_numbers_and_letters_answer(desk):
    page = desk()
    for key in ("1", "2", "y", "n"):
        answer(page, key)
    assert choices() == [0, 1, 0, 1]
    read_first(page)
    page.keyboard.press("3")
    page.keyboard.press("?")
    expect(page.locator(".keys").get_by_text("No, it is wrong")).to_be_visible()
    expect(page.get_by_text("choose one of the first ten classes")).to_have_count(0)
    assert len(choices()) == 4


def test_letters_follow_the_language(desk, live_server):
    page = desk()
    page.context.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": "de", "url": live_server.url}])
    page = desk()
    for key in ("j", "n"):
        answer(page, key)
    assert choices() == [0, 1]


def test_where_answers_are_confirmed_enter_stores_them(desk, project):
    write_settings(project, confirm_answers=True)
    page = desk()
    answer(page, "n", "Enter")
    assert choices() == [1]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("confirm_answers", [False, True])
def test_it_is_accessible_everywhere(desk, project, confirm_answers):
    write_settings(project, confirm_answers=confirm_answers)
    page = desk()
    assert page.locator(".choices").get_attribute("aria-labelledby") == "ask guess"
    for size in SIZES:
        page.set_viewport_size(size)
        heights = page.locator(".choice").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
        assert len(heights) == 2
        assert min(heights) >= 44
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
