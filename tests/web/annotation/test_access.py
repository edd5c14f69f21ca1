import re

import pytest
from django.urls import reverse

from annotation.models import Role
from tests import learning
from tests.clients import browser_of
from tests.factories import add_members, make_user

pytestmark = pytest.mark.django_db
TABS = ("overview", "dashboard", "budget", "data", "labelling", "people", "quality", "releases", "settings")
SEEN_BY_ENGINEERS = ("overview", "dashboard", "budget", "releases")


@pytest.fixture
def project(remembered):
    return learning.begin_experts(remembered, released=True)


def tabs_of(page):
    nav = re.search(r'<nav class="tabs".*?</nav>', page, re.S)
    assert nav, "the page has tabs"
    return {address.rstrip("/").rsplit("/", 1)[-1]: address for address in re.findall(r'href="([^"]+)"', nav[0])}


def pages_of(project):
    names = ("learner:dashboard", "annotation:budget", "annotation:statement", "learner:releases")
    return [*(reverse(name, args=[project.slug]) for name in names), reverse("learner:release", args=[project.slug, 1])]


def client_with(project, role):
    person = make_user()
    add_members(project, person, role=role)
    return browser_of(person)


def test_an_engineer_sees_no_tab_that_leads_nowhere(project):
    client = client_with(project, Role.ENGINEER)
    for page in pages_of(project):
        tabs = tabs_of(client.get(page, follow=True).content.decode())
        assert tuple(tabs) == SEEN_BY_ENGINEERS, page
    assert {name: client.get(tab, follow=True).status_code for name, tab in tabs.items()} == dict.fromkeys(tabs, 200)


def test_a_manager_has_every_tab_on_every_page(project):
    client = client_with(project, Role.MANAGER)
    tabs = tabs_of(client.get(reverse("annotation:settings", args=[project.slug])).content.decode())
    for page in [*pages_of(project), reverse("annotation:review", args=[project.slug]), *tabs.values()]:
        assert tuple(tabs_of(client.get(page, follow=True).content.decode())) == TABS, page
