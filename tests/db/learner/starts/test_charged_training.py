import json

import numpy as np
import pytest
from django.db import IntegrityError, transaction

from annotation.budget import presenters
from annotation.data.services.streams import post_records
from annotation.errors import InvalidUpload
from annotation.models import Dataset, DatasetState, Membership, Query, Record
from annotation.projects.services import configuring
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round, WarmStart
from learner.pools import selectors, starts
from learner.pools.configuration import featurizer_of, stream_event
from learner.releases import storage
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import streams, training
from learner.simulation.selectors import plan_forecast
from privacy.errors import UnsoundCombination
from privacy.ledger import audit
from privacy.ledger.counter import site_counter
from tests import learning, streaming
from tests.dying import Killed, die_at
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def start_with(project, *, epsilon=2.0, number=40, labels=True) -> Dataset:
    texts = learning.sentences(number, seed=9)
    rows = [[text, learning.CLASSES[learning.truth_of(text)] if labels else ""] for text in texts]
    return learning.upload(project, rows, ["text", "label"], role="charged_start", start_epsilon=epsilon)


def kinds(account) -> list[str]:
    return list(account.entries.order_by("sequence").values_list("kind", flat=True))


@pytest.fixture
def project():
    return learning.open_trusted(make_user())


def test_the_first_round_scores_with_the_private_start_and_its_own_account_pays(project):
    learning.fill_trusted(project)
    account = start_with(project).account
    assert (account.unit, account.adjacency, kinds(account)) == ("record", "null", ["grant"])
    learning.work_off(project)
    chosen = Round.objects.get()
    assert (chosen.strategy, chosen.model, chosen.selected) == ("top_c", None, 12)
    assert [entry.mechanism for entry in learning.entries(project, "reserve")] == ["top_c"]
    assert kinds(account) == ["grant", "reserve", "commit"]
    stored = WarmStart.objects.get()
    assert stored.entry.account == account
    assert stored.entry.epsilon_nano == pytest.approx(2e9)
    assert stored.entry.epsilon_nano <= account.epsilon_limit_nano
    assert not Query.objects.filter(record__dataset__role="charged_start").exists()
    (verdict,) = audit.audit_accounts(scope=account.scope, marks=site_counter().marks())
    assert verdict.differing == 0


def test_the_charge_comes_before_the_rows_are_read(project, monkeypatch):
    account = start_with(project).account
    seen = []
    real = starts.features.open_features
    monkeypatch.setattr(
        starts.features, "open_features", lambda dataset: (seen.append(kinds(account)), real(dataset))[1]
    )
    starts.start_model(project)
    assert seen == [["grant", "reserve"]]


def test_a_second_use_replays_the_weights_free(project, monkeypatch):
    account = start_with(project, epsilon=10.0).account
    first = starts.start_model(project).to_json()
    monkeypatch.setattr(starts, "_fit", lambda *args: 1 / 0)
    assert starts.start_model(project).to_json() == first
    assert kinds(account) == ["grant", "reserve", "commit"]


def test_an_attempt_that_dies_stays_charged_and_the_project_goes_on_without_what_it_cannot_pay(project, monkeypatch):
    learning.fill_trusted(project)
    account = start_with(project, epsilon=5.0).account

    with monkeypatch.context() as patch:
        die_at(patch, "start_fitted", starts)
        for _ in range(2):
            with pytest.raises(Killed):
                starts.start_model(project)
    assert kinds(account) == ["grant", "reserve", "charge", "reserve"]
    assert selectors.start_of(project) is None
    assert starts.start_model(project) is None
    learning.work_off(project)
    assert Round.objects.get().strategy == "random"
    assert not WarmStart.objects.exists()


