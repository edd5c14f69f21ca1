from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from dpal_site.embedded.processes import Supervisor

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_routes_are_listed(page: "Page", live_site: Supervisor) -> None:
    page.goto(live_site.url + "/api/v1/docs")
    page.get_by_text("Upload a file; a job reads it").wait_for(timeout=30_000)
    expect(page.get_by_text("Claim the next question; 204 when there is none")).to_have_count(1)
