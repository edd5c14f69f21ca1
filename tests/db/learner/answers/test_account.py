import json

import numpy as np
import pytest
from django.db import connection

from annotation.budget.presenters import budget_sheets
from dpal.recompute import recompute
from dpal.recompute.transcript import Transcript
from learner.estimators.catalogue import CHOICES
from learner.estimators.choice import ConvexChoice
from learner.linear_model import LinearModel
from learner.pools.configuration import estimator_choice_of, estimator_of, featurizer_of
from learner.pools.selectors import training_event
from learner.releases import storage
from learner.simulation.plan_setups import setup_of
from learner.simulation.setup import Training
from privacy.accounting.events import Event, LabelTrainingEvent, event_from_json
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.rules import charge_of, price
from tests import learning
from tests.factories import make_user
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)
# Gaussian noise has a delta, which the account of the answers has not.
CROWD_ESTIMATORS = sorted(
    choice.name for choice in CHOICES if issubclass(choice, ConvexChoice) and "crowd" in choice.sound.oracles
)


def worth_of_another_answer(name: str, event: Event) -> float:
    training = event.inner if isinstance(event, LabelTrainingEvent) else event
    logistic = name.startswith("logistic")
    return training.cost(adjacency="null" if logistic else "replace").epsilon


@pytest.mark.parametrize("estimator", CROWD_ESTIMATORS)
def test_the_account_is_charged_for_an_answer_replaced_by_another(estimator):
    """The attack: 2 for a row left out was charged where an answer turned round is worth up to 4."""
    project = learning.open_crowd(make_user(), estimator=estimator, training_epsilon=2.0)
    account, event = project.labels_account, training_event(project)
    assert (account.unit, account.adjacency) == ("answer", "replace")
    charged = (price(account, event).epsilon_nano or 0) / 1e9
    assert charged >= worth_of_another_answer(estimator, event) - 1e-8
    # What a training costs is what the project says, whatever its loss: the noise is as long as that takes.
    assert charged == pytest.approx(2.0, abs=1e-6)
    setup, choice = setup_of(project, 100), estimator_choice_of(project)
    assert setup.training == Training(2.0, "null" if estimator.startswith("logistic") else "replace")
    assert type(choice).of(setup.declared) == choice


def test_a_training_is_charged_audited_and_said_for_one_answer():
    owner, annotator = make_user(), make_user()
    project = learning.open_crowd(owner)
    learning.fill_crowd(project)
    release = learning.run_to_release(project, annotator, version=1)
    reserved = release.entry.parent
    event = event_from_json(reserved.event)
    assert (reserved.mechanism, reserved.account) == ("label_training", project.labels_account)
    assert event == LabelTrainingEvent(
        estimator_of(project, featurizer_of(project)).event_for(featurizer_of(project).dimension), "logistic"
    )
    assert reserved.epsilon_nano == charge_of(event, adjacency="replace").epsilon_nano
    assert all(
        not verdict.differing
        for verdict in audit_accounts(scope=project.labels_account.scope, marks=site_counter().marks())
    )
    with storage.open_file(release=release, name="card.md") as file:
        card = file.read().decode()
    assert "two data sets that differ in one answer, replaced by another" in card
    assert "several answers of one annotator together, beyond as many times the limit of one answer" in card
    with storage.open_file(release=release, name="privacy.json") as file:
        (answers,) = (one for one in json.load(file)["accounts"] if one["unit"] == "answer")
    assert answers["neighbouring_data_sets"] == "two data sets that differ in one answer, replaced by another"


def test_an_account_from_before_says_what_an_answer_is_worth_there():
    owner = make_user()
    earlier = ledger.open_account(
        scope="earlier",
        label="earlier labels",
        unit="record",
        filter="pure",
        epsilon_limit=8.0,
        delta_limit=0.0,
        actor=owner,
        reason="opened long ago",
    )
    project = learning.open_crowd(owner)
    with as_owner(), connection.cursor() as cursor:
        # The database did not know then what belongs together.
        cursor.execute("ALTER TABLE annotation_project DISABLE TRIGGER annotation_project_answers_account")
        type(project).objects.filter(pk=project.pk).update(labels_account=earlier)
        cursor.execute("ALTER TABLE annotation_project ENABLE TRIGGER annotation_project_answers_account")
    project.refresh_from_db()
    (sheet,) = (one for one in budget_sheets(project) if one.account == earlier)
    assert "whether an answer was given (ε 8.000) and which one (ε 16.000)" in sheet.promise
    event = training_event(project)
    assert not isinstance(event, LabelTrainingEvent)
    assert price(earlier, event).epsilon_nano == charge_of(event, adjacency="null").epsilon_nano


@pytest.mark.parametrize("estimator", CROWD_ESTIMATORS)
def test_a_later_training_is_picked_beside_the_release_before_at_the_same_price(estimator):
    owner, annotator = make_user(), make_user()
    project = learning.open_crowd(owner, estimator=estimator, training_epsilon=2.0)
    learning.fill_crowd(project)
    first = learning.run_to_release(project, annotator, version=1)
    second = learning.run_to_release(project, annotator, version=2)
    events = [event_from_json(release.entry.parent.event) for release in (first, second)]
    assert [event.kind for event in events] == ["label_training"] * 2
    assert events[1].inner.kind == "picked_fit"
    assert second.entry.parent.epsilon_nano == pytest.approx(first.entry.parent.epsilon_nano, abs=1_000)
    with storage.open_file(release=second, name="transcript.json") as file:
        transcript = Transcript.from_json(json.load(file))
    assert transcript.program == "picked"
    np.testing.assert_array_equal(transcript.parameters["coef"], LinearModel.from_json(first.weights).coef)
    np.testing.assert_array_equal(recompute(transcript).coef, LinearModel.from_json(second.weights).coef)
