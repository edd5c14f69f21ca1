import pytest
from django.urls import reverse

from annotation.work.services.tokens import Scope
from learner.dashboard.guidance import guidance_for
from learner.pools.selectors import question_counts
from tests import learning
from tests.clients import program_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
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
