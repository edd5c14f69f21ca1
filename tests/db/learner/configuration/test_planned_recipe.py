import numpy as np
import pytest
from django.core.management import call_command

from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.features.static_encoder import StaticEncoder
from learner.linear_model import LinearModel
from learner.pools.configuration import estimator_of, featurizer_of
from learner.pools.selectors import beaten_by
from learner.pools.starts import described_model, described_prior
from tests import learning
from tests.factories import make_user, open_preset

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = [
    *(f"fruit: {first} and {{plum|grape}}" for first in ("apple", "pear", "melon")),
    *(f"tool: {first} and {{saw|chisel}}" for first in ("hammer", "drill", "wrench")),
]
PAYABLE = {"pool_epsilon": 400.0, "pool_delta": 1e-3, "training_epsilon": 50.0}


def opened(classes, **settings):
    return open_preset(
        make_user(),
        "pool-experts",
        name="Planned",
        data_kind="text",
        classes=classes,
        question="What is it?",
        **settings,
    )


def test_texts_go_through_the_encoder_that_ships_and_any_number_of_classes_learns_by_steps():
    two, four = opened(["a", "b"]), opened(["a", "b", "c", "d"])
    assert isinstance(featurizer_of(two), StaticEncoder)
    assert (featurizer_of(two).dimension, featurizer_of(four).dimension) == (256, 192)
    assert isinstance(estimator_of(two, featurizer_of(two)), PrivateSoftmaxSteps)
    assert isinstance(estimator_of(four, featurizer_of(four)), PrivateSoftmaxSteps)
    # One price, whatever the number of classes.
    hundred = opened([f"class {number}" for number in range(50)])
    prices = {estimator_of(each, featurizer_of(each)).event_for(128).cost() for each in (two, four, hundred)}
    assert len(prices) == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("estimator", ["planned", "softmax_steps", "sums"])
def test_a_project_releases_by_it_and_the_ledger_holds_what_it_cost(estimator):
    project = learning.open_secret(
        make_user(), features="planned", estimator=estimator, training_delta=1e-6, text_columns=16, **PAYABLE
    )
    learning.fill_trusted(project, number=200)
    release = learning.run_to_release(project, make_user(), version=2)
    assert release.features["kind"] == "static_encoder"
    assert release.event["kind"] == "secret_block"
    assert release.evaluations.get().correct >= 45  # of 60; so little noise leaves no fewer
    call_command("audit_ledger")


def test_more_than_two_classes_are_probabilities_of_one_softmax():
    project = learning.open_trusted(
        make_user(),
        classes=["fruit", "tool", "neither"],
        features="planned",
        estimator="planned",
        selection="random",
        training_delta=1e-6,
        text_columns=16,
        **PAYABLE,
    )
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    model = LinearModel.from_json(release.weights)
    assert (model.multiclass, model.coef.shape) == ("softmax", (3, 16))
    assert np.allclose(model.probabilities(model.decision_function(np.eye(16)[:4])).sum(axis=1), 1)
    assert release.event["kind"] == "picked_fit"
    assert release.event["inner"]["kind"] == "centered_gradient_steps"
    # Class names alone are a version 0.
    assert release.evaluations.get().described_correct > 0


def test_words_about_classes_are_a_model_before_any_answer_and_stand_beside_every_accuracy():
    project = learning.open_secret(
        make_user(), features="planned", estimator="planned", training_delta=1e-6, class_descriptions=WORDS, **PAYABLE
    )
    learning.fill_trusted(project, number=200)
    model = described_model(project)
    said = featurizer_of(project).transform(["apple pear", "drill and saw"])
    assert model.leaders(model.decision_function(said)).tolist() == [0, 1]
    assert described_prior(project).coef.shape == (1, 256)
    release = learning.run_to_release(project, make_user(), version=1)
    measured = release.evaluations.get()
    assert measured.described_correct == measured.measures["version_0"]["correct"] >= 50  # of 60
    # A release that is right less often than its words is not worth its epsilon, and says so.
    expected = "" if measured.correct > measured.described_correct else "version_0"
    assert beaten_by(release) in {expected, "constant" if measured.correct <= measured.constant_correct else expected}


@pytest.mark.parametrize("estimator", ["logistic", "logistic_output"])
def test_logistic_regression_leans_on_examples_and_never_on_names_or_a_sentence(estimator):
    chosen = {"estimator": estimator, "training_delta": 0.0}
    project = opened(["fruit", "tool"], class_descriptions=WORDS, **chosen)
    assert described_prior(project).to_json() == described_model(project).to_json()
    few = ["fruit: what grows on trees", "tool: what a workshop has"]
    for words in ([], few):
        assert described_prior(opened(["fruit", "tool"], class_descriptions=words, **chosen)) is None
