import pytest
from playwright.sync_api import expect

from annotation.models import Label
from tests.axe import problems_of
from tests.browser.annotation.questions.test_label_many import CLASSES
from tests.factories import make_account, make_project, open_records, write_settings
from tests.keyboard import read_first

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FEW = ["play", "weather", "pause", "forecast", "else"]
GROUPS = ["weather: Outside", "forecast: Outside", "play: Media", "pause: Media"]
COLOURS = ["Outside: blue", "play: green", "pause: red", "else: grey"]
SIZES = {
    "light": {"width": 1280, "height": 860},
    "tablet": {"width": 390, "height": 760},
    "dark": {"width": 320, "height": 640},
}


def open_few(**settings):
    project = make_project(name="Commands", question="What is asked for?", classes=FEW, **settings)
    write_settings(project, class_groups=GROUPS, class_colours=COLOURS)
    open_records(project, 3)
    return project


# Of each heading, whether it stands above all of its classes.
ABOVE = """() => [...document.querySelectorAll("[role=group] > .heading")].every((heading) => {
  const bottom = heading.getBoundingClientRect().bottom;
  const members = [...heading.parentElement.querySelectorAll(".choice")];
  return members.every((one) => one.getBoundingClientRect().top >= bottom);
})"""


def answers():
    return list(Label.objects.filter(superseded_at=None).order_by("pk").values_list("choice", flat=True))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", SIZES)
def test_buttons_stand_under_their_headings_and_keep_their_keys(enter, size):
    page = enter(open_few(), viewport=SIZES[size], color_scheme="dark" if size == "dark" else "light")
    assert page.locator("#answer [role=group] > .heading").all_inner_texts() == ["Outside", "Media", "Other classes"]
    assert page.evaluate(ABOVE)
    assert page.locator("#answer .choice > span").all_inner_texts() == ["weather", "forecast", "play", "pause", "else"]
    colours = [one.get_attribute("data-colour") for one in page.locator("#answer .choice").all()]
    assert colours == ["blue", "blue", "green", "red", "grey"]
    expect(page.get_by_role("group", name="Media").get_by_role("button")).to_have_count(2)
    assert problems_of(page) == []
    read_first(page)
    page.keyboard.press("2")
    expect(page.locator("#question")).to_have_text("record 1")
    assert answers() == [FEW.index("weather")]


def test_boxes_of_a_project_that_asks_for_several_and_of_one_that_confirms(enter):
    several = make_project(
        name="Several",
        classes=FEW,
        question_kind="several",
        estimator="label_sets",
        labels_per_record=3,
        pool_account=make_account(delta_limit=1e-4),
    )
    confirmed = open_few(confirm_answers=True)
    write_settings(several, class_groups=GROUPS, class_colours=COLOURS)
    open_records(several, 2)
    for project, role in ((several, "checkbox"), (confirmed, "radio")):
        page = enter(project, viewport=SIZES["dark"])
        inside = page.get_by_role("group", name="Outside").get_by_role(role)
        expect(inside).to_have_count(2)
        assert problems_of(page) == []
        inside.nth(1).check()
        read_first(page)
        page.get_by_role("button", name="Store the answer" if role == "checkbox" else "Confirm").click()
        expect(page.locator("#question")).to_have_text("record 1")
    assert answers() == [1 << FEW.index("forecast"), FEW.index("forecast")]


@pytest.fixture
def many():
    project = make_project(name="Bank questions", question="What does this customer want?", classes=CLASSES)
    groups = [f"{name}: Cards and PINs" for name in CLASSES if "card" in name.split() or "pin" in name.split()]
    groups += [f"{name}: Money on its way" for name in CLASSES if "transfer" in name.split()]
    write_settings(project, class_groups=groups, class_colours=["Cards and PINs: purple", "age limit: yellow"])
    open_records(project, 4)
    return project


def test_typing_a_heading_finds_its_classes(enter, many):
    page = enter(many)
    read_first(page)
    page.keyboard.type("money on")
    found = page.locator("#answer .hits .choice")
    assert set(found.locator("> small").all_inner_texts()) == {"Money on its way"}
    first = found.first.locator("> span").inner_text()
    assert "transfer" in first
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_have_text("record 1")
    assert answers() == [CLASSES.index(first)]
    read_first(page)
    # Its own two letters find a class before any heading does, as ever.
    page.keyboard.type("age")
    assert page.locator("#answer .hits .choice > span").first.inner_text() == "age limit"


@pytest.mark.parametrize("size", ["light", "dark"])
def test_the_whole_list_has_headings(enter, many, size):
    page = enter(many, viewport=SIZES[size], color_scheme=size)
    read_first(page)
    page.locator(".all > summary").click()
    headings = ["Cards and PINs", "Money on its way", "Other classes"]
    # They are drawn once somebody opens the list.
    expect(page.locator(".all .heading")).to_have_text(headings)
    expect(page.locator(".all .choice")).to_have_count(len(CLASSES))
    assert page.evaluate(ABOVE)
    assert problems_of(page) == []
    page.locator(".all > summary").click()
    page.locator("#classes > summary").click()
    assert page.locator("#classes .heading").all_inner_texts() == headings
    assert problems_of(page) == []
    page.locator("#classes > summary").click()
    page.locator(".all > summary").click()
    page.get_by_role("group", name="Cards and PINs").get_by_role("button", name="change pin").click()
    expect(page.locator("#question")).to_have_text("record 1")
    assert answers() == [CLASSES.index("change pin")]


def test_without_scripts_headings_stand_in_the_list(enter, many):
    page = enter(many, java_script_enabled=False)
    groups = page.locator("#one-class optgroup")
    assert [one.get_attribute("label") for one in groups.all()] == [
        "Cards and PINs",
        "Money on its way",
        "Other classes",
    ]
    page.get_by_label("Class", exact=True).select_option("change pin")
    page.get_by_role("button", name="Store the answer").click()
    expect(page.locator("#question")).to_have_text("record 1")
    assert answers() == [CLASSES.index("change pin")]
