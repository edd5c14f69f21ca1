import pytest
from playwright.sync_api import expect

from annotation.choices.label_types.class_sets import places_of
from annotation.models import Label
from tests.axe import violations
from tests.browser.annotation.questions.test_label_many import CLASSES, shows
from tests.factories import make_account, make_project, open_records
from tests.keyboard import read_first

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
GENRES = ["Drama", "Comedy", "Documentary", "War", "Family"]
PHONE = {"width": 320, "height": 640}


def open_sets(**settings):
    values = {"labels_per_record": 2, "none_allowed": True, "classes": GENRES, "training_delta": 1e-6}
    return make_project(
        name="Films",
        question="Which genres does this film have?",
        question_kind="several",
        estimator="label_sets",
        pool_account=make_account(delta_limit=1e-4),
        **(values | settings),
    )


def answers() -> list[tuple[int, ...]]:
    given = Label.objects.filter(superseded_at=None).order_by("pk").values_list("choice", flat=True)
    return [places_of(choice) for choice in given]


def test_keys_tick_store_and_say_none(enter):
    project = open_sets()
    open_records(project, 4)
    page = enter(project)
    read_first(page)
    for key in ("1", "4"):
        page.keyboard.press(key)
    assert page.locator("#answer input:checked").count() == 2
    page.keyboard.press("5")
    expect(page.locator("#problem")).to_contain_text("No more classes allowed")
    assert page.locator("#answer input:checked").count() == 2
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    shows(page, "record 1")
    read_first(page)
    page.keyboard.press("2")
    page.keyboard.press("-")
    assert page.locator("#answer input[name=choice]:checked").count() == 0
    page.keyboard.press("Enter")
    shows(page, "record 2")
    read_first(page)
    page.keyboard.press("Enter")
    expect(page.locator("#problem")).to_contain_text("Tick classes, or")
    shows(page, "record 2")
    assert answers() == [(3,), ()]
    read_first(page)
    page.keyboard.press("u")
    shows(page, "record 1")
    expect(page.locator("#answer input[name=none]")).to_be_checked()


def test_sixty_classes_by_typing(enter):
    project = open_sets(classes=CLASSES, labels_per_record=3)
    open_records(project, 3)
    page = enter(project)
    read_first(page)
    page.keyboard.type("atm")
    page.keyboard.press("Enter")
    page.keyboard.type("pin bl")
    page.keyboard.press("Enter")
    chosen = page.locator("#chosen .choice > span")
    expect(chosen).to_have_text(["atm support", "pin blocked"])
    hits = page.locator("#answer .hits .choice > span").all_inner_texts()
    assert len(hits) == 10
    assert "atm support" not in hits
    page.keyboard.type("age")
    page.keyboard.press("Enter")
    page.keyboard.type("edit")
    page.keyboard.press("Enter")
    expect(page.locator("#problem")).to_contain_text("No more classes allowed")
    page.keyboard.press("Escape")
    page.locator("#chosen .choice").filter(has_text="pin blocked").click()
    expect(chosen).to_have_text(["atm support", "age limit"])
    page.locator("#find").focus()
    page.keyboard.press("Enter")
    shows(page, "record 1")
    assert answers() == [(CLASSES.index("age limit"), CLASSES.index("atm support"))]
    read_first(page)
    page.keyboard.press("Shift+U")
    shows(page, "record 0")
    expect(chosen).to_have_text(["age limit", "atm support"])


@pytest.mark.parametrize("classes", [GENRES, CLASSES], ids=["few", "many"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_and_nothing_for_axe_to_find(enter, classes, scheme):
    project = open_sets(classes=classes)
    open_records(project, 2)
    page = enter(project, viewport=PHONE, color_scheme=scheme, has_touch=True)
    read_first(page)
    if classes is GENRES:
        page.get_by_label("War").tap()
    else:
        page.locator("#answer .hits .choice").first.tap()
    assert page.locator("#answer input[name=choice]:checked").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert violations(page) == []
    page.get_by_role("button", name="Store the answer").tap()
    shows(page, "record 1")
    assert len(answers()) == 1


@pytest.mark.parametrize("classes", [GENRES, CLASSES], ids=["few", "many"])
def test_without_scripts_boxes_work(enter, classes):
    project = open_sets(classes=classes)
    open_records(project, 2)
    page = enter(project, java_script_enabled=False)
    for place in (0, 3):
        page.get_by_role("checkbox", name=classes[place], exact=True).check()
    page.get_by_role("button", name="Store the answer").click()
    shows(page, "record 1")
    assert answers() == [(0, 3)]


def test_an_answer_of_several_classes_survives_a_lost_connection(enter):
    project = open_sets()
    open_records(project, 2)
    page = enter(project)
    read_first(page)
    page.context.set_offline(True)
    page.keyboard.press("1")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    expect(page.locator("#problem")).to_contain_text("kept in this browser")
    page.context.set_offline(False)
    shows(page, "record 1")
    assert answers() == [(0, 1)]
