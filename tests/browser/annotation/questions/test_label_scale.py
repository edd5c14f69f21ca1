import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation.models import Label
from tests.axe import violations
from tests.clients import come_in
from tests.factories import make_annotators, make_project, open_records

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
READING_MS = 350


@pytest.fixture
def enter(page, live_server):
    def go(project, **size):
        (person,) = make_annotators(project, 1)
        come_in(page.context, person, live_server.url)
        if size:
            page.set_viewport_size(size)
        page.goto(live_server.url + reverse("annotation:label", args=(project.slug,)))
        page.wait_for_timeout(READING_MS)
        return page

    return go


def test_keys_give_steps(enter):
    project = make_project(question_kind="rating", classes=["very bad", "bad", "fair", "good", "very good"])
    open_records(project, 2)
    page = enter(project)
    page.keyboard.press("4")
    expect(page.locator("#question")).to_have_text("record 1")
    assert list(Label.objects.values_list("choice", flat=True)) == [3]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [{"width": 320, "height": 640}, {"width": 1100, "height": 800}])
def test_eleven_steps_fit_and_nothing_is_wrong(enter, size):
    project = make_project(question_kind="rating", classes=[str(step) for step in range(11)])
    open_records(project, 2)
    page = enter(project, **size)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator(".scale .choice")).to_have_count(11)
    assert violations(page) == []
    page.keyboard.press("-")
    expect(page.locator("#question")).to_have_text("record 1")
    assert list(Label.objects.values_list("choice", flat=True)) == [10]


@pytest.mark.parametrize("size", [{"width": 390, "height": 780}, {"width": 1100, "height": 800}])
def test_five_steps_are_one_row(enter, size):
    project = make_project(question_kind="rating", classes=[str(step) for step in range(1, 6)])
    open_records(project, 1)
    page = enter(project, **size)
    assert len({step.bounding_box()["y"] for step in page.locator(".scale .choice").all()}) == 1
