import pytest

from annotation.models import Project, Role
from annotation.models.history import Action
from tests.factories import add_members, make_records, make_user, open_preset
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


def test_what_has_no_proof_is_refused_with_its_rule(ask, project):
    for sent, rule in (
        ({"oracle": "crowd"}, "nothing of a stream could pass it to a crowd"),
        ({"arrival": "pool", "preset": "voice-crowd"}, "another oracle or arrival"),
    ):
        for path in ("kind/preview", "kind"):
            refused = ask("POST", path, STREAM | sent)
            assert refused.status_code == 422
            assert rule in refused.json()["detail"]
    unit = STREAM | {"privacy_unit": "contributor"}
    assert any("a contributor may have many" in rule for rule in ask("POST", "kind/preview", unit).json()["why_not"])
    refused = ask("POST", "kind", unit)
    assert refused.status_code == 422
    assert "a contributor may have many" in refused.json()["detail"]
    assert not project.changes.exists()


def test_an_upload_hinders(ask, project):
    make_records(project, ["a red apple"])
    looked = ask("POST", "kind/preview", STREAM).json()
    assert "1 upload of records" in looked["why_not"][0]
    assert len(looked["why_not_as_code"]) == len(looked["why_not"])
    refused = ask("POST", "kind", STREAM)
    assert refused.status_code == 409
    assert looked["why_not"][0] in refused.json()["detail"]


def test_managers_alone(project):
    person = make_user()
    add_members(project, person, role=Role.ENGINEER)
    asked = Program(person, project)
    assert {asked("POST", path, STREAM).status_code for path in ("kind", "kind/preview")} == {404}
