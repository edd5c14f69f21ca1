import pytest

from learner.dashboard.guidance import ActKind, guidance_for
from learner.dashboard.guidance_api import SENT_BY_REST
from tests.programs import Program
from tests.web.learner.guidance import test_buttons as scenes

pytestmark = pytest.mark.django_db(transaction=True)
# Scenes whose first act is one that is sent, and one for each kind.
SENT = {
    scenes.archived: ActKind.TAKE_OUT_OF_ARCHIVE,
    scenes.paused: ActKind.RESUME,
    scenes.set_aside_without_a_label: ActKind.PAUSE,
    scenes.gate_failed: ActKind.GATE_AGAIN,
    scenes.cancelled_round: ActKind.START_ANEW,
    scenes.block_answered: ActKind.CLOSE_BLOCK,
    scenes.few_labels: ActKind.TRAIN_ON_FEW,
    scenes.nobody: ActKind.ANSWER_MYSELF,
    scenes.held_back: ActKind.CHECK_AGAIN,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scene", SENT, ids=lambda scene: scene.__name__)
def test_the_route_moves_the_project_on(scene):
    found = scene()
    ask = Program(found.manager, found.project)
    before = ask("GET", "next-step").json()
    act = next(one for one in before["acts"] if one["kind"] == SENT[scene])
    answered = ask("POST", act["route"].removeprefix(f"projects/{found.project.slug}/"), act["body"])
    assert answered.status_code in (200, 201, 202)
    if act["epsilon"]:
        assert act["body"].get("most_epsilon", act["epsilon"]) == act["epsilon"]
    after = guidance_for(type(found.project).objects.get(pk=found.project.pk))
    assert (after.blocker, after.status.step) != (before["waits_for"], before["step"])


def test_every_button_that_has_a_route_is_tried():
    assert set(SENT.values()) == set(SENT_BY_REST)
