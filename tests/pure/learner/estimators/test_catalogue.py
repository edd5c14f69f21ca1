"""Only estimators that add noise have a name that a project may store."""

from dataclasses import replace

import numpy as np
import pytest

from annotation.choices.catalogue import CATALOGUE
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.catalogue import words_for
from learner.estimators.choice import ConvexChoice, Shape
from learner.estimators.logistic import Logistic
from learner.estimators.planned import PlannedEstimator
from learner.estimators.softmax_steps import SoftmaxSteps
from learner.linear_model import LinearModel
from privacy.choices import Kind

SHAPE = Shape(classes=[0, 1], norm_bound=1.0, intercept_scaling=0.2)
NUMBERS = {"training_epsilon": 2.0, "training_delta": 1e-6, "regularization": 3.0}


def choice_called(name):
    return CATALOGUE.find(Kind.ESTIMATOR, name)


TRAINED = [choice.name for choice in CATALOGUE.of_kind(Kind.ESTIMATOR) if issubclass(choice, ConvexChoice)]


@pytest.mark.parametrize("name", TRAINED)
def test_every_name_trains_with_noise_at_the_price_it_tells(name):
    estimator = choice_called(name).of(NUMBERS).estimator(SHAPE)
    assert not isinstance(estimator, LogisticRegressionBaseline)
    cost = estimator.event_for(3).cost()
    assert 2.0 * (1 - 1e-6) <= cost.epsilon <= 2.0
    assert cost.delta == 0
    X, y = np.array([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]), np.array([0, 1])
    assert estimator.regularization == 3.0
    assert estimator.fit(X, y).releasable
    assert words_for(name)


def test_they_are_two():
    assert TRAINED == ["logistic", "logistic_output"]


@pytest.mark.parametrize("name", ["logistic_baseline", "LogisticRegressionBaseline", ""])
def test_a_twin_without_noise_has_no_name(name):
    assert choice_called(name) is None
    with pytest.raises(ValueError, match="no estimator is called"):
        words_for(name)


def test_the_release_before_is_what_convex_estimators_lean_on():
    prior = LinearModel(np.ones((1, 3)), np.zeros(1), ("a", "b"))
    shape = replace(SHAPE, prior=prior)
    assert Logistic.of(NUMBERS).estimator(shape).prior is prior


@pytest.mark.parametrize("number", [2, 3])
def test_what_is_planned_is_noisy_gradient_steps(number):
    estimator = PlannedEstimator.of(NUMBERS).estimator(replace(SHAPE, classes=list(range(number))))
    alike = SoftmaxSteps.of(NUMBERS).estimator(replace(SHAPE, classes=list(range(number))))
    assert type(estimator) is type(alike)
    assert estimator.get_params() == alike.get_params()


def test_what_several_choices_have_is_called_alike_by_each():
    """Histories, pages and programs know a parameter by its name alone."""
    labels = {}
    for choice in CATALOGUE.all():
        for each in choice.parameters():
            labels.setdefault(each.name, set()).add(each.label)
    assert {name: found for name, found in labels.items() if len(found) > 1} == {}


def test_a_delta_is_declared_once():
    found = [
        each
        for choice in CATALOGUE.of_kind(Kind.ESTIMATOR)
        for each in choice.parameters()
        if each.name == "training_delta"
    ]
    assert len(found) > 5
    assert all(each == found[0] for each in found)
