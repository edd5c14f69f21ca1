from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import expect

from addons.webhooks.models import Webhook, WebhookDelivery
from dpal_site.embedded.processes import Supervisor
from learner.models import ModelRelease
from learner.releases.services import channels
from tests import axe, learning
from tests.clients import browser_of
from tests.factories import make_user

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
VIEWS = (({"width": 1280, "height": 800}, "light"), ({"width": 320, "height": 640}, "dark"))


@pytest.mark.slow
def test_a_release_and_its_webhooks(page: "Page", live_site: Supervisor) -> None:
    manager = make_user()
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=2)
    webhook = Webhook.objects.create(project=project, url="https://hooks.example.org/", events=["round"], salt=b"s")
    WebhookDelivery.objects.create(
        webhook=webhook, event="round", subject="round 1", body="{}", state="given_up", answer="HTTP 500"
    )
    client = browser_of(manager)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])
    for number in (1, 2):
        release = ModelRelease.objects.get(project=project, version=number)
        channels.move_channel(release=release, channel="stable", reason="Fewer mistakes than before.", actor=manager)
    of_release = reverse("learner:release", args=[project.slug, 2])
    paths = [
        of_release,
        f"{of_release}?with=1",
        reverse("learner:channels", args=[project.slug]),
        reverse("webhooks:webhooks", args=[project.slug]),
    ]
    for size, scheme in VIEWS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for path in paths:
            response = page.goto(live_site.url + path)
            assert response is not None
            assert response.status == 200
            tabs = page.locator(".parts a").count()
            assert tabs == (4 if path.startswith(of_release) else 0)
            for tab in range(tabs or 1):
                if tabs:
                    # By keyboard, as any link.
                    page.locator(".parts a").nth(tab).focus()
                    page.keyboard.press("Enter")
                    expect(page.locator("section.part:visible")).to_have_count(1)
                for summary in page.locator("main summary").all():
                    if summary.is_visible():
                        summary.click()
                violations = axe.violations(page)
                assert [f"{item['id']}: {item['nodes'][0]['html'][:150]}" for item in violations] == [], (path, scheme)
                assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.goto(live_site.url + paths[0])
    expect(page.locator("figure.chart svg")).to_have_count(2)
    for point in page.locator("figure.chart .mark").all():
        point.focus()
        assert point.evaluate("point => point === document.activeElement")
        assert point.get_attribute("aria-label")
    expect(page.locator("table.matrix .heat5, table.matrix .heat4, table.matrix .heat3").first).to_be_visible()
    for link in page.get_by_role("link", name="Picture (SVG)").all():
        assert page.request.get(f"{live_site.url}{link.get_attribute('href')}").status == 200
