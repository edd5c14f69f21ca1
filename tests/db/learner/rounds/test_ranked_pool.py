from decimal import Decimal

import numpy as np
import pytest

from annotation.budget.label_budget import questions_left
from annotation.models import Query
from annotation.questions.services import labelling
from learner.linear_model import LinearModel
from learner.models import Round
from learner.pools import selectors
from learner.pools.configuration import featurizer_of
from learner.rounds import next_step
from learner.rounds.next_step import Step
from learner.rounds.services import loop
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
NOTHING = {"labels_limit": None, "money_limit": None, "price_per_label": None, "currency": ""}


@pytest.fixture
def released(remembered):
    return remembered("a release of a crowd", released_crowd)


def released_crowd():
    project = learning.open_crowd(make_user())
    learning.fill_crowd(project)
    learning.run_to_release(project, make_user(), version=1)
    return project


def asked_in(number):
    return list(Query.objects.filter(round_number=number).order_by("-priority", "pk"))


def entropies(project, queries):
    model = LinearModel.from_json(selectors.latest_release(project).weights)
    featurizer = featurizer_of(project)
    X = np.vstack([featurizer.transform([query.text]) for query in queries]).astype(np.float32)
    mean = model.predict_proba(X)
    return -(mean * np.log(mean)).sum(axis=1)


def test_a_round_asks_the_most_uncertain(released):
    waiting = list(Query.objects.filter(state="unasked"))
    assert len(waiting) > 8
    loop.advance_project(project_id=released.pk)
    second = Round.objects.latest("number")
    assert second.strategy == "uncertainty"
    loop.run_round(round_id=second.pk)
    found = dict(zip([query.pk for query in waiting], entropies(released, waiting), strict=True))
    asked = {query.pk for query in asked_in(2)}
    assert len(asked) == 8
    assert min(found[pk] for pk in asked) >= max(found[pk] for pk in found.keys() - asked) - 1e-6


@pytest.mark.slow
def test_the_budget_in_money_ends_a_round_early_and_then_the_project_stops(released):
    given = Query.objects.exclude(state="unasked").count()
    limits = {"money_limit": Decimal("0.05") * (given + 3), "price_per_label": Decimal("0.05"), "currency": "EUR"}
    labelling.set_label_budget(project=released, **NOTHING | limits)
    released.refresh_from_db()
    assert questions_left(released) == 3
    loop.advance_project(project_id=released.pk)
    loop.run_round(round_id=Round.objects.latest("number").pk)
    assert len(asked_in(2)) == 3
    assert questions_left(released) == 0
    assert learning.label_everything(released, make_user()) == 3
    learning.work_off(released)
    # Three answers are fewer than a training is declared to take.
    assert next_step.project_status(released).step == Step.FEW_LABELS
    loop.train_on_few(project=released)
    learning.work_off(released)
    assert released.releases.filter(version=2).exists()
    assert next_step.project_status(released).step == Step.LABELS_SPENT
    assert Round.objects.count() == 2


def test_a_limit_that_is_lowered_while_a_round_waits_is_kept(released):
    """The round was opened for eight questions; by the time a worker takes it, two are paid for, then none."""
    loop.advance_project(project_id=released.pk)
    waiting = Round.objects.latest("number")
    assert waiting.requested == 8
    given = Query.objects.exclude(state="unasked").count()
    labelling.set_label_budget(project=released, **NOTHING | {"labels_limit": given + 2})
    loop.run_round(round_id=waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.selected, len(asked_in(2))) == ("done", 2, 2)
