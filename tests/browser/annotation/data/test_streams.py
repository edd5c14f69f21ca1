from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from annotation.data.services.streams import post_records
from annotation.models import Label, Role
from annotation.people.services import members
from annotation.projects.services.drafts import start_draft
from dpal_site.embedded.processes import Supervisor
from tests import axe, streaming
from tests.clients import come_in
from tests.factories import make_opener

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("size", "scheme"), [({"width": 1280, "height": 800}, "light"), ({"width": 320, "height": 640}, "dark")]
)
def test_pages_of_a_stream_are_clean(page: "Page", live_site: Supervisor, size: dict[str, int], scheme: str) -> None:
    manager = make_opener("manager")
    project = streaming.open_stream(manager, "confirm-or-reject")
    members.add_member(project=project, user=manager, role=Role.ANNOTATOR)
    post_records(project=project, records=streaming.rows(3))
    streaming.work_off(project)
    come_in(page.context, manager, live_site.url)
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    presets = ("fraud-stream", "confirm-or-reject")
    begun = [start_draft(owner=manager, preset=preset).pk for preset in presets]
    found = {}
    for path in (
        *(reverse("annotation:opening", args=[each]) for each in begun),
        reverse("annotation:data", args=[project.slug]),
        reverse("learner:overview", args=[project.slug]),
        reverse("annotation:budget", args=[project.slug]),
        reverse("annotation:label", args=[project.slug]),
    ):
        response = page.goto(live_site.url + path)
        assert response is not None
        assert response.status == 200, path
        violations = axe.violations(page)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        problems = [f"{item['id']}: {item['nodes'][0]['html'][:150]}" for item in violations]
        if problems or wide:
            found[path] = (problems, wide)
    assert not found
    # The last page is the desk: one key confirms the guess, and the next question comes.
    guess = page.locator("#guess").inner_text()
    assert any(name in guess for name in streaming.CLASSES)
    with page.expect_response("**/submit/"):
        page.keyboard.press("1")
    page.wait_for_selector("#guess")
    assert Label.objects.get().choice == 0
