import os
from pathlib import Path

import pytest
from django.conf import settings as site
from django.urls import reverse
from playwright.sync_api import expect

from addons.prolific.models import BonusSheet, CrowdStudy, CrowdVerdict
from tests import learning, platform_fixtures
from tests.axe import violations
from tests.clients import browser_of
from tests.keyboard import Keyboard
from tests.prolific_server import TOKEN
from tests.studies import come, turn

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
KEEP = os.environ.get("DPAL_SCREENSHOTS", "")
DESK, PHONE, SMALL = {"width": 1280, "height": 860}, {"width": 390, "height": 844}, {"width": 320, "height": 640}
server, manager = platform_fixtures.server, platform_fixtures.manager
study, published = platform_fixtures.study, platform_fixtures.published


@pytest.fixture
def crowd(manager):
    """Open the project as a manager does, since the walk goes over more of its pages than those of studies."""
    return learning.open_crowd(manager, price_per_label="0.10", money_limit="100.00", currency="GBP")


def sign_in(page, live_server, person, size=DESK, scheme="light"):
    client = browser_of(person)
    session = client.cookies[site.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": site.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)


def sound(page, name):
    if KEEP:
        page.screenshot(path=Path(KEEP) / f"studies-{name}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


def test_a_study_by_keys_alone(page, live_server, server, crowd, manager):
    keys = Keyboard(page)
    sign_in(page, live_server, manager)
    page.goto(live_server.url + reverse("annotation:people", args=[crowd.slug]))
    keys.follow(page.get_by_role("link", name="Studies on Prolific"))
    keys.type(page.get_by_label("API token"), TOKEN)
    keys.type(page.get_by_label("Fee in percent"), "50")
    keys.follow(page.get_by_role("button", name="Connect to Prolific"))
    expect(page.get_by_text("A token is stored. Fee: 50.00 percent.")).to_be_visible(timeout=30_000)
    keys.type(page.get_by_label("Description"), "Say what each means.")
    keys.type(page.get_by_label("Places"), "40")
    keys.type(page.get_by_label("Pay of a place"), "2.00")
    keys.type(page.get_by_label("Minutes"), "6")
    keys.follow(page.get_by_role("button", name="Open a draft"))
    expect(page.get_by_role("alert")).to_contain_text("exceeds the 100.00", timeout=30_000)
    sound(page, "refused")
    page.get_by_label("Places").fill("")
    keys.type(page.get_by_label("Places"), "4")
    keys.follow(page.get_by_role("button", name="Open a draft"))
    expect(page.get_by_text("20.00 GBP an hour at 6 minutes")).to_be_visible(timeout=30_000)
    study = turn(CrowdStudy.objects.get())
    page.reload()
    keys.follow(page.get_by_role("button", name="Publish"), key="Space")
    turn(study)
    ann = come(server, study, "ann")
    come(server, study, "bob", done=False)
    turn(study)
    page.reload()
    keys.follow(page.get_by_role("button", name="Approve 1 complete participation"))
    expect(page.get_by_text("1 participation is being approved.")).to_be_visible(timeout=30_000)
    turn(study)
    page.reload()
    keys.type(page.get_by_label("Message"), "Please return it: no answer came.")
    keys.follow(page.get_by_role("button", name="Tell the participant"))
    expect(page.get_by_text("Prolific is being asked.")).to_be_visible(timeout=30_000)
    keys.type(page.get_by_label("Bonuses"), f"{ann.user.username},1.50")
    keys.follow(page.get_by_role("button", name="Give the bonuses"))
    expect(page.get_by_text("The bonuses are being paid.")).to_be_visible(timeout=30_000)
    turn(study)
    assert sorted(CrowdVerdict.objects.values_list("kind", "state")) == [("APPROVE", "done"), ("RETURN", "done")]
    assert BonusSheet.objects.get().state == "paid"
    assert server.wallet == 100_000 - 200 - 150
    page.reload()
    keys.follow(page.get_by_role("button", name="Stop for good"))
    turn(study)
    page.reload()
    expect(page.get_by_text("waiting for your decisions")).to_be_visible(timeout=30_000)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "light"), (PHONE, "dark"), (SMALL, "dark")])
def test_the_pages_are_sound(page, live_server, server, published, crowd, manager, size, scheme):
    for name in ("ann", "bob"):
        come(server, published, name)
    server.come(published.external_id, "gone", state="RETURNED")
    turn(published)
    published.bonus_sheets.create(created_by=manager, state="unclear", external_id="s", paying_at=published.created_at)
    sign_in(page, live_server, manager, size, scheme)
    named = f"{size['width']}-{scheme}"
    for name, arguments in (("studies", [crowd.slug]), ("study", [crowd.slug, published.pk])):
        page.goto(live_server.url + reverse(f"prolific:{name}", args=arguments))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        sound(page, f"{name}-{named}")
