"""Scores and features made in parts are those one worker makes, to the last bit, whoever makes which part."""

import threading
from datetime import timedelta
from uuid import uuid4

import numpy as np
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.utils import timezone

from annotation.models import Dataset, Query
from annotation.work.services import work
from learner import tasks
from learner.configuration.pool import featurizer_of, strategy_of
from learner.linear_model import LinearModel
from learner.models import FeatureMatrix, Round
from learner.models.parts import FeaturePart, ScorePart
from learner.pools import selectors as pool_selectors
from learner.pools.services import feature_parts, feature_rows, features
from learner.rounds.services import rounds, score_parts
from learner.strategies import draws, scoring, top_c, uncertainty
from learner.strategies.draws import DrawStatistics
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SimulationRandom
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
BLOCK = 16


@pytest.fixture(autouse=True)
def in_small_parts(monkeypatch):
    """Cut what is far too small to be worth it, and have no broker told."""
    for module in (scoring, top_c, uncertainty, draws):
        monkeypatch.setattr(module, "default_block_rows", lambda dimension, outputs: BLOCK)
    monkeypatch.setattr(score_parts, "PART_ROWS", 2 * BLOCK)
    monkeypatch.setattr("celery.canvas.Signature.apply_async", lambda signature, **options: None)


@pytest.fixture
def second_round():
    """Return a round that scores with a release, taken by a worker."""
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project, number=130)
    learning.run_to_release(project, make_user(), version=1)
    rounds.advance_project(project_id=project.pk)
    chosen = Round.objects.select_related("project__pool_account", "model").get(project=project, strategy="top_c")
    assert chosen.state == "waiting"
    return chosen


def beside(helpers, work):
    """Call `work` in so many other threads, each on a connection of its own, until the block ends."""

    class Others:
        def __enter__(self):
            self.finished = threading.Event()
            self.threads = [threading.Thread(target=self.run) for _ in range(helpers)]
            for thread in self.threads:
                thread.start()

        def run(self):
            try:
                while not self.finished.is_set():
                    work()
                    self.finished.wait(0.01)
            finally:
                connection.close()

        def __exit__(self, *error):
            self.finished.set()
            for thread in self.threads:
                thread.join()

    return Others()


@pytest.mark.parametrize("helpers", [0, 1, 3])
@pytest.mark.parametrize("kind", ["top_c", "uncertainty"])
def test_scores_do_not_depend_on_who_makes_them(second_round, monkeypatch, helpers, kind):
    strategies = {"top_c": TopC(), "uncertainty": Uncertainty(draws=5)}
    strategy = strategies[kind]
    monkeypatch.setattr(score_parts, "strategy_of", lambda project, name: strategy)
    candidates = pool_selectors.candidates_of(second_round.project)
    model = LinearModel.from_json(second_round.model.weights)
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(second_round.project).dimension)
    expected = strategy.row_scores(X, candidates.rows, model)
    Round.objects.filter(pk=second_round.pk).update(state="running")
    with beside(helpers, lambda: score_parts.help_scoring(round_id=second_round.pk)):
        found = score_parts.score_rows(
            second_round, strategy, candidates.datasets, candidates.rows, model, check=lambda: None
        )
    assert len(candidates.rows) > 3 * score_parts.PART_ROWS
    assert found.tobytes() == expected.tobytes()
    assert not ScorePart.objects.exists()
    if kind == "uncertainty":
        whole = strategy.statistics(X, candidates.rows, model)
        assert np.array_equal(DrawStatistics.from_array(found).confidence, whole.confidence)


def test_a_round_in_parts_asks_what_one_worker_asks(second_round, monkeypatch):
    project = second_round.project
    candidates = pool_selectors.candidates_of(project)
    strategy = strategy_of(project, "top_c")
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension)
    model = LinearModel.from_json(second_round.model.weights)
    rows = strategy.query(X, candidates.rows, model, second_round.requested, SimulationRandom(5))
    expected = sorted(candidates.ids[np.isin(candidates.rows, rows)].tolist())
    monkeypatch.setattr(rounds, "SecureRandom", lambda: SimulationRandom(5))
    rounds.run_round(round_id=second_round.pk)
    asked = Query.objects.filter(project=project, round_number=second_round.number).order_by("record_id")
    assert list(asked.values_list("record_id", flat=True)) == expected
    assert len(expected) == second_round.requested


def test_a_round_in_parts_tells_how_many_are_made(second_round, monkeypatch):
    told = []
    monkeypatch.setattr(work.Lease, "report", lambda lease, **fields: told.append(fields))
    rounds.run_round(round_id=second_round.pk)
    parts = -(-len(pool_selectors.candidates_of(second_round.project).rows) // (2 * BLOCK))
    messages = [fields["message"] for fields in told]
    assert messages[:2] == ["Step 1 of 4: the choice is paid for.", "Step 2 of 4: features are made."]
    assert messages[-1] == "Step 4 of 4: questions are opened."
    scored = [f"Step 3 of 4: the pool is scored, {done} of {parts}." for done in range(parts)]
    assert messages[2:-1] == ["Step 3 of 4: the pool is scored.", *scored]
    places = [fields["progress_done"] for fields in told]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, 300)
    assert {fields["progress_total"] for fields in told} == {400}


def test_candidates_read_in_ranges_are_those_read_at_once(second_round, monkeypatch):
    whole = pool_selectors.candidates_of(second_round.project)
    monkeypatch.setattr(pool_selectors, "TABLE_ROWS", 40)
    parts = pool_selectors.candidates_of(second_round.project)
    assert np.array_equal(whole.ids, parts.ids)
    assert np.array_equal(whole.rows, parts.rows)


