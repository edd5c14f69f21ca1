import os
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import expect

from annotation.models import ProjectState
from learner.models import StoppingAdvice
from tests import learning
from tests.axe import violations
from tests.clients import browser_of
from tests.db.learner.answers.test_randomization import open_randomized, reach
from tests.factories import make_annotators

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
KEEP = os.environ.get("SCREENSHOTS")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("stop", [True, False])
def test_overview_and_dashboard_say_it_and_a_button_pauses(page, live_server, stop):
    project = open_randomized()
    learning.fill_crowd(project)
    make_annotators(project, 3)
    agreement = 0.98 if stop else 0.81
    StoppingAdvice.objects.create(
        release=reach(project, 1), models_compared=4, agreement=agreement, threshold=0.975, moved=0.0734, stop=stop
    )
    client = browser_of(project.created_by)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    for name in ("overview", "dashboard"):
        page.goto(live_server.url + reverse(f"learner:{name}", args=[project.slug]))
        expect(page.get_by_role("heading", name="Do more answers help?")).to_be_visible()
        for width in (1100, 390):
            for scheme in ("light", "dark"):
                page.set_viewport_size({"width": width, "height": 800})
                page.emulate_media(color_scheme=scheme)
                if KEEP:
                    page.screenshot(path=Path(KEEP) / f"more-{name}-{stop}-{width}-{scheme}.png", full_page=True)
                assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert violations(page) == []
    button = page.get_by_role("button", name="Pause asking")
    expect(button).to_have_count(1 if stop else 0)
    if stop:
        button.focus()
        page.keyboard.press("Enter")
        # The page from before the press has the heading too, so wait for what only the next one lacks.
        expect(button).to_have_count(0)
        expect(page.get_by_role("heading", name="Do more answers help?")).to_be_visible()
        project.refresh_from_db()
        assert project.state == ProjectState.PAUSED
