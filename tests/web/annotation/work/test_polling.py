import re

import pytest
from django.urls import reverse

from annotation.models import Role
from annotation.people.services import members
from learner.dashboard.guidance import guidance_for
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def tag_of(html: str) -> str:
    return re.search(r'"If-None-Match": "([0-9a-f]+)"', html).group(1)


@pytest.mark.parametrize("name", ["next_step", "standing", "card"])
def test_what_stands_on_the_page_already_is_not_sent_again(name):
    owner = make_user()
    project = learning.open_trusted(owner, selection="random")
    learning.fill_trusted(project)
    address = reverse(f"learner:{name}", args=[project.slug])
    client = browser_of(owner)
    first = client.get(address)
    tag = tag_of(first.content.decode())
    again = client.get(address, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (204, b"")
    members.add_member(project=project, user=make_user(), role=Role.ANNOTATOR)
    learning.work_off(project)
    changed = client.get(address, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert tag_of(changed.content.decode()) != tag


# Statements of a poll that finds nothing new: session, person, membership and what moves the page's numbers.
PAGES = {
    "learner:overview": 8,
    "learner:dashboard": 18,
    "learner:releases": 14,
    "annotation:budget": 12,
    "annotation:data": 9,
    "annotation:quality": 12,
}


def poll(client, address, tag=""):
    return client.get(address, headers={"HX-Request": "true"} | ({"If-None-Match": tag} if tag else {}))


def test_numbers_of_pages_move_by_themselves_for_a_few_statements(django_assert_max_num_queries):
    owner, annotator = make_user(), make_user()
    project = learning.open_trusted(owner, selection="random")
    learning.fill_trusted(project)
    client = browser_of(owner)
    shown = {name: reverse(name, args=[project.slug]) for name in PAGES}
    tags = {name: tag_of(client.get(address).content.decode()) for name, address in shown.items()}
    for name, address in shown.items():
        with django_assert_max_num_queries(PAGES[name]):
            assert poll(client, address, tags[name]).status_code == 204, name
    learning.run_to_release(project, annotator, version=1)
    for name, address in shown.items():
        changed = poll(client, address, tags[name])
        assert changed.status_code == 200, name
        part = re.search(r'hx-select="#(\w+)"', changed.content.decode()).group(1)
        assert f'id="{part}"' in changed.content.decode()


def test_an_engineer_is_not_told_by_a_poll_that_somebody_answered():
    owner, engineer = make_user(), make_user()
    project = learning.open_trusted(owner, selection="random")
    learning.fill_trusted(project)
    members.add_member(project=project, user=engineer, role=Role.ENGINEER)
    learning.work_off(project)
    address = reverse("learner:dashboard", args=[project.slug])
    people = {person: browser_of(person) for person in (owner, engineer)}
    tags = {person: tag_of(client.get(address).content.decode()) for person, client in people.items()}
    assert learning.label_everything(project, make_user(), at_most=1) == 1
    assert [poll(people[person], address, tags[person]).status_code for person in (owner, engineer)] == [200, 204]


def test_a_poll_leaves_what_was_said_for_the_next_page():
    owner = make_user()
    project = learning.open_trusted(owner, selection="random")
    client = browser_of(owner)
    client.post(
        reverse("annotation:settings", args=[project.slug]),
        {"name": project.name, "question": project.question, "lease_seconds": 900},
    )
    address = reverse("annotation:budget", args=[project.slug])
    said = '<ul class="messages">'
    assert said not in poll(client, address).content.decode()
    assert said in client.get(address).content.decode()


def test_a_card_says_where_a_project_stands_and_to_managers_alone_what_it_waits_for():
    owner, engineer = make_user(), make_user()
    project = learning.open_trusted(owner, selection="random")
    members.add_member(project=project, user=engineer, role=Role.ENGINEER)
    address = reverse("learner:card", args=[project.slug])
    for person, manages in ((owner, True), (engineer, False)):
        page = browser_of(person).get(address).content.decode()
        assert 'class="stands"' in page
        assert (guidance_for(project).sentence in page) == manages


def test_a_tag_says_nothing_to_who_has_not_the_key(settings):
    owner = make_user()
    project = learning.open_trusted(owner, selection="random")
    client = browser_of(owner)
    address = reverse("learner:card", args=[project.slug])
    tag = tag_of(client.get(address).content.decode())
    settings.SECRET_KEY = "another key of the same length"
    client.force_login(owner)
    assert tag_of(client.get(address).content.decode()) != tag
