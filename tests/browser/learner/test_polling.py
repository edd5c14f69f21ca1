"""A part of a page sent anew takes nothing from the reader: what is open, where the focus is, what was typed."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect

from tests import axe, learning
from tests.factories import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# What the clock does every fifteen seconds.
AGAIN = """() => {
  const part = document.querySelector("[hx-select]");
  part.dataset.old = "yes";
  return htmx.ajax("GET", location.href, {source: part, target: part, swap: "outerHTML",
    select: part.getAttribute("hx-select"), headers: JSON.parse(part.getAttribute("hx-headers"))});
}"""


def test_a_new_part_leaves_what_is_open_the_focus_and_what_was_typed(page, live_server):
    owner = make_user()
    project = learning.open_trusted(owner, selection="random")
    learning.fill_trusted(project)
    client = Client()
    client.force_login(owner)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page.goto(live_server.url + reverse("learner:dashboard", args=[project.slug]))
    opened = page.locator("#table-spending")
    opened.locator("summary").click()
    expect(opened).to_have_attribute("open", "")
    field = "<input id=typed aria-label=typed value=half>"
    page.evaluate("field => document.querySelector('main').insertAdjacentHTML('beforeend', field)", field)
    page.evaluate("document.querySelector('#typed').value = 'half of it'")
    # Nothing new: the part stays the very same.
    page.evaluate(AGAIN)
    page.wait_for_timeout(200)
    expect(page.locator("#numbers")).to_have_attribute("data-old", "yes")
    learning.run_to_release(project, make_user(), version=1)
    page.evaluate(AGAIN)
    expect(page.locator("#numbers")).not_to_have_attribute("data-old", "yes")
    expect(opened).to_have_attribute("open", "")
    expect(opened.locator("summary")).to_be_focused()
    expect(page.locator("#typed")).to_have_value("half of it")
    assert axe.violations(page) == []
