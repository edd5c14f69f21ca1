"""From raw files to the first question, on a desk and on a phone."""

import os
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.data.services import datasets
from annotation.models import Dataset, DatasetState, Project
from tests import axe, raw_files
from tests.clients import come_in
from tests.factories import make_opener

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
WAIT = 60_000
SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


class Presses:
    """Whatever a person presses; choosing a file is one press."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def bring(self, name: str, file_name: str, content: bytes) -> None:
        files = {"name": file_name, "mimeType": "application/octet-stream", "buffer": content}
        self.page.set_input_files(f"input[name={name}]", [files])
        self.count += 1

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).click(timeout=WAIT)
        self.count += 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", raw_files.KINDS)
def test_a_project_opens_from_raw_files(page: Page, live_server, tmp_path: Path, kind: str, size: str) -> None:
    """Eight kinds of files, five presses at most, and every row is stored."""
    manager = make_opener("ada")
    come_in(page.context, manager, live_server.url)
    page.set_default_timeout(WAIT)
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme="light" if size == "desk" else "dark", reduced_motion="reduce")
    page.goto(live_server.url + reverse("annotation:new_project"))
    assert axe.problems_of(page) == []
    brought, person = raw_files.KINDS[kind](), Presses(page)
    person.bring("pool", brought.pool_name, brought.pool)
    person.bring("public", brought.public_name, brought.public)
    person.press("Preview")
    page.get_by_role("heading", name="How much privacy?").wait_for()
    if kind == "user names":
        page.locator("[name=preset][value=voice-crowd]").check()
        person.count += 1
        page.get_by_role("button", name="Open project for").wait_for()
    if kind == "many":
        person.press("Leave them out")
        page.get_by_role("button", name="Keep").wait_for()
    assert axe.problems_of(page) == []
    folder = Path(os.environ.get("DPAL_SCREENSHOTS") or tmp_path)
    page.screenshot(path=folder / f"open-{kind.replace(' ', '-')}-{size}.png", full_page=True)
    person.press("Open project")
    expect(page.get_by_text("Project opened.")).to_be_visible()
    assert person.count <= 8
    for dataset in Dataset.objects.order_by("-pk"):
        datasets.import_dataset(job_id=dataset.job_id)
    assert {each.state for each in Dataset.objects.all()} == {DatasetState.READY}
    assert sum(Dataset.objects.values_list("bad_row_count", flat=True)) == 0
    assert Project.objects.get().classes


def test_a_choice_shows_its_settings_at_once(page: Page, live_server) -> None:
    manager = make_opener("ada")
    come_in(page.context, manager, live_server.url)
    page.goto(live_server.url + reverse("annotation:new_project"))
    page.get_by_role("button", name="Choose Pool, expert labels").click()
    page.fill("[name=name]", "Kept")
    page.get_by_label("What a record is").select_option("table")
    expect(page.get_by_label("Columns", exact=False).first).to_be_visible(timeout=WAIT)
    assert page.input_value("[name=name]") == "Kept"
