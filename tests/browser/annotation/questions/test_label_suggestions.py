from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from addons.language_models.models import MachineAnnotator
from annotation.models import Label, Project, Query
from annotation.models.quality import Machine
from tests.axe import violations
from tests.factories import add_members, make_annotators, make_project, make_user, open_records

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
READING_MS = 350
FEW = ["Transport", "Weather", "Music", "Calendar", "Something else"]
MANY = [f"{name} {number}" for name in ("Billing", "Delivery", "Returns", "Warranty") for number in range(10)]
Enter = Callable[..., Page]


def suggested(shown: list[bool], **fields: object) -> Project:
    values = {"name": "Voice queries", "question": "What does this person want?", "classes": FEW}
    project = make_project(**(values | fields))
    for query, each in zip(open_records(project, len(shown)), shown, strict=True):
        Query.objects.filter(pk=query.pk).update(suggested=2, suggested_percent=72, suggestion_shown=each)
    return project


def shows(page: Page, text: str) -> None:
    expect(page.locator("#question")).to_have_text(text)
    page.wait_for_timeout(READING_MS)


def answers() -> list[int | None]:
    return list(Label.objects.order_by("pk").values_list("choice", flat=True))


def test_a_takes_what_is_suggested_and_nothing_where_nothing_is_shown(enter):
    project = suggested([True, False, True])
    (person,) = make_annotators(project, 1)
    page = enter(project, person)
    shows(page, "record 0")
    expect(page.locator("#suggestion")).to_have_text("The model suggests Music (72 % sure). It may be wrong.")
    page.keyboard.press("a")
    shows(page, "record 1")
    assert answers() == [2]
    expect(page.locator("#suggestion")).to_have_count(0)
    page.keyboard.press("a")
    page.keyboard.press("Shift+A")
    shows(page, "record 1")
    assert answers() == [2]
    page.keyboard.press("1")
    shows(page, "record 2")
    # The other keys go on working beside it.
    page.keyboard.press("4")
    expect(page.locator("#answer")).to_have_count(0)
    assert answers() == [2, 0, 3]


def test_with_a_list_of_classes_shift_and_a_take_it_and_a_alone_begins_a_word(enter):
    project = suggested([True, False], classes=MANY)
    (person,) = make_annotators(project, 1)
    page = enter(project, person)
    shows(page, "record 0")
    page.keyboard.press("a")
    expect(page.locator(".find input")).to_have_value("a")
    assert answers() == []
    page.keyboard.press("Shift+A")
    shows(page, "record 1")
    assert answers() == [2]
    expect(page.get_by_text("Accept the suggestion")).to_have_count(0)
    page.keyboard.press("Shift+A")
    shows(page, "record 1")
    assert answers() == [2]


def test_where_answers_are_confirmed_the_key_chooses_and_enter_answers(enter):
    project = suggested([True, True], confirm_answers=True)
    (person,) = make_annotators(project, 1)
    page = enter(project, person)
    shows(page, "record 0")
    page.keyboard.press("a")
    expect(page.locator(".choice.suggested input")).to_be_checked()
    assert answers() == []
    page.keyboard.press("Enter")
    shows(page, "record 1")
    assert answers() == [2]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "touch"), [(1100, False), (390, True), (320, True)])
@pytest.mark.parametrize("classes", [FEW, MANY], ids=["few", "many"])
def test_it_fits_every_screen_and_names_no_key_where_there_is_none(enter, scheme, width, touch, classes):
    project = suggested([True], classes=classes)
    (person,) = make_annotators(project, 1)
    options = {"color_scheme": scheme, "has_touch": touch, "is_mobile": touch}
    page = enter(project, person, viewport={"width": width, "height": 780}, **options)
    shows(page, "record 0")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    keys = page.locator(".choice.suggested kbd:visible, .accept kbd:visible")
    assert (keys.count() == 0) == touch
    assert violations(page) == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390])
def test_what_a_language_model_answered_fits_every_screen(enter, scheme, width):
    project = suggested([True, False])
    owner, machine = make_user(), make_user()
    add_members(project, owner, role="manager")
    add_members(project, machine)
    MachineAnnotator.objects.create(
        machine=Machine.objects.create(project=project, user=machine), requests=1200, tokens=345_678
    )
    page = enter(project, owner, "annotation:quality", viewport={"width": width, "height": 780}, color_scheme=scheme)
    expect(page.get_by_role("heading", name="Machine annotator")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
