import pytest
from django.urls import reverse

from annotation.work.services.tokens import Scope
from learner.dashboard.guidance import ActKind, guidance_for
from learner.dashboard.guidance_api import SENT_BY_REST
from learner.pools.selectors import question_counts
from tests import learning
from tests.clients import program_of
from tests.factories import make_user
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


SCOPES = [Scope.PROJECTS_READ, Scope.LEDGER_READ, Scope.MODELS_READ, Scope.LABELS_READ]


@pytest.fixture
def owner(project):
    return project.created_by


@pytest.fixture
def project(remembered):
    return remembered("answers for a second version", between_versions)


def between_versions():
    opened = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(opened)
    annotator = make_user()
    learning.run_to_release(opened, annotator, version=1)
    learning.work_off(opened)
    assert learning.label_everything(opened, annotator, at_most=5) == 5
    return opened


def rest(person, address: str):
    return program_of(person, *SCOPES).get(f"/api/v1/{address}")


def test_what_a_project_waits_for_by_rest(owner, project):
    told = rest(owner, f"projects/{project.slug}/next-step").json()
    way, counts = guidance_for(project), question_counts(project)
    assert (told["step"], told["waits_for"]) == (way.status.step, way.blocker) == ("labelling", "answers")
    assert told["sentence"] == way.sentence == "7 questions wait for answers."
    assert told["sentence_as_code"]["parameters"] == {"n": 7}
    assert (told["open"], told["done"]) == (counts.open, counts.newly_done) == (7, 5)
    assert [act["kind"] for act in told["acts"]] == ["label"]
    assert told["acts"][0]["page"] == reverse("annotation:label", args=[project.slug])


def test_acts_bring_their_price(owner):
    project = learning.open_secret(owner)
    learning.fill_trusted(project)
    learning.work_off(project)
    told = rest(owner, f"projects/{project.slug}/next-step").json()
    close = next(act for act in told["acts"] if act["kind"] == "close_block")
    assert close["epsilon"] == next(act.price.epsilon for act in guidance_for(project).acts if act.price is not None)
    assert told["goes_on_at"]
