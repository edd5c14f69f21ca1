from functools import partial

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation.errors import InvalidUpload
from learner import tasks
from learner.models import Evaluation, MechanismAudit, ModelRelease, ReleaseState
from learner.pools import selectors
from learner.pools.keys import CHECK_RELEASE_TASK
from learner.releases import evaluations, storage
from learner.releases.services import checks, versions
from learner.rounds import next_step
from learner.rounds.next_step import Step
from learner.rounds.services import loop
from privacy.mechanisms.k_norm import EuclideanNoise
from tests import learning
from tests.factories import make_user
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(broker, remembered):
    return learning.begin_experts(remembered)


def candidate_of(project, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checks, "check_release", lambda **_: None)
        return learning.run_to_release(project, make_user(), version=1)


def test_a_sound_release_passes_and_says_what_was_checked(project):
    release = learning.run_to_release(project, make_user(), version=1)
    assert release.state == ReleaseState.RELEASED
    assert release.checks == dict.fromkeys(("entries", "ledger", "mechanism", "files"), "passed")
    assert release.released_at >= release.created_at
    assert release.environment["dpal"].startswith("0.1.0+")
    assert release.configuration["selection"] == project.selection
    verdict = MechanismAudit.objects.get()
    assert verdict.epsilon_lower_bound <= verdict.charged_epsilon


def test_the_canary_is_asked_once_for_a_configuration(project, monkeypatch):
    release = learning.run_to_release(project, make_user(), version=1)
    monkeypatch.setattr(checks, "send_canary", lambda *_, **__: pytest.fail("asked again"))
    assert checks.mechanism_audit(release) == MechanismAudit.objects.get()


def test_a_candidate_whose_worker_died_is_checked_by_the_clock(project, monkeypatch):
    release = candidate_of(project, monkeypatch)
    assert release.state == ReleaseState.CANDIDATE
    assert selectors.latest_release(project) is None
    assert next_step.project_status(project).step == Step.TRAINING
    sent = []
    # The broker of the tests holds what nobody takes.
    monkeypatch.setattr(loop.broker, "may_have_lost", bool)
    monkeypatch.setattr(loop, "send_on_commit", lambda task, **ids: sent.append((task, ids)))
    loop.advance_projects()
    check = (CHECK_RELEASE_TASK, {"release_id": release.pk})
    assert check in sent
    tasks.check_release_task(**check[1])
    sent.clear()
    release.refresh_from_db()
    assert release.state == ReleaseState.RELEASED
    loop.advance_projects()
    assert check not in sent


class TestHeldBack:
    def check(self, release, reason):
        found = checks.check_release(release_id=release.pk)
        assert found.state == ReleaseState.CANDIDATE
        assert reason in found.held_back
        status = next_step.project_status(found.project)
        assert status.step == Step.STUCK
        assert reason in status.sentence
        return found

    def test_a_changed_file(self, project, monkeypatch):
        release = candidate_of(project, monkeypatch)
        (storage.folder_of(release) / "card.md").write_text("epsilon 0")
        found = self.check(release, "card.md")
        assert found.checks["files"] != "passed"
        assert found.checks["ledger"] == "passed"

    def test_a_changed_ledger(self, project, monkeypatch):
        release = candidate_of(project, monkeypatch)
        learning.rewrite_entry(release.entry.parent_id, purpose="x")
        self.check(release, "difference")

    @pytest.mark.slow
    def test_a_mechanism_with_half_its_noise(self, project, monkeypatch, settings):
        """The tilts of the canary's own fits are halved, as a library's next version might do."""
        release = candidate_of(project, monkeypatch)
        MechanismAudit.objects.all().delete()
        settings.CANARY_TRIALS = 1500
        whole = EuclideanNoise.sample
        monkeypatch.setattr(
            EuclideanNoise, "sample", lambda noise, dimension, *, rng: whole(noise, dimension, rng=rng) / 2
        )
        self.check(release, "canary audit")

    def test_a_held_back_candidate_can_be_checked_again(self, project, monkeypatch):
        release = candidate_of(project, monkeypatch)
        card = storage.folder_of(release) / "card.md"
        content = card.read_bytes()
        card.write_text("epsilon 0")
        self.check(release, "card.md")
        card.write_bytes(content)
        assert checks.check_release(release_id=release.pk).state == ReleaseState.RELEASED


