import pytest

from annotation.models import Project, Role
from annotation.models.history import Action
from tests.factories import add_members, make_user, open_preset
from tests.programs import Program

pytestmark = pytest.mark.django_db
STREAM = {"oracle": "trusted", "arrival": "stream", "privacy_unit": "record"}


@pytest.fixture
def project(manager):
    return open_preset(
        manager,
        "pool-experts",
        name="Letters",
        data_kind="text",
        classes=["yes", "no"],
        question="Is it?",
        pool_epsilon=10.0,
        pool_delta=5e-5,
    )


@pytest.fixture
def ask(project, manager):
    return Program(manager, project)


def test_a_look_stores_nothing_and_the_second_step_does(ask, project, manager):
    looked = ask("POST", "kind/preview", STREAM).json()
    changes = {row["setting"]: (row["before"], row["after"]) for row in looked["changes"]}
    assert (changes["arrival"], looked["preset"], looked["why_not"]) == (("pool", "stream"), "fraud-stream", [])
    assert Project.objects.get(pk=project.pk).arrival == "pool"
    assert not Action.objects.exists()
    chosen = ask("POST", "kind", STREAM)
    assert chosen.status_code == 200
    assert chosen.json()["version"] == 2
    project.refresh_from_db()
    assert (project.arrival, project.preset, project.selection) == ("stream", "fraud-stream", "bernoulli_screen")
    assert (project.changes.get().actor, Action.objects.get().route) == ("manager", "api:change_kind")


def test_managers_alone(project):
    person = make_user()
    add_members(project, person, role=Role.ENGINEER)
    asked = Program(person, project)
    assert {asked("POST", path, STREAM).status_code for path in ("kind", "kind/preview")} == {404}
