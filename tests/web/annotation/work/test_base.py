import pytest
from django.test import Client
from django.urls import reverse

from annotation.work.services.tokens import Scope
from tests.clients import program_of
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db
SENTENCE = "This token lacks the scope {scope}. Make one that has it at {address}."


def test_a_token_without_the_scope_is_told_which_and_where_to_make_another():
    manager = make_user()
    project = make_project(owner=manager)
    client = program_of(manager, Scope.LABELS_READ)
    where = f"http://testserver{reverse('annotation:tokens')}"
    parameters = {"scope": "models:read", "address": where}
    listed = client.get(f"/api/v1/projects/{project.slug}/models")
    assert listed.status_code == 403
    assert listed.json()["detail"] == SENTENCE.format(**parameters)
    assert (listed.json()["code"], listed.json()["parameters"]) == (SENTENCE, parameters)
    hub = client.get(f"/api/models/dpal/{project.slug}")
    assert hub.status_code == 403
    assert hub.headers["X-Error-Message"] == SENTENCE.format(**parameters)
    assert Client().get(where).status_code == 302, "somebody who is logged in makes one there"
