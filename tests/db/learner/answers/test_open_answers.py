import json

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction

from annotation.budget.presenters import budget_sheets
from annotation.budget.services import statement_json
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Consensus, Membership, Project, Query
from annotation.projects.services import configuring
from annotation.projects.services.answers_accounts import open_answers_account
from annotation.questions.services import labels, queue
from annotation.review import services
from dpal.recompute import recompute
from dpal.recompute.transcript import Transcript
from learner.estimators.catalogue import CHOICES
from learner.estimators.choice import ConvexChoice
from learner.linear_model import LinearModel
from learner.models import ModelRelease
from learner.models.answers import AnswerSeries, RandomizedLabel
from learner.pools.configuration import estimator_choice_of, estimator_of, featurizer_of
from learner.pools.selectors import training_event
from learner.releases import storage
from learner.rounds import next_step
from learner.simulation.plan_setups import setup_of
from learner.simulation.setup import Training
from privacy.accounting.events import Event, LabelTrainingEvent, event_from_json
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.ledger.rules import charge_of, price
from tests import learning
from tests.clients import browser_of
from tests.factories import make_annotators, make_user, write_settings
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)
OPEN = {
    "label_randomizer": "not_secret",
    "estimator": "channel",
    "features": "static_encoder",
    "repeat_votes": False,
    "selection": "clustered_uncertainty",
}


def open_answers(**settings):
    return learning.open_crowd(make_user(), **(OPEN | settings))


def answer_all(project):
    for member in Membership.objects.filter(project=project, role="annotator"):
        while (held := queue.claim_next(project=project, user=member.user)) is not None:
            labels.submit_label(assignment=held, choice=learning.truth_of(held.query.text))


@pytest.fixture
def crowd():
    project = open_answers()
    learning.fill_crowd(project)
    make_annotators(project, 2)
    return project


def reach(project, version):
    for _ in range(4 * version):
        learning.work_off(project, version=version)
        release = ModelRelease.objects.filter(project=project, version=version).first()
        if release is not None:
            return release
        answer_all(project)
    raise AssertionError(f"version {version} was not released: {next_step.project_status(project)}")


def read(release, name):
    with storage.open_file(release=release, name=name) as file:
        return file.read().decode()


def test_models_are_trained_on_answers_as_they_are_and_nothing_but_the_gate_is_paid(crowd):
    assert crowd.labels_account is None
    release = reach(crowd, 2)
    assert release.state == "released"
    assert release.checks == dict.fromkeys(("entries", "ledger", "mechanism", "files"), "passed")
    (paid,) = LedgerEntry.objects.filter(kind=EntryKind.RESERVE)
    assert (paid.account, paid.mechanism) == (crowd.pool_account, "k_anonymity_gate")
    assert not RandomizedLabel.objects.exists()
    assert not AnswerSeries.objects.exists()
    # What is trained descends from the gate, and the ledger says so.
    assert release.entry.kind == EntryKind.POST_PROCESSING
    assert release.entry.parent.parent == paid
    (measured,) = release.evaluations.all()
    assert measured.correct / measured.examples >= 0.9
    assert release.labels_used == Consensus.objects.filter(project=crowd).count() >= 16


def test_card_and_statement_say_that_answers_are_no_secret(crowd):
    release = reach(crowd, 1)
    card, document = read(release, "card.md"), json.loads(read(release, "privacy.json"))
    said = "The answers of this project are declared not to be secret"
    assert said in card
    assert said in document["answers"]
    assert "any answer of an annotator: the answers are declared not to be secret" in document["not_covered"]
    assert "several answers of one annotator together" not in card
    assert [account["unit"] for account in document["accounts"]] == ["contributor"]
    client = browser_of(crowd.created_by)
    for page in ("budget/", "budget/statement/"):
        assert "Answers are declared public" in client.get(f"/projects/{crowd.slug}/{page}").content.decode()
    statement = json.loads("".join(statement_json(crowd, [crowd.pool_account])))
    assert statement["answers"] == "not secret"


