import pytest
from django.utils import timezone

from annotation.budget import charges
from annotation.models import Job, Role, WorkState
from tests import learning
from tests.factories import add_members, make_user
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(manager):
    return learning.open_crowd(manager)


@pytest.fixture
def dataset(project):
    return learning.upload(project, [["play jazz", "a"], ["play jazz", "b"]], ["text", "contributor"])


def test_after_a_gate_that_failed(project, dataset, manager):
    ask = Program(manager, project)
    path = f"datasets/{dataset.pk}/gate"
    refused = ask("POST", path, {})
    assert (refused.status_code, refused.json()["code"]) == (
        422,
        "This upload already went through the gate, or is in it.",
    )
    ended = {"state": WorkState.FAILED, "finished_at": timezone.now(), "error": "It did not end well."}
    Job.objects.filter(kind="gate").update(**ended)
    dataset.refresh_from_db()
    price = charges.gate_charge(project, dataset)
    dear = ask("POST", path, {"most_epsilon": price.epsilon / 2})
    assert (dear.status_code, dear.json()["parameters"]) == (422, {"epsilon": pytest.approx(price.epsilon, rel=1e-5)})
    engineer = make_user()
    add_members(project, engineer, role=Role.ENGINEER)
    assert Program(engineer, project)("POST", path, {}).status_code == 403
    other = make_user()
    assert Program(other, learning.open_crowd(other))("POST", path, {}).status_code == 404
    assert Job.objects.filter(kind="gate").count() == 1
    again = ask("POST", path, {"most_epsilon": price.epsilon}, key="k")
    assert again.status_code == 202
    assert ask("POST", path, {"most_epsilon": price.epsilon}, key="k").json() == again.json()
    assert Job.objects.filter(kind="gate").count() == 2
