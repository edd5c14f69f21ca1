import pytest

from annotation.work.services import attempts
from learner.models import TrainingRun
from learner.pools.attempts import STEP_LENGTH
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told(monkeypatch):
    found = []

    def report(lease, **fields):
        if isinstance(lease._row, TrainingRun):
            found.append(fields)

    monkeypatch.setattr(attempts.Lease, "report", report)
    return found


def test_a_training_tells_the_same_whatever_was_answered(told, monkeypatch):
    truth_of = learning.truth_of
    runs = []
    for truth in (truth_of, lambda text: 1 - truth_of(text), lambda text: 0):
        monkeypatch.setattr(learning, "truth_of", truth)
        project = learning.open_trusted(make_user())
        learning.fill_trusted(project, number=40)
        learning.run_to_release(project, make_user(), version=1)
        runs.append(list(told))
        told.clear()
    first, *others = runs
    assert all(other == first for other in others)
    assert [report["message"] for report in first] == [
        "Step 1 of 4: the training is paid for.",
        "Step 2 of 4: features are made.",
        "Step 3 of 4: the model is fitted.",
        "Step 3 of 4: the model is fitted, 1 of 1.",
        "Step 4 of 4: the release is written.",
    ]
    assert [report["progress_done"] for report in first] == [0, STEP_LENGTH, 2 * STEP_LENGTH, *[3 * STEP_LENGTH] * 2]
    assert {report["progress_total"] for report in first} == {4 * STEP_LENGTH}
