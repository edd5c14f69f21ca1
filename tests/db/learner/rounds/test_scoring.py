import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.errors import WorkCancelled
from annotation.models import Query
from annotation.questions.services import queue
from learner.linear_model import LinearModel
from learner.models import Round
from learner.pools import features
from learner.pools import records as pool_selectors
from learner.pools.attempts import CHOOSING, Progress
from learner.pools.configuration import featurizer_of, strategy_of
from learner.rounds.services import loop, watching
from learner.strategies import random, top_c, uncertainty
from privacy.mechanisms.randomness import SimulationRandom
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
BLOCK = 16


@pytest.fixture(autouse=True)
def in_small_blocks(monkeypatch):
    for module in (top_c, uncertainty):
        monkeypatch.setattr(module, "default_block_rows", lambda dimension, outputs: BLOCK)
    monkeypatch.setattr(random, "BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(watching, "REPORTED_ROWS", 2 * BLOCK)
    monkeypatch.setattr(pool_selectors, "TABLE_ROWS", 7)
    monkeypatch.setattr(queue, "OPENED_AT_ONCE", 5)


@pytest.fixture
def second_round(remembered):
    project = remembered("a second round over two uploads", before_a_second_round)
    chosen = Round.objects.select_related("project__pool_account", "model").get(project=project, strategy="top_c")
    assert chosen.state == "waiting"
    return chosen


def before_a_second_round():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project, number=130)
    learning.run_to_release(project, make_user(), version=1)
    learning.upload(project, [[text] for text in learning.sentences(30, seed=5)], ["text"])
    loop.advance_project(project_id=project.pk)
    return project


def listed(project):
    found = pool_selectors.unasked_records(project).order_by("dataset_id", "row_number")
    starts, first = {}, 0
    for dataset in pool_selectors.pool_datasets(project):
        starts[dataset.pk], first = first, first + dataset.row_count
    return [(record.pk, starts[record.dataset_id] + record.row_number) for record in found]


def test_candidates_are_what_nobody_was_asked_about(second_round):
    candidates = pool_selectors.open_records(second_round.project)
    expected = listed(second_round.project)
    assert 0 < len(expected) < candidates.rows.total == 160
    rows = candidates.rows.at(np.arange(len(candidates.rows)))
    assert rows.tolist() == [row for _pk, row in expected]
    backwards = candidates.ids_of(rows[::-1])
    assert backwards.tolist() == [pk for pk, _row in reversed(expected)]


def test_no_record_is_read_to_know_them(second_round):
    """Statements follow the number of questions asked, seven at a time here; none goes through the records."""
    asked = Query.objects.filter(project=second_round.project, record__isnull=False).count()
    with CaptureQueriesContext(connection) as captured:
        pool_selectors.open_records(second_round.project)
    assert len(captured) == 1 + 2 * -(-asked // 7) + 1
    with_records = [one["sql"] for one in captured if 'FROM "annotation_record"' in one["sql"]]
    assert len(with_records) == -(-asked // 7)
    assert all('"annotation_record"."id" IN (' in sql for sql in with_records)


def test_a_round_asks_what_a_list_of_the_pool_gives(second_round, monkeypatch):
    project = second_round.project
    pairs = listed(project)
    strategy = strategy_of(project, "top_c")
    datasets = list(pool_selectors.pool_datasets(project))
    X = features.stacked_features(datasets, dimension=featurizer_of(project).dimension)
    model = LinearModel.from_json(second_round.model.weights)
    rows = np.array([row for _pk, row in pairs])
    chosen = set(strategy.query(X, rows, model, second_round.requested, SimulationRandom(5)).tolist())
    monkeypatch.setattr(loop, "SecureRandom", lambda: SimulationRandom(5))
    loop.run_round(round_id=second_round.pk)
    asked = Query.objects.filter(project=project, round_number=second_round.number).order_by("priority")
    # In the order of the choice, though few are opened at once.
    assert list(asked.values_list("record_id", flat=True)) == [pk for pk, row in pairs if row in chosen]
    assert len(chosen) == second_round.requested > queue.OPENED_AT_ONCE


def test_scoring_stops_with_the_attempt_and_leaves_no_pages(second_round, monkeypatch):
    given_back = []
    monkeypatch.setattr(features.matrix, "let_go", given_back.append)

    class Stopped:
        checked = 0

        def check(self):
            self.checked += 1
            if self.checked == 3:
                raise WorkCancelled("stop")

        def report(self, **fields):
            pass

    candidates = pool_selectors.open_records(second_round.project)
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(second_round.project).dimension)
    rows = watching.watched(candidates.rows, X, Progress(Stopped(), CHOOSING))
    blocks = rows.blocks(BLOCK)
    assert [len(next(blocks)) for _ in range(4)] == [BLOCK] * 4
    with pytest.raises(WorkCancelled):
        next(blocks)
    # Before each block, in both uploads.
    assert len(given_back) == 2 * 5
