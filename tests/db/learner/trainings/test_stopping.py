import json

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction

from learner.features.base import featurizer_from_json
from learner.linear_model import LinearModel
from learner.models import ModelRelease, StoppingAdvice, TrainingRun
from learner.pools import answers as answer_selectors
from learner.pools import features, selectors
from learner.pools import records as pool_selectors
from learner.pools.prices import more_answers
from learner.rounds.services import training
from learner.strategies.stopping import kappa
from tests import learning
from tests.db.learner.answers.test_randomization import open_randomized, reach
from tests.factories import make_annotators
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crowd():
    project = open_randomized(maximum_releases=6, labels_per_release=4, round_size=4)
    learning.fill_crowd(project)
    make_annotators(project, 3)
    return project


def said_by(release, project):
    datasets = list(pool_selectors.pool_datasets(project))
    X = np.asarray(features.stacked_features(datasets, dimension=len(release.weights["coef"][0])))
    model = LinearModel.from_json(release.weights)
    return model.leaders(model.decision_function(X))


def test_the_fourth_version_says_what_anybody_can_compute_from_released_models(crowd):
    reach(crowd, 3)
    assert not StoppingAdvice.objects.exists(), "three versions are too few"
    early = more_answers(crowd, selectors.newest_release(crowd))
    assert (early.stop, early.sentence[:7]) == (None, "Needs 4")
    fourth = reach(crowd, 4)
    advice = StoppingAdvice.objects.get()
    assert (advice.release_id, advice.models_compared, advice.threshold) == (fourth.pk, 4, 0.975)
    counts = answer_selectors.gate_counts(crowd)
    said = [said_by(release, crowd) for release in ModelRelease.objects.filter(project=crowd).order_by("version")]
    apart = [kappa(said[place], said[place + 1], counts) for place in range(3)]
    assert advice.agreement == pytest.approx(min(apart))
    assert advice.moved == pytest.approx(counts[said[3] != said[2]].sum() / counts.sum())
    assert advice.stop == (min(apart) >= 0.975)
    assert more_answers(crowd, fourth).stop == advice.stop


@pytest.mark.slow
def test_versions_of_other_classes_are_not_compared_and_retired_ones_are(crowd):
    fourth = reach(crowd, 4)
    run, featurizer = TrainingRun.objects.get(release=fourth), featurizer_from_json(json.dumps(fourth.features))
    X = np.ones((3, featurizer.dimension), dtype=np.float32)
    model, weights = LinearModel.from_json(fourth.weights), np.ones(3)
    assert training.advise(run, model, featurizer, texts=X, counts=weights) is not None
    renamed = LinearModel(model.coef, model.intercept, ("berry", "tool"), "softmax")
    assert training.advise(run, renamed, featurizer, texts=X, counts=weights) is None
    assert training.advise(run, model, featurizer, texts=X[:0], counts=weights[:0]) is None
    first = ModelRelease.objects.get(project=crowd, version=1)
    ModelRelease.objects.filter(pk=first.pk).update(state="retired", retired_reason="old")
    assert training.advise(run, model, featurizer, texts=X, counts=weights) is not None
    second = TrainingRun.objects.get(release__version=3)
    assert training.advise(second, model, featurizer, texts=X, counts=weights) is None


def put(release, **values):
    told = {"models_compared": 4, "agreement": 0.99, "threshold": 0.975, "moved": 0.01, "stop": True}
    return StoppingAdvice.objects.create(release=release, **(told | values))


def test_the_database_keeps_the_verdict_to_its_numbers(crowd):
    release = reach(crowd, 1)
    for broken, rule in (
        ({"stop": False}, "follows"),
        ({"agreement": 0.5}, "follows"),
        ({"moved": 1.5}, "range"),
        ({"models_compared": 1}, "range"),
        ({"agreement": 2.0}, "range"),
    ):
        with pytest.raises(IntegrityError, match=f"learner_stopping_advice_{rule}"), transaction.atomic():
            put(release, **broken)
    advice = put(release)
    with as_owner():
        for change in ("UPDATE learner_stoppingadvice SET moved = 0", "DELETE FROM learner_stoppingadvice"):
            with pytest.raises(IntegrityError, match="stays"), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(change)
        with pytest.raises(IntegrityError, match="stays"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("TRUNCATE learner_stoppingadvice")
    assert StoppingAdvice.objects.get() == advice
