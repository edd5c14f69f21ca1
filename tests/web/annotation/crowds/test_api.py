"""Studies by REST: where they stand and what they cost, for managers."""

from datetime import timedelta

import pytest

from annotation.models import Role
from annotation.people.services import tokens
from annotation.people.services.tokens import Scope
from tests.factories import add_members, make_user
from tests.prolific_server import TOKEN
from tests.studies import come, turn

pytestmark = pytest.mark.django_db


def ask(client, project, person, scope=Scope.PROJECTS_READ):
    _, secret = tokens.create_token(user=person, name="t", scopes=[scope], lifetime=timedelta(days=1))
    return client.get(f"/api/v1/projects/{project.slug}/studies", headers={"Authorization": f"Bearer {secret}"})


def test_a_manager_reads_where_studies_stand(server, published, crowd, manager, client):
    come(server, published, "ann")
    server.faults.append(("GET", ".*/submissions/", 500))
    turn(published)
    (found,) = ask(client, crowd, manager).json()
    assert found["study"] == published.pk
    assert (found["state"], found["places"], found["places_taken"], found["approved"]) == ("ACTIVE", 4, 1, 0)
    assert (found["pay_per_place"], found["pay_per_hour"]) == ("2.00", "20.00")
    assert (found["cost_so_far"], found["promised_at_most"]) == ("0.00", "12.00")
    assert found["fault"] == "Prolific has a fault of its own (HTTP 500)."
    assert found["fault_as_code"]["parameters"] == {"status": 500}


def test_nobody_else_reads_them_and_nobody_reads_the_token(server, published, crowd, manager, client):
    assert TOKEN not in ask(client, crowd, manager).content.decode()
    assert ask(client, crowd, manager, Scope.LABELS_READ).status_code == 403
    ann = make_user()
    add_members(crowd, ann, role=Role.ENGINEER)
    assert ask(client, crowd, ann).status_code == 404
