from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Membership, Role
from annotation.people.services import invitations
from tests.axe import violations
from tests.factories import make_project
from tests.keyboard import Keyboard
from tests.openid_issuer import NAME, Issuer, listening_issuer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def issuer(settings) -> Iterator[str]:
    cache.clear()
    with listening_issuer(settings) as url:
        yield url


@pytest.mark.parametrize("invited", [False, True])
def test_the_issuer_lets_in_and_leads_on(page: Page, live_server, issuer, invited):
    keys, onward = Keyboard(page), reverse("annotation:projects")
    if invited:
        project = make_project(name="Voice queries")
        _, secret = invitations.create_invitation(
            project=project, role=Role.ANNOTATOR, maximum_uses=1, lifetime=timedelta(days=1), owner=project.created_by
        )
        page.goto(live_server.url + reverse("annotation:join", args=[secret]))
        keys.follow(page.get_by_role("link", name="Log in and join"))
        onward = reverse("annotation:label", args=[project.slug])
    else:
        page.goto(live_server.url + reverse("login"))
    keys.follow(page.get_by_role("button", name=f"Continue with {NAME}"))
    assert page.url.startswith(issuer)
    # Ours begin where the site's page ends.
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Tell them who I am")).to_be_focused(timeout=30_000)
    keys.submit()
    page.wait_for_url(live_server.url + onward)
    assert violations(page) == []
    assert Membership.objects.filter(role=Role.ANNOTATOR, user__email="ann@example.org").count() == int(invited)


def test_a_refusal_says_why_and_leads_back(page: Page, live_server, issuer, monkeypatch):
    monkeypatch.setattr(Issuer, "changed", {"claims": {"nonce": "another"}})
    page.set_viewport_size({"width": 320, "height": 640})
    keys = Keyboard(page)
    page.goto(live_server.url + reverse("login"))
    keys.follow(page.get_by_role("button", name=f"Continue with {NAME}"))
    page.get_by_role("button", name="Tell them who I am").click()
    expect(page.get_by_role("heading", name="Not logged in")).to_be_visible(timeout=30_000)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_role("link", name="Log in").click()
    page.wait_for_url(live_server.url + reverse("login"))
