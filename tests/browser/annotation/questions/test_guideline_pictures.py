from collections.abc import Collection

import pytest
from playwright.sync_api import Page, expect

from annotation.models import GuidelinePicture, Project, Role
from annotation.questions.guidelines import NAME_LENGTH, snippet_of
from annotation.questions.services.guidelines import add_guideline_picture, save_guidelines
from tests.axe import violations
from tests.factories import a_png, add_members, make_annotators, make_manager, make_project, make_user, open_records

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = {"light": {"width": 1100, "height": 800}, "dark": {"width": 320, "height": 640}}
LOADED = "() => [...document.images].every(one => one.complete && one.naturalWidth > 0)"


@pytest.fixture
def project() -> Project:
    made = make_project()
    data = a_png(width=1600, height=900, colour="firebrick")
    person = made.created_by
    kept = add_guideline_picture(project=made, data=data, description="a ripe tomato", by=person)
    line = snippet_of(kept.digest[:NAME_LENGTH], kept.description)
    save_guidelines(project=made, text=f"# Fruit\n\nA tomato counts:\n\n{line}", examples=[], author=person)
    return made


def look_at(page: Page, schemes: Collection[str] = tuple(SIZES)) -> None:
    for scheme in schemes:
        size = SIZES[scheme]
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        for each in page.locator("img").all():
            each.scroll_into_view_if_needed()
        page.wait_for_function(LOADED)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "plain"])
def test_a_manager_adds_shows_and_deletes_one(enter, tmp_path, scripts):
    project = make_project(guidelines="Look at the fruit.")
    tomato = tmp_path / "tomato.png"
    tomato.write_bytes(a_png(width=1600, height=900, colour="firebrick"))
    page = enter(
        project, make_manager(project), "annotation:guidelines", java_script_enabled=scripts, reduced_motion="reduce"
    )
    page.get_by_label("Picture").set_input_files(tomato)
    page.get_by_label("Description").fill("a ripe tomato")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    line = page.locator(".pictures code").inner_text()
    text = page.get_by_label("Guidelines", exact=False).first
    text.fill(f"# Fruit\n\nA tomato counts:\n\n{line}")
    page.get_by_role("button", name="Preview").click()
    shown = page.locator(".guidelines").get_by_role("img", name="a ripe tomato")
    expect(shown).to_be_visible()
    if scripts:
        look_at(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.get_by_role("button", name="Delete a ripe tomato").click()
    expect(page.get_by_text("The guidelines show this picture.")).to_be_visible()
    assert GuidelinePicture.objects.exists()
    page.go_back()
    page.get_by_label("Guidelines", exact=False).first.fill("Look.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.get_by_role("button", name="Delete a ripe tomato").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert not GuidelinePicture.objects.exists()


def test_it_is_seen_beside_the_question_and_by_who_reviews(enter, project):
    reviewer = make_user()
    add_members(project, reviewer, role=Role.REVIEWER)
    open_records(project, 1)
    page = enter(project, make_annotators(project, 1)[0], reduced_motion="reduce")
    shown = page.get_by_role("img", name="a ripe tomato")
    expect(shown).to_be_visible()
    look_at(page)
    # On a phone they open above the question, and a picture is seen as a whole.
    page.locator("#guidelines > summary").click()
    expect(shown).to_be_visible()
    look_at(page, ("dark",))
    assert shown.bounding_box()["height"] <= page.locator(".guidelines").bounding_box()["height"]
    answers, beside = page.locator(".choices").bounding_box(), page.locator("#guidelines").bounding_box()
    assert beside["y"] + beside["height"] <= answers["y"]
    page = enter(project, reviewer, "annotation:review", reduced_motion="reduce")
    for closed in page.locator("details:not([open]) > summary", has_text="Guidelines").all():
        closed.click()
    expect(page.get_by_role("img", name="a ripe tomato")).to_be_visible()
    look_at(page)
