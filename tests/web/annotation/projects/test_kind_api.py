import pytest

from annotation.models import Project
from annotation.models.history import Action
from tests.factories import open_preset

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
