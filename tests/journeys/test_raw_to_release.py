"""From a raw file to a released model, by keyboard, at a desk and on a phone."""

from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.urls import reverse
from playwright.sync_api import expect

from annotation.models import Project, Query, QueryState
from dpal_site.embedded.processes import Supervisor
from learner.models import ModelRelease, ReleaseState
from tests import keyboard, raw_files
from tests.clients import browser_of
from tests.factories import make_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
WAIT = 120_000
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 780}


def press(page: "Page", name: str) -> None:
    """Go to a button or link and press Enter on it."""
    target = page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first
    target.wait_for(timeout=WAIT)
    target.focus()
    page.keyboard.press("Enter")


def fits(page: "Page") -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@pytest.mark.parametrize(("kind", "size"), [("german", PHONE), ("table", DESK), ("table", PHONE)])
def test_a_raw_file_becomes_a_released_model(
    page: "Page", live_site: Supervisor, celery_worker_process: Supervisor, kind: str, size: dict[str, int]
) -> None:
    page.set_viewport_size(size)  # type: ignore[arg-type]
    manager = make_user("ada")
    manager.user_permissions.add(Permission.objects.get(codename="add_project"))
    cookie = browser_of(manager).cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])
    files = raw_files.KINDS[kind]()
    page.goto(live_site.url + reverse("annotation:new_project"))
    for part, name, data in (("pool", files.pool_name, files.pool), ("public", files.public_name, files.public)):
        page.set_input_files(f"[name={part}]", {"name": name, "mimeType": "text/csv", "buffer": data})
    press(page, "Preview data")
    page.wait_for_url("**/projects/new/*/")
    # The accuracy that labels buy comes while the admin reads.
    expect(page.locator(".gives .forecast")).to_contain_text(
        "Expected accuracy, simulated on public digits", timeout=WAIT
    )
    assert fits(page)
    if page.get_by_role("button", name="Leave them out of the private data").count():
        press(page, "Leave them out of the private data")
        page.get_by_text("They will be left out").wait_for()
    press(page, "Open project")
    press(page, "Answer questions myself")
    page.wait_for_url("**/people/")
    project = Project.objects.get()
    page.goto(live_site.url + reverse("annotation:label", args=[project.slug]))
    page.locator("form button[name=choice], .choice").first.wait_for(timeout=WAIT)
    assert fits(page)
    for _answer in range(120):
        if not Query.objects.filter(project=project, state=QueryState.OPEN).exists():
            break
        keyboard.read_first(page)
        page.keyboard.press("1" if _answer % 2 else "2")
        page.wait_for_timeout(300)
    page.goto(live_site.url + reverse("learner:overview", args=[project.slug]))
    expect(page.locator("#next-step")).to_contain_text("train now", timeout=WAIT)
    press(page, "Train now")
    press(page, "Close and train")
    expect(page.locator("#newest")).to_contain_text("version 1", timeout=WAIT)
    assert ModelRelease.objects.get(project=project).state == ReleaseState.RELEASED
    assert fits(page)
    page.goto(live_site.url + reverse("learner:release", args=[project.slug, 1]))
    press(page, "Files")
    expect(page.get_by_role("link", name="manifest.json").first).to_be_visible()
    assert fits(page)
