import json

import pytest
from django.db import IntegrityError, transaction

from annotation.budget.services import statement_json
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Consensus, Membership, Project, Query
from annotation.projects.services import configuring
from annotation.projects.services.answers_accounts import open_answers_account
from annotation.questions.services import labels, queue
from annotation.review import services
from learner.models import ModelRelease
from learner.models.answers import AnswerSeries, RandomizedLabel
from learner.releases import storage
from learner.rounds import next_step
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry
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
