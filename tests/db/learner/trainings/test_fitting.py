import json
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.db import IntegrityError

from annotation.models import Consensus, WorkState
from annotation.people.services import limits
from learner.estimators.logistic import PrivateLogisticRegression
from learner.models import ModelRelease, TrainingRun
from learner.releases.artifacts.files import verify_manifest
from learner.releases.services import publishing, versions
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop, training
from privacy.errors import CertificateMissed
from privacy.ledger import services as ledger
from privacy.ledger.models import LedgerEntry
from tests import learning
from tests.dying import Killed, die_at
from tests.factories import make_user
from tests.owning import as_owner

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]


@pytest.fixture
def trusted(remembered):
    return learning.begin_experts(remembered)


def due_training(project) -> TrainingRun:
    learning.work_off(project)
    learning.label_everything(project, make_user())
    loop.advance_project(project_id=project.pk)
    return TrainingRun.objects.get(project=project, state=WorkState.WAITING)


def lapse(row) -> None:
    type(row).objects.filter(pk=row.pk).update(leased_until="2000-01-01T00:00Z")


def release_folders() -> list[str]:
    root = Path(default_storage.path("releases"))
    return sorted(str(path.relative_to(root)) for path in root.glob("*/*"))


def test_a_release_holds_what_was_paid_for(trusted):
    run = due_training(trusted)
    training.train_model(run_id=str(run.pk))
    release = ModelRelease.objects.get()
    assert (release.version, release.labels_used, release.estimator) == (1, 12, "logistic")
    assert release.entry.kind == "commit"
    assert release.event == json.loads(release.entry.parent.event_json)
    assert release.entry.epsilon_nano == pytest.approx(2.0e9, rel=1e-6)
    assert release.guarantee[0]["limit_epsilon"] == 20.0
    assert release.guarantee[0]["spent_epsilon"] == pytest.approx(2.0, rel=1e-6)
    assert {(entry.parent.mechanism, entry.subject) for entry in release.lineage.all()} == {
        ("random_choice", "round:1"),
        ("objective_perturbation", "release:1"),
    }
    assert verify_manifest(Path(default_storage.path(release.folder))) == release.digests
    weights = json.loads((Path(default_storage.path(release.folder)) / "weights.json").read_text())
    assert weights == release.weights
    assert release.evaluations.get().examples == 60


def test_training_uses_labels_up_to_its_last_consensus_alone(trusted, monkeypatch):
    run = due_training(trusted)
    fitted = []

    def fit(*args):
        fitted.append(fit_examples(*args))
        return fitted[-1]

    fit_examples = training._fit
    monkeypatch.setattr(training, "_fit", fit)
    TrainingRun.objects.filter(pk=run.pk).update(last_consensus_id=Consensus.objects.order_by("pk")[6].pk)
    training.train_model(run_id=str(run.pk))
    ((examples, _),) = fitted
    assert len(examples.ids) == 7
    assert ModelRelease.objects.exists()


def test_a_training_delivered_twice_releases_once(trusted):
    run = due_training(trusted)
    training.train_model(run_id=str(run.pk))
    training.train_model(run_id=str(run.pk))
    assert ModelRelease.objects.count() == 1
    assert len(learning.entries(trusted, "reserve")) == 2  # the round's and the training's


def test_what_is_staged_and_not_published_is_not_stored(trusted, monkeypatch):
    run = due_training(trusted)
    monkeypatch.setattr(publishing, "publish", lambda *args, **kwargs: None)
    with pytest.raises(RuntimeError, match="staged and not published"):
        training.train_model(run_id=str(run.pk))
    run.refresh_from_db()
    assert run.state == WorkState.FAILED
    assert not ModelRelease.objects.exists()
    assert release_folders() == []
    assert [entry.kind for entry in run.reservation.children.all()] == ["charge"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("step", "charged"),
    [
        ("inside_reserve", 0),
        ("after_reserve", 1),
        ("training_fitted", 1),
        ("training_staged", 1),
        ("inside_commit", 1),
        ("training_published", 1),
    ],
)
def test_a_training_that_dies_stays_charged_and_the_next_attempt_releases(trusted, monkeypatch, step, charged):
    run = due_training(trusted)
    die_at(monkeypatch, step, training, publishing, ledger)
    with pytest.raises(Killed):
        training.train_model(run_id=str(run.pk))
    monkeypatch.undo()
    assert not ModelRelease.objects.exists()
    lapse(run)
    training.train_model(run_id=str(run.pk))
    assert ModelRelease.objects.get().version == 1
    assert len(learning.entries(trusted, "charge")) == charged
    assert learning.open_reservations(trusted) == 0
    assert release_folders() == [f"{trusted.slug}/1"]