def test_a_manager_settles_what_people_disagree_about_since_no_response_is_drawn():
    project = open_answers(overlap=2)
    learning.fill_crowd(project)
    people = make_annotators(project, 2)
    learning.work_off(project)
    for place, person in enumerate(people):
        while (held := queue.claim_next(project=project, user=person)) is not None:
            labels.submit_label(assignment=held, choice=place)
    disputed = Query.objects.filter(project=project, state="disputed").first()
    settled = services.settle(project=project, query_id=disputed.pk, choice=1, person=project.created_by)
    assert settled.choice == 1


@pytest.mark.parametrize(
    ("given", "rule"),
    [({"estimator": "logistic"}, "estimator: Such answers need the model channel")],
)
def test_only_what_costs_nothing_learns_from_them(given, rule):
    with pytest.raises(InvalidConfiguration, match=rule):
        open_answers(**given)


@pytest.mark.parametrize("opened", [learning.open_trusted, learning.open_secret])
def test_without_a_gate_no_answer_is_declared_open(opened):
    with pytest.raises(InvalidConfiguration, match="Needs a gate"):
        opened(make_user(), label_randomizer="not_secret")
    project = opened(make_user())
    with pytest.raises(InvalidConfiguration, match="Needs a gate"):
        configuring.configure_project(
            project=project, changes={"label_randomizer": "not_secret"}, actor=project.created_by
        )


def test_before_the_first_charge_answers_are_declared_open_or_secret_again_and_after_it_never():
    project = learning.open_crowd(
        make_user(), **(OPEN | {"label_randomizer": "randomized_consensus", "answers_epsilon": 3.0, "overlap": 1})
    )
    account = project.labels_account
    project = configuring.configure_project(
        project=project, changes={"label_randomizer": "not_secret"}, actor=project.created_by
    )
    assert project.labels_account is None
    project = configuring.configure_project(
        project=project,
        changes={"label_randomizer": "randomized_consensus", "answers_epsilon": 3.0},
        actor=project.created_by,
    )
    # With the account it had, whose limit nobody chooses twice.
    assert project.labels_account == account
    assert BudgetAccount.objects.filter(scope__contains=":labels").count() == 1
    learning.fill_crowd(project)
    for declared in ("not_secret", ""):
        with pytest.raises(ConfigurationFrozen):
            configuring.configure_project(
                project=project, changes={"label_randomizer": declared, "estimator": "channel"}, actor=make_user()
            )


def test_who_pays_for_each_training_cannot_declare_its_answers_open_later():
    """What was asked under a promise stays under it, also where nothing was charged for answers yet."""
    project = learning.open_crowd(make_user())
    learning.fill_crowd(project)
    with pytest.raises(ConfigurationFrozen):
        configuring.configure_project(
            project=project,
            changes={"label_randomizer": "not_secret", "estimator": "channel", "repeat_votes": False},
            actor=project.created_by,
        )
    project.refresh_from_db()
    assert project.labels_account is not None


def test_the_database_wants_an_account_of_secret_answers_and_none_of_open_ones():
    opened, secret = open_answers(), learning.open_crowd(make_user())
    loose = open_answers_account("loose", 1.0, unit="answer", actor=opened.created_by, reason="a test")
    other = open_answers_account("other", 1.0, unit="annotator", actor=opened.created_by, reason="a test")
    for project, changed in (
        (secret, {"labels_account": None}),
        (secret, {"labels_account": other}),
        (opened, {"labels_account": loose}),
    ):
        with pytest.raises(IntegrityError, match="account of their declared unit"), transaction.atomic():
            Project.objects.filter(pk=project.pk).update(**changed)
        with as_owner(), pytest.raises(IntegrityError, match="account of their declared unit"), transaction.atomic():
            Project.objects.filter(pk=project.pk).update(**changed)
    with pytest.raises(IntegrityError, match="account of their declared unit"):
        write_settings(opened, label_randomizer=None)
    with pytest.raises(IntegrityError, match="a configuration of its own"), transaction.atomic():
        Project.objects.filter(pk=opened.pk).update(configuration=None)


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