class TestDatabase:
    def refuses(self, release, **fields):
        with pytest.raises(IntegrityError) as refused, transaction.atomic():
            ModelRelease.objects.filter(pk=release.pk).update(**fields)
        assert refused.value.__cause__.diag.constraint_name.startswith("learner_release")

    def test_only_the_gate_changes_a_candidate(self, project, monkeypatch):
        release = candidate_of(project, monkeypatch)
        self.refuses(release, weights={})
        self.refuses(release, state="released")
        self.refuses(release, state="retired")

    def test_a_release_never_becomes_a_candidate_again(self, project):
        release = learning.run_to_release(project, make_user(), version=1)
        self.refuses(release, state="candidate")
        self.refuses(release, checks={})

    def test_no_field_of_a_release_changes(self, project):
        release = learning.run_to_release(project, make_user(), version=1)
        other = release.lineage.exclude(pk=release.entry_id).order_by("pk").first()
        changes = {
            "version": 7,
            "labels_used": 7,
            "entry": other,
            "created_at": timezone.now(),
            "released_at": timezone.now(),
            **{
                name: {}
                for name in ("weights", "features", "digests", "event", "configuration", "environment", "checks")
            },
            "guarantee": [],
            **dict.fromkeys(("folder", "estimator", "held_back"), "x"),
        }
        for state in (ReleaseState.RELEASED, ReleaseState.RETIRED):
            if state == ReleaseState.RETIRED:
                versions.retire_release(release=release, reason="labels were wrong")
            for field, value in changes.items():
                self.refuses(release, **{field: value})
        self.refuses(release, state="released", retired_reason="")
        self.refuses(release, retired_reason="another")

    def test_a_release_and_what_belongs_to_it_is_not_deleted(self, project):
        release = learning.run_to_release(project, make_user(), version=1)
        lineage, measured = ModelRelease.lineage.through.objects, release.evaluations
        other = learning.entries(project, "reserve")[0]
        for change in (
            lambda: ModelRelease.objects.filter(pk=release.pk)._raw_delete("default"),
            lambda: lineage.filter(modelrelease=release).delete(),
            lambda: lineage.filter(modelrelease=release).update(ledgerentry=other),
            lambda: lineage.create(modelrelease=release, ledgerentry=other),
            lambda: measured.update(correct=0),
            lambda: measured.all().delete(),
            *(partial(truncate, model) for model in (ModelRelease, ModelRelease.lineage.through, Evaluation)),
        ):
            with as_owner(), pytest.raises(IntegrityError, match=r"stays|only be retired"), transaction.atomic():
                change()
        assert release.lineage.count() > 0
        assert release.evaluations.count() == 1

    def test_a_release_is_measured_on_public_test_sets_alone(self, project):
        release = learning.run_to_release(project, make_user(), version=1)
        rows, started, charged = (
            [[f"{word} {text}", learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(10, seed=9)]
            for word in ("one", "two", "three")
        )
        columns = ["text", "label"]
        private = [
            project.datasets.get(role="pool"),
            learning.upload(project, started, columns, role="public_start"),
            learning.upload(project, charged, columns, role="charged_start", start_epsilon=2.0),
        ]
        for dataset in private:
            with pytest.raises(IntegrityError, match="public test sets alone"), transaction.atomic():
                Evaluation.objects.create(release=release, dataset=dataset, examples=1, correct=1)
        with pytest.raises(InvalidUpload, match="role: must be one of"):
            learning.upload(project, rows, columns, role="private_test")
        later = learning.upload(project, rows, columns, role="public_test")
        evaluations.evaluate_release(release=release)
        assert release.evaluations.get(dataset=later).examples == 10


def truncate(model) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {model._meta.db_table} CASCADE")
