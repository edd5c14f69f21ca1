"""A group made and filled by keyboard on a phone; who is taken out of it while a question is open answers no more."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect

from annotation.models import Label, Query, Role
from annotation.models.groups import PeopleGroup
from annotation.people.services import groups
from tests.axe import violations
from tests.factories import make_project, make_user, open_records

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def enter(page, live_server):
    """Give the browser a session of the person."""

    def log_in(user):
        client = Client()
        client.force_login(user)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        page.context.clear_cookies()
        page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])

    return log_in


def test_a_group_is_filled_by_keyboard_and_who_leaves_is_out_in_the_middle_of_a_question(
    page, live_server, enter
) -> None:
    root, ann = make_user("root", is_staff=True, is_superuser=True), make_user("ann")
    project = make_project(name="Messages")
    (query,) = open_records(project, 1)
    page.set_viewport_size({"width": 320, "height": 640})
    enter(root)
    page.goto(live_server.url + reverse("annotation:groups"))
    page.get_by_label("Name of the group").focus()
    page.keyboard.type("Night shift")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Night shift").wait_for()
    page.get_by_label("User names or email addresses").focus()
    page.keyboard.type("ann")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("1 person is new in the group.")
    assert violations(page) == []

    group = PeopleGroup.objects.get()
    groups.give_role(group=group, project=project, role=Role.ANNOTATOR)
    enter(ann)
    page.goto(live_server.url + reverse("annotation:label", args=[project.slug]))
    page.locator("#answer").wait_for()
    groups.remove_people(group=group, people=[ann], actor="root")
    with page.expect_response(lambda answer: answer.request.method == "POST") as posted:
        page.keyboard.press("1")
    assert posted.value.status == 404
    assert not Label.objects.exists()
    assert Query.objects.get(pk=query.pk).open_slots == 1
    page.reload()
    expect(page.locator("[data-reason]")).to_contain_text("not one of its annotators")