def test_a_missed_certificate_releases_nothing_and_stays_charged(trusted, monkeypatch):
    run = due_training(trusted)

    def miss(*args):
        raise CertificateMissed("the gradient stayed above its bound")

    monkeypatch.setattr(PrivateLogisticRegression, "fit", miss)
    training.train_model(run_id=str(run.pk))
    run.refresh_from_db()
    assert run.state == WorkState.FAILED
    assert "above its bound" in run.error
    assert not ModelRelease.objects.exists()
    assert [entry.mechanism for entry in learning.entries(trusted, "charge")] == ["objective_perturbation"]
    monkeypatch.undo()
    learning.work_off(trusted)
    learning.label_everything(trusted, make_user())
    learning.work_off(trusted)
    assert ModelRelease.objects.get().labels_used == 24  # the next labels bring the next attempt


def test_a_simulation_is_not_released(trusted, monkeypatch):
    run = due_training(trusted)
    monkeypatch.setattr(PrivateLogisticRegression, "releasable", False)
    training.train_model(run_id=str(run.pk))
    assert not ModelRelease.objects.exists()
    assert "seed" in TrainingRun.objects.get().error


def test_an_exhausted_budget_gives_no_model_and_says_why():
    project = learning.open_trusted(make_user(), selection="random", pool_epsilon=4.5, maximum_releases=None)
    learning.fill_trusted(project)
    annotator = make_user()
    learning.run_to_release(project, annotator, version=2)
    learning.work_off(project)
    project.refresh_from_db()
    status = project_status(project)
    assert status.step == Step.CANNOT_PAY
    assert "0.5" in status.sentence
    assert ModelRelease.objects.count() == 2
    limits.change_limit(
        project=project,
        account=project.pool_account,
        epsilon_limit=7.0,
        delta_limit=0.0,
        actor=project.created_by,
        reason="one more model",
    )
    learning.run_to_release(project, annotator, version=3)


def test_a_budget_spent_behind_our_back_fails_the_run_and_reads_nothing(trusted, monkeypatch):
    run = due_training(trusted)
    ledger.change_account_limits(
        account=trusted.pool_account, epsilon_limit=1.0, delta_limit=0.0, actor="test", reason="lowered meanwhile"
    )
    monkeypatch.setattr(training, "_fit", lambda *args: pytest.fail("private rows were read"))
    training.train_model(run_id=str(run.pk))
    run.refresh_from_db()
    assert run.state == WorkState.FAILED
    assert "costs epsilon=2" in run.error


def test_crowd_training_is_paid_by_the_answers_and_descends_from_the_gate():
    project = learning.open_crowd(make_user())
    learning.fill_crowd(project)
    release = learning.run_to_release(project, make_user(), version=1)
    gate = learning.entries(project, "commit")[0]
    free = LedgerEntry.objects.get(account=project.pool_account, purpose="train a version of the model on gate output")
    assert release.entry.account == project.labels_account
    assert (free.parent, free.subject) == (gate, "release:1")
    assert free.output_digest == release.entry.output_digest
    assert set(release.lineage.all()) == {gate, free, release.entry}
    assert learning.open_reservations(project) == 0


def test_a_release_cannot_be_rewritten_or_deleted(trusted):
    release = learning.run_to_release(trusted, make_user(), version=1)
    for change in ({"labels_used": 99}, {"weights": {}}, {"state": "retired"}):
        with pytest.raises(IntegrityError):
            ModelRelease.objects.filter(pk=release.pk).update(**change)
    with as_owner(), pytest.raises(IntegrityError):
        ModelRelease.objects.filter(pk=release.pk).delete()
    versions.retire_release(release=release, reason="trained on a wrong guideline")
    with pytest.raises(IntegrityError):
        ModelRelease.objects.filter(pk=release.pk).update(state="released", retired_reason="")


def test_the_files_tell_what_was_asked_and_not_how_much_was_agreed_on(trusted):
    """How many questions got a consensus depends on what the records hold, and files leave the boundary."""
    run = due_training(trusted)
    TrainingRun.objects.filter(pk=run.pk).update(last_consensus_id=Consensus.objects.order_by("pk")[6].pk)
    training.train_model(run_id=str(run.pk))
    card = (Path(default_storage.path(ModelRelease.objects.get().folder)) / "card.md").read_text()
    assert "at most 12 questions" in card
    assert "7 labels" not in card
