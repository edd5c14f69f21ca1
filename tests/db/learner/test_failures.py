import pytest
from django.utils import timezone

from annotation.models import WorkState
from annotation.work.services import attempts
from learner.models import ModelRelease, Round, TrainingRun
from learner.pools import records
from learner.pools.prices import round_price
from learner.pools.selectors import training_price
from learner.rounds import failures
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop, selection
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
ENDED = {"state": WorkState.FAILED, "error": "It did not end well."}


def fail(rows) -> None:
    assert rows.filter(state=WorkState.WAITING).update(finished_at=timezone.now(), **ENDED) == 1


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(opened)
    return opened


def test_rounds_count_since_the_last_good_one(project):
    learning.work_off(project)
    learning.run_to_release(project, make_user(), version=1)
    for expected in (1, 2, 3):
        loop.advance_project(project_id=project.pk)
        fail(Round.objects.filter(project=project))
        assert len(failures.failed_rounds(project)) == expected
        assert bool(failures.stopping_words(project, Round)) == (expected == 3)
    row = failures.start_anew_of(project)
    assert isinstance(row, Round)
    assert failures.price_of(project, row) == round_price(project)


def test_a_training_that_failed_once_may_be_started_anew_at_its_price(project):
    learning.work_off(project)
    learning.label_everything(project, make_user())
    loop.advance_project(project_id=project.pk)
    assert failures.start_anew_of(project) is None
    fail(TrainingRun.objects.filter(project=project))
    row = failures.start_anew_of(project)
    assert isinstance(row, TrainingRun)
    assert failures.price_of(project, row) == training_price(project)
    assert failures.stopping_words(project, TrainingRun) == ""
    assert "failed 1 time" in failures.failed_words([row])


def test_a_cancelled_training_of_a_block_that_was_given_up_stops_nothing():
    """The flaw: once the next block was closed, the project waited for a training that nobody could start."""
    project = learning.open_secret(make_user())
    learning.fill_trusted(project)
    learning.work_off(project)
    selection.close_block(project=project)
    for _ in range(records.MAX_FAILED_TRAININGS - 1):
        loop.advance_project(project_id=project.pk)
        fail(TrainingRun.objects.filter(project=project))
    loop.advance_project(project_id=project.pk)
    assert attempts.cancel_work(row=TrainingRun.objects.get(state=WorkState.WAITING), by="ada")
    learning.work_off(project)
    selection.close_block(project=project)
    assert project_status(project).step == Step.TRAIN
    learning.work_off(project)
    assert ModelRelease.objects.filter(project=project).count() == 1
