"""Parts of pages that are asked for again and again are sent only where they differ."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.people.services import members
from tests import learning
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
    client = Client()
    client.force_login(owner)
    first = client.get(address)
    tag = tag_of(first.content.decode())
    again = client.get(address, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (204, b"")
    members.add_member(project=project, user=make_user(), role=Role.ANNOTATOR)
    learning.work_off(project)
    changed = client.get(address, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert tag_of(changed.content.decode()) != tag


def test_a_tag_says_nothing_to_who_has_not_the_key(settings):
    owner = make_user()
    project = learning.open_trusted(owner, selection="random")
    client = Client()
    client.force_login(owner)
    address = reverse("learner:card", args=[project.slug])
    tag = tag_of(client.get(address).content.decode())
    settings.SECRET_KEY = "another key of the same length"
    client.force_login(owner)
    assert tag_of(client.get(address).content.decode()) != tag
