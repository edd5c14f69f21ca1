import re

import pytest
from django.urls import reverse
from django.utils import translation

from annotation.models import Consensus, Query, QueryState
from annotation.people.services import limits
from annotation.questions.services import queue
from annotation.wording import localized
from learner.models import ModelRelease
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.clients import browser_of
from tests.factories import add_members, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner():
    return make_user()


@pytest.fixture
def short_of_money(owner):
    project = learning.open_trusted(
        owner, selection="random", round_size=30, labels_per_release=12, pool_epsilon=3.0, maximum_releases=None
    )
    learning.fill_trusted(project)
    return project


def overview_of(project, person) -> str:
    client = browser_of(person)
    return client.get(reverse("learner:overview", args=[project.slug])).content.decode()


def test_answers_keep_coming_when_no_model_can_be_paid_and_the_page_says_why(short_of_money, owner):
    project, person = short_of_money, make_user()
    learning.work_off(project)
    learning.label_everything(project, person, at_most=12)
    learning.work_off(project)
    learning.label_everything(project, person, at_most=12)
    assert loop.advance_project(project_id=project.pk).step == Step.CANNOT_PAY
    assert ModelRelease.objects.count() == 1
    before = Consensus.objects.count()
    open_before = Query.objects.filter(state=QueryState.OPEN).count()
    add_members(project, other := make_user())
    assert queue.claim_next(project=project, user=other) is not None
    assert learning.label_everything(project, person, at_most=3) == 3
    assert Consensus.objects.count() == before + 3
    project.refresh_from_db()
    status = project_status(project)
    assert f"too little for the next model. Answers are kept; {open_before - 3} questions are open." in status.sentence
    left = guarantee(project.pool_account)
    assert re.search(r"has \d+\.\d{3} epsilon and [\d.e-]+ delta left, too little for", status.sentence)
    assert "epsilon=" not in status.sentence
    said = left.left_said.parameters
    assert left.epsilon_left - 0.001 < said["epsilon"] <= left.epsilon_left
    assert said["delta"] <= left.delta_left
    with translation.override("de"):
        assert re.search(r"hat noch \d+,\d{3} Epsilon und ", localized(status.sentence))
    page = overview_of(project, owner)
    assert status.sentence in page
    assert "No further model: the budget is too small." in page


def test_a_raised_limit_trains_on_everything_that_came_in_meanwhile(short_of_money, owner):
    project, person = short_of_money, make_user()
    learning.work_off(project)
    learning.label_everything(project, person, at_most=12)
    learning.work_off(project)
    learning.label_everything(project, person, at_most=15)
    assert loop.advance_project(project_id=project.pk).step == Step.CANNOT_PAY
    account = project.pool_account
    limits.change_limit(
        project=project, account=account, epsilon_limit=5, delta_limit=0, actor=owner, reason="one more model"
    )
    learning.work_off(project, version=2)
    assert list(ModelRelease.objects.order_by("version").values_list("version", "labels_used")) == [(1, 12), (2, 27)]
