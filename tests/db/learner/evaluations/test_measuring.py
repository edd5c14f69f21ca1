import pytest
from django.db import IntegrityError, transaction

from annotation.models import Dataset
from learner import tasks
from learner.models import Evaluation
from learner.pools.keys import EVALUATE_RELEASE_TASK
from learner.rounds.services import loop
from tests import learning

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered):
    return learning.begin_experts(remembered, released=True)


def test_an_evaluation_cannot_claim_more_than_it_counted(release):
    dataset = Dataset.objects.get(project=release.project, role="public_test")
    with pytest.raises(IntegrityError, match="learner_evaluation_counts"), transaction.atomic():
        Evaluation.objects.create(release=release, dataset=dataset, examples=60, correct=1, constant_correct=61)


def test_a_test_set_that_comes_later_is_measured_too(project, release, monkeypatch):
    rows = [[text, learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(10, seed=9)]
    learning.upload(project, rows, ["text", "label"], role="public_test")
    assert Evaluation.objects.count() == 1
    sent = []
    # The broker of the tests holds what nobody takes.
    monkeypatch.setattr(loop.broker, "may_have_lost", bool)
    monkeypatch.setattr(loop, "send_on_commit", lambda task, **ids: sent.append((task, ids)))
    loop.advance_projects()
    measure = (EVALUATE_RELEASE_TASK, {"release_id": release.pk})
    assert measure in sent
    for _ in range(2):
        tasks.evaluate_release_task(**measure[1])
    sent.clear()
    loop.advance_projects()
    assert measure not in sent
    assert list(Evaluation.objects.order_by("pk").values_list("examples", flat=True)) == [60, 10]
