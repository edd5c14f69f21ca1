import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import expect

from annotation.budget.words import epsilon_words
from dpal_site.embedded.processes import Supervisor
from learner.models import Grouping, ModelRelease, SharesReport
from learner.shares import selectors, services
from tests import axe
from tests.clients import browser_of
from tests.db.learner.shares.test_services import released

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# Folder for pictures of the pages, if any.
KEEP = os.environ.get("DPAL_TEST_PICTURES", "")
VIEWS = (({"width": 1280, "height": 800}, "light"), ({"width": 390, "height": 844}, "dark"))


@pytest.mark.slow
def test_shares_from_price_to_result(page: "Page", live_site: Supervisor) -> None:
    project = released()
    cookie = browser_of(project.created_by).cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])
    address = live_site.url + reverse("learner:shares", args=[project.slug])
    # The price is on the button before anything is asked; by keyboard.
    (offer,) = (one for one in selectors.offers(project) if one.block.block == 2)
    page.goto(address)
    button = page.get_by_role("button", name=f"Ask for ε {epsilon_words(offer.epsilon)} Secret block 2")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The records are being counted.")).to_be_visible()
    counted(page, address)
    page.get_by_label("Count", exact=True).select_option(Grouping.CONFIDENCE)
    page.get_by_role("button", name="Show prices").click()
    page.get_by_role("button", name="Ask for ε").click()
    counted(page, address)
    for report in SharesReport.objects.filter(project=project):
        assert report.state == "done", report.error
    version = ModelRelease.objects.get(project=project, version=1)
    of_release = live_site.url + reverse("learner:release", args=[project.slug, version.version])
    for size, scheme in VIEWS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.goto(address)
        for name in ("fruit", "tool"):
            expect(page.get_by_role("rowheader", name=name, exact=True)).to_be_visible()
        expect(page.get_by_text("Right at least").first).to_be_attached()
        checked(page, f"shares-{scheme}")
        # Each interval is drawn, and as wide as the phone lets it be.
        drawn = page.locator("svg.range").first.bounding_box()
        assert drawn is not None
        assert drawn["width"] >= 180
        page.goto(of_release)
        expect(page.get_by_role("heading", name="Abstaining", exact=True)).to_be_attached()


def counted(page: "Page", address: str) -> None:
    """Count what waits, unless the site's own worker has."""
    for report in SharesReport.objects.filter(state="waiting"):
        services.measure_shares(report_id=report.pk)
    page.goto(address)
    expect(page.get_by_text("waiting", exact=True)).to_have_count(0)
    expect(page.get_by_text("running", exact=True)).to_have_count(0)


def checked(page: "Page", name: str) -> None:
    assert axe.problems_of(page) == []
    if KEEP:
        page.screenshot(path=Path(KEEP) / f"{name}.png", full_page=True)