def test_an_attempt_after_a_dead_one_pays_anew(project, monkeypatch):
    account = start_with(project, epsilon=5.0).account
    with monkeypatch.context() as patch:
        patch.setattr(starts, "_fit", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            starts.start_model(project)
    assert starts.start_model(project) is not None
    assert kinds(account) == ["grant", "reserve", "charge", "reserve", "commit"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("opened", ["trusted", "crowd"])
def test_every_release_states_the_account_and_descends_from_the_start(opened, monkeypatch):
    crowd = opened == "crowd"
    project = learning.open_crowd(make_user()) if crowd else learning.open_trusted(make_user(), selection="random")
    learning.fill_crowd(project) if crowd else learning.fill_trusted(project)
    account = start_with(project).account
    priors = []
    real = training.release_estimator_of

    def remember(*args, prior, **kwargs):
        priors.append(prior)
        return real(*args, prior=prior, **kwargs)

    monkeypatch.setattr(training, "release_estimator_of", remember)
    release = learning.run_to_release(project, make_user(), version=1)
    start = WarmStart.objects.get()
    assert priors[0].to_json() == LinearModel.from_json(start.weights).to_json()
    assert start.entry in release.lineage.all()
    assert selectors.guarantee_accounts(project)[-1] == account
    assert [terms["protects"] for terms in release.guarantee][-1] == account.label
    with storage.open_file(release=release, name="privacy.json") as file:
        document = json.load(file)
    assert document["accounts"][-1]["limit_epsilon"] == pytest.approx(2.0)
    assert f"{account.label} #3" in [entry["id"] for entry in document["entries"]]
    with storage.open_file(release=release, name="card.md") as file:
        assert account.label in file.read().decode()
    assert [sheet.account for sheet in presenters.budget_sheets(project)][-1] == account
    assert kinds(account) == ["grant", "reserve", "commit"]


def test_what_cannot_start_a_model_is_refused(project):
    with pytest.raises(InvalidUpload, match="start_epsilon: is too small for the training, which costs 2"):
        start_with(project, epsilon=1.9)
    with pytest.raises(InvalidUpload, match="start_epsilon: must be a number"):
        start_with(project, epsilon=None)
    assert not Dataset.objects.exists()
    assert start_with(project, labels=False).state == DatasetState.REFUSED
    assert not Record.objects.exists()
    assert selectors.guarantee_accounts(project) == [project.pool_account]
    used = start_with(project)
    assert used.state == DatasetState.READY
    with pytest.raises(InvalidUpload, match="already has a private start"):
        start_with(project)
    with pytest.raises(IntegrityError, match="annotation_dataset_account"), transaction.atomic():
        Dataset.objects.filter(pk=used.pk).update(account=None)


def test_annotators_never_get_a_private_example(project):
    learning.fill_trusted(project, number=12)
    start_with(project)
    learning.work_off(project)
    annotator = make_user()
    assert learning.label_everything(project, annotator) == 12
    assert Membership.objects.filter(user=annotator).count() == 1
    assert not Query.objects.exclude(record__dataset__role="pool").exists()


def test_a_start_that_waits_is_left_alone_once_models_are_made_of_questions(remembered):
    """What learns from questions is proved for answers; on private rows its training would have no guarantee."""
    crowd = learning.open_crowd(make_user(), selection="uncertainty", features="static_encoder", labels_epsilon=4.0)
    learning.fill_crowd(crowd)
    start = start_with(crowd)
    changes = {
        "label_randomizer": "randomized_consensus",
        "answers_epsilon": 4.0,
        "estimator": "channel",
        "overlap": 3,
        "repeat_votes": False,
    }
    configuring.configure_project(project=crowd, changes=changes, actor=crowd.created_by)
    crowd.refresh_from_db()
    assert crowd.estimator == "channel"
    assert selectors.start_of(crowd) is None
    assert project_status(crowd).step == Step.ASK
    with pytest.raises(UnsoundCombination, match="take no private start"):
        starts.train_charged(start)
    learning.work_off(crowd)
    assert [(each.strategy, each.state) for each in Round.objects.all()] == [("random", "done")]
    assert kinds(start.account) == ["grant"]


def start_from(project, *, number=40, seed=9) -> None:
    texts = learning.sentences(number, seed=seed)
    rows = [[text, learning.CLASSES[learning.truth_of(text)]] for text in texts]
    learning.upload(project, rows, ["text", "label"], role="public_start")


def test_without_public_examples_the_first_round_is_random():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    assert starts.start_model(project) is None
    learning.work_off(project)
    assert Round.objects.get().strategy == "random"


def test_the_first_round_scores_with_the_public_model_and_only_the_choice_is_paid():
    project = learning.open_trusted(make_user(), selection="top_c")
    learning.fill_trusted(project)
    start_from(project)
    assert plan_forecast(project).next_round.kind == "top_c"
    learning.work_off(project)
    chosen = Round.objects.get()
    assert (chosen.strategy, chosen.model, chosen.selected) == ("top_c", None, 12)
    assert [entry.mechanism for entry in learning.entries(project, "reserve")] == ["top_c"]
    stored = WarmStart.objects.get()
    assert stored.examples == 40
    assert not ModelRelease.objects.exists()


def test_the_public_model_is_made_of_public_rows_alone_and_once(monkeypatch):
    """Another pool under the same start gives the same weights; a second look trains nothing."""
    weights = []
    for seed in (1, 2):
        project = learning.open_trusted(make_user())
        learning.upload(project, [[text] for text in learning.sentences(50, seed=seed)], ["text"])
        start_from(project)
        weights.append(starts.start_model(project).to_json())
    assert weights[0] == weights[1]
    monkeypatch.setattr(starts, "_train", lambda dataset: 1 / 0)
    assert starts.start_model(project).to_json() == weights[1]
    assert learning.entries(project, "reserve") == []


def test_trainings_lean_on_the_public_model(monkeypatch):
    project = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(project)
    start_from(project)
    seen = []
    real = training.release_estimator_of

    def remember(*args, prior, **kwargs):
        seen.append(prior)
        return real(*args, prior=prior, **kwargs)

    monkeypatch.setattr(training, "release_estimator_of", remember)
    learning.run_to_release(project, make_user(), version=1)
    start = LinearModel.from_json(WarmStart.objects.get().weights)
    assert np.array_equal(seen[0].coef, start.coef)


def start_stream(project, *, number=60) -> None:
    rows = [[str(row[name]) for name in row] + [streaming.CLASSES[row["amount"] > 0]] for row in streaming.rows(number)]
    learning.upload(project, rows, ["amount", "hour", "distance", "label"], role="public_start")


@pytest.mark.parametrize("preset", ["fraud-stream", "full-information-ogd"])
def test_public_examples_start_a_stream_that_is_charged_as_ever(preset, monkeypatch):
    project = streaming.open_stream(make_user(), preset)
    start_stream(project)
    start = LinearModel.from_json(starts.start_model(project).to_json())
    scored_with = []
    real = streams.examine
    monkeypatch.setattr(
        streams, "examine", lambda *a, model, **k: scored_with.append(model) or real(*a, model=model, **k)
    )
    post_records(project=project, records=streaming.rows(40, seed=3))
    streaming.work_off(project)
    first = scored_with[0]
    assert first.coef / np.linalg.norm(first.coef) == pytest.approx(start.coef / np.linalg.norm(start.coef))
    tested = streaming.rows(200, seed=99)
    right = first.predict(featurizer_of(project).transform(tested)) == np.array(
        [streaming.CLASSES[row["amount"] > 0] for row in tested]
    )
    assert right.mean() > 0.9
    assert not ModelRelease.objects.exists()
    reservation = learning.entries(project, "reserve")
    assert [entry.event for entry in reservation] == [stream_event(project).to_json()]