@pytest.mark.parametrize("rows", [[], [7], [0, 1, 2], [3, 5, 6, 7, 40, 41, 90], [9, 8, 8, 2, 3]])
def test_rows_come_back_from_their_runs(rows):
    rows = np.array(rows, dtype=np.int64)
    runs = score_parts.runs_of(rows)
    assert score_parts.rows_of(runs).tolist() == rows.tolist()
    assert len(runs) == 16 * (np.diff(rows) != 1).sum() + 16 * bool(rows.size)


def test_parts_are_stored_as_they_are():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage FROM pg_attribute WHERE attrelid = 'learner_scorepart'::regclass AND attname = 'scores'"
        )
        assert cursor.fetchone() == ("e",)


def test_features_of_several_uploads_tell_one_course(monkeypatch):
    monkeypatch.setattr(feature_rows, "BATCH_ROWS", 5)
    monkeypatch.setattr(feature_parts, "PART_BATCHES", 2)
    project = learning.open_trusted(make_user())
    for seed in (1, 2):
        learning.upload(project, [[text] for text in learning.sentences(30, seed=seed)], ["text"])
    told = []
    uploads = list(Dataset.objects.filter(project=project).order_by("pk"))
    features.stacked_features(uploads, dimension=16, tell=lambda done, total: told.append(done / total))
    assert told == [0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6]


def test_a_part_whose_worker_dies_is_scored_again(second_round, monkeypatch):
    candidates = pool_selectors.candidates_of(second_round.project)
    strategy = strategy_of(second_round.project, "top_c")
    model = LinearModel.from_json(second_round.model.weights)
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(second_round.project).dimension)
    expected = strategy.row_scores(X, candidates.rows, model)
    Round.objects.filter(pk=second_round.pk).update(state="running")

    class Killed(BaseException):
        """Ends a worker in the middle of a part."""

    calls = []
    real = TopC.row_scores

    def die_once(self, *arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise Killed
        return real(self, *arguments)

    monkeypatch.setattr(TopC, "row_scores", die_once)
    with pytest.raises(Killed):
        score_parts.score_rows(second_round, strategy, candidates.datasets, candidates.rows, model, lambda: None)
    assert ScorePart.objects.filter(scores=None).exists()
    # The next attempt begins anew, whatever the dead one left.
    found = score_parts.score_rows(second_round, strategy, candidates.datasets, candidates.rows, model, lambda: None)
    assert found.tobytes() == expected.tobytes()


def test_parts_of_a_round_that_has_ended_are_nobodys(second_round):
    ScorePart.objects.create(round=second_round, number=0, datasets=[], runs=b"")
    assert not score_parts.score_part(round_id=second_round.pk)
    Round.objects.filter(pk=second_round.pk).update(state="running")
    with pytest.raises(LookupError, match="are gone"):
        score_parts._put_together(second_round, 5)


def test_scores_of_a_round_that_ended_early_are_swept_away_and_no_others(second_round):
    ScorePart.objects.create(round=second_round, number=0, datasets=[], runs=b"", scores=b"")
    Round.objects.filter(pk=second_round.pk).update(state="running")
    tasks.forget_abandoned_parts_task()
    assert ScorePart.objects.exists()
    Round.objects.filter(pk=second_round.pk).update(state="failed")
    tasks.forget_abandoned_parts_task()
    assert not ScorePart.objects.exists()


def test_features_nobody_put_together_are_swept_away_with_their_files():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.get(project=project, role="pool")
    parts = [
        FeaturePart.objects.create(build=uuid4(), dataset=dataset, number=0, first_row=0, stop_row=1) for _ in range(2)
    ]
    for part in parts:
        default_storage.save(f"features/{project.pk}/parts/{part.name}", ContentFile(b"features"))
    FeaturePart.objects.filter(pk=parts[0].pk).update(created_at=timezone.now() - timedelta(hours=13))
    tasks.forget_abandoned_parts_task()
    assert list(FeaturePart.objects.all()) == parts[1:]
    assert default_storage.listdir(f"features/{project.pk}/parts")[1] == [str(parts[1].name)]


def test_scores_lie_outside_the_write_ahead_log():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE oid = 'learner_scorepart'::regclass")
        assert cursor.fetchone() == ("u",)


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_a_feature_file_has_the_same_bytes_whoever_made_its_parts(monkeypatch, helpers):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.select_related("project").get(project=project, role="pool")
    whole = features.ensure_matrix(dataset)
    expected = (whole.sha256, whole.rows)
    whole.delete()
    monkeypatch.setattr(feature_rows, "BATCH_ROWS", 8)
    monkeypatch.setattr(feature_parts, "PART_BATCHES", 2)

    def help_making():
        for build in FeaturePart.objects.order_by("build").values_list("build", flat=True).distinct():
            feature_parts.help_making(build=build)

    with beside(helpers, help_making):
        made = features.ensure_matrix(dataset)
    assert dataset.row_count > 48
    assert (made.sha256, made.rows) == expected
    assert FeatureMatrix.objects.count() == 1
    assert not FeaturePart.objects.exists()
    assert default_storage.listdir(f"features/{project.pk}/parts")[1] == []


def test_features_whose_rows_are_gone_are_not_put_together(monkeypatch):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.select_related("project").get(project=project, role="pool")
    FeatureMatrix.objects.all().delete()
    monkeypatch.setattr(feature_rows, "BATCH_ROWS", 8)
    monkeypatch.setattr(feature_parts, "PART_BATCHES", 2)
    dataset.row_count += 1
    with pytest.raises(LookupError, match="are gone"):
        features.ensure_matrix(dataset)
    assert not FeaturePart.objects.exists()
    assert not FeatureMatrix.objects.exists()
