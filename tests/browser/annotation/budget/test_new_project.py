"""A new project joins a population by keys alone, on a screen of 320 pixels."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Project
from privacy.ledger.selectors import quota_of
from tests import axe
from tests.factories import make_opener, open_population
from tests.keyboard import Keyboard

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "correct horse battery"


def test_a_new_project_joins_by_keys_alone(page: Page, live_server):
    owner = make_opener("ada", password=PASSWORD)
    population = open_population(
        name="Patients of the three clinics in the north", epsilon_limit=8.0, delta_limit=1e-5, owner=owner
    )
    keys = Keyboard(page)
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(live_server.url + reverse("annotation:new_project"))
    keys.type(page.get_by_label("User name or email"), "ada")
    keys.type(page.get_by_label("Password"), PASSWORD)
    keys.submit()
    keys.follow(page.get_by_role("button", name="Choose Pool, expert labels"))
    keys.type(page.get_by_label("Name", exact=True), "Notes")
    keys.type(page.get_by_label("Question", exact=True), "Is it urgent?")
    keys.reach(page.get_by_label("Classes", exact=True))
    page.keyboard.type("yes\nno")
    keys.follow(page.get_by_text("Advanced: everything else has a default"))
    keys.reach(page.get_by_role("radio", name="none: outside any common limit"))
    page.keyboard.press("ArrowDown")
    assert page.get_by_role("radio", name=population.plain_label).is_checked()
    keys.type(page.get_by_label("Records of one person, at most"), "2")
    assert not axe.violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    keys.follow(page.get_by_role("button", name="Open project"))
    expect(page.get_by_text("Project opened.")).to_be_visible(timeout=30_000)
    quota = quota_of(Project.objects.get().pool_account)
    assert (quota.population, quota.records_per_person) == (population, 2)
