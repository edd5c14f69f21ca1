import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from annotation.models import Project, Role
from tests.axe import violations
from tests.clients import come_in
from tests.factories import add_members, make_project, make_user, open_preset, open_records
from tests.keyboard import Keyboard

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WAIT = 30_000
PHONE, SMALL = {"width": 390, "height": 844}, {"width": 320, "height": 640}


@pytest.fixture
def project() -> Project:
    made = open_preset(
        make_user("manager"),
        "pool-experts",
        selection="random",
        class_groups=["yes: Sure"],
        class_colours=["yes: green"],
    )
    open_records(made, 2)
    return made


def enter(page: Page, live_server, person: User, name: str, *args: object) -> None:
    come_in(page.context, person, live_server.url)
    page.goto(live_server.url + reverse(f"annotation:{name}", args=args))


def test_a_class_is_added_by_keys_alone_on_a_phone(page, live_server, project):
    keys = Keyboard(page)
    page.set_viewport_size(PHONE)
    enter(page, live_server, project.created_by, "settings", project.slug)
    keys.follow(page.get_by_role("link", name="Classes", exact=True))
    keys.type(page.get_by_label("Name"), "yes")
    keys.type(page.get_by_label("What belongs to it"), "neither of both")
    keys.type(page.get_by_label("Group"), "Unsure")
    keys.choose(page.get_by_label("Colour"), "teal")
    keys.tick(page.get_by_label("I know this name without having"))
    keys.follow(page.get_by_role("button", name="Add"), key="Space")
    # What is wrong leads to its field, which holds what was typed.
    keys.reach(page.get_by_role("alert").get_by_role("link", name="Name"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This class already exists.")
    assert violations(page) == []
    page.keyboard.press("ControlOrMeta+a")
    keys.type(page.get_by_label("Name"), "perhaps")
    keys.follow(page.get_by_role("button", name="Add"))
    expect(page.get_by_role("status")).to_contain_text("Saved.", timeout=WAIT)
    expect(page.get_by_role("row")).to_have_count(4, timeout=WAIT)
    project.refresh_from_db()
    assert project.classes == ["yes", "no", "perhaps"]
    assert project.settings["class_colours"] == ["yes: green", "perhaps: teal"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, SMALL], ids=["phone", "small"])
def test_the_page_is_sound_without_scripts_and_never_wider_than_the_window(
    browser: Browser, live_server, project, scheme, size
):
    quiet = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=False)
    page = quiet.new_page()
    enter(page, live_server, project.created_by, "classes", project.slug)
    expect(page.get_by_role("button", name="Add")).to_be_visible(timeout=WAIT)
    quiet.close()
    loud = browser.new_context(viewport=size, color_scheme=scheme)
    page = loud.new_page()
    enter(page, live_server, project.created_by, "classes", project.slug)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    loud.close()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, SMALL, {"width": 1280, "height": 800}], ids=["phone", "small", "desk"])
def test_a_class_is_merged_by_keys_alone_and_taken_back(browser: Browser, live_server, scheme, size):
    project = make_project(classes=["bike", "car", "bicycle"])
    add_members(project, project.created_by, role=Role.MANAGER)
    open_records(project, 2)
    page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
    keys = Keyboard(page)
    enter(page, live_server, project.created_by, "classes", project.slug)
    keys.follow(page.get_by_role("link", name="Merge a class"))
    keys.choose(page.get_by_label("Class", exact=True), "bike")
    keys.choose(page.get_by_label("Counts as"), "bicycle")
    assert violations(page) == []
    keys.tick(page.get_by_label("I decided this without reading records"))
    keys.follow(page.get_by_role("button", name="Merge"), key="Space")
    expect(page.get_by_role("status")).to_contain_text("Saved.", timeout=WAIT)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    keys.follow(page.get_by_role("button", name="Take back bike"))
    expect(page.get_by_role("status")).to_contain_text("cannot be merged into itself", timeout=WAIT)
    project.refresh_from_db()
    assert project.merged_classes == {}
