from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import expect

from annotation.models import Job, Project, Role
from annotation.people.services import members
from dpal_site.embedded.processes import Supervisor
from learner.simulation import plan_setups, services
from privacy.ledger.selectors import guarantee
from tests.axe import problems_of
from tests.clients import browser_of
from tests.factories import make_user, open_preset

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# By how many pixels each tick's words lie within their picture, on the side where they come nearest to its edge.
WORDS_FROM_THE_EDGES = """() => [...document.querySelectorAll("figure.chart text")].map((text) => {
  const [words, picture] = [text, text.closest("svg")].map((element) => element.getBoundingClientRect());
  return Math.min(words.left - picture.left, picture.right - words.right);
})"""

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def page_of(browser: "Browser", live_site: Supervisor, user: User) -> "Page":
    client = browser_of(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    context = browser.new_context(java_script_enabled=False, viewport={"width": 320, "height": 640})
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])
    return context.new_page()


@pytest.fixture
def project() -> Project:
    ada, grace = make_user("ada"), make_user("grace")
    opened = open_preset(
        ada,
        "pool-experts",
        name="Letters",
        data_kind="text",
        classes=["yes", "no"],
        question="Is it?",
        feature_dimension=8,
    )
    members.add_member(project=opened, user=grace, role=Role.MANAGER)
    return opened


@pytest.mark.slow
def test_a_plan_is_drawn_with_its_numbers(page: "Page", live_site: Supervisor, project: Project) -> None:
    ada = User.objects.get(username="ada")
    setup, epsilon = plan_setups.setup_of(project, 300), plan_setups.total_epsilon(project)
    services.start_simulation(project=project, setup=setup, epsilon=epsilon, owner=ada)
    services.run_simulation(job_id=str(Job.objects.get(kind="simulate").pk))
    client = browser_of(ada)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_site.url}])
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(live_site.url + reverse("learner:plan", args=[project.slug]) + "?records=300")
    expect(page.locator("figure.chart svg")).to_have_count(1)
    # On a phone the words of a chart are as large as those beside it.
    size = page.locator("figure.chart text").first.evaluate("text => text.getBoundingClientRect().height")
    assert size > 9
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 640})
        assert min(page.evaluate(WORDS_FROM_THE_EDGES)) >= 4
    for link in page.get_by_role("link", name="Picture (SVG)").all():
        assert page.request.get(f"{live_site.url}{link.get_attribute('href')}").status == 200
    expect(page.locator("table")).to_have_count(1)
    assert problems_of(page) == []


def test_a_higher_limit_is_asked_for_and_approved_without_javascript(
    browser: "Browser", live_site: Supervisor, project: Project
) -> None:
    ada, grace = (page_of(browser, live_site, User.objects.get(username=name)) for name in ("ada", "grace"))
    requests = live_site.url + reverse("annotation:limit_requests", args=[project.slug])
    ada.goto(requests)
    ada.get_by_role("button", name="Require a second manager").click()
    ada.get_by_role("button", name="Ask to decide alone").wait_for()
    ada.goto(live_site.url + reverse("annotation:change_limit", args=[project.slug, project.pool_account_id]))
    ada.check("[name=level][value=loose]")
    ada.fill("[name=reason]", "one more model")
    ada.get_by_role("button", name="Change the limit").click()
    ada.get_by_role("button", name="Take back").wait_for()
    expect(ada.get_by_role("button", name="Approve")).to_have_count(0)
    assert guarantee(project.pool_account).epsilon_limit == 2
    grace.goto(requests)
    assert "one more model" in grace.locator("main").inner_text()
    grace.get_by_role("button", name="Approve").click()
    grace.get_by_role("heading", name="Decided").wait_for()
    expect(grace.locator("table")).to_have_count(1)
    project.pool_account.refresh_from_db()
    assert guarantee(project.pool_account).epsilon_limit == 4
    for one in (ada, grace):
        one.context.close()
