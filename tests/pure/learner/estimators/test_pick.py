import numpy as np
import pytest

from dpal.recompute import recompute
from dpal.recompute.pick import place_of, weights_between
from dpal.recompute.transcript import Transcript, Weights
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.pick import PickedFit
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from privacy.accounting.events import LabelTrainingEvent, PickedFitEvent
from privacy.mechanisms.randomness import SimulationRandom

CLASSES = [0, 1, 2]
GAUSSIAN = {"softmax steps": PrivateSoftmaxSteps, "sums": PrivateSums}
METHODS = ("objective", "output")


def estimators(epsilon=2.0, **parameters):
    made = {name: kind(epsilon, classes=CLASSES, **parameters) for name, kind in GAUSSIAN.items()}
    for method in METHODS:
        made[method] = PrivateLogisticRegression(epsilon, 3.0, method, classes=CLASSES, **parameters)
    return made


def rows_of(rng, n):
    y = rng.integers(0, 3, n)
    X = np.eye(3)[y] + rng.normal(size=(n, 3)) * 0.3
    return X / np.linalg.norm(X, axis=1, keepdims=True) * (1 - 1e-9), y


def accuracy(model, X, y):
    return float(((X @ model.coef_.T + model.intercept_).argmax(axis=1) == y).mean())


GOOD = LinearModel(np.eye(3) * 4, np.zeros(3), ("0", "1", "2"), "softmax")
TURNED = LinearModel(np.roll(np.eye(3), 1, axis=0) * 4, np.zeros(3), ("0", "1", "2"), "softmax")


@pytest.mark.parametrize("name", estimators())
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_fit_and_pick_cost_what_the_fit_would_have_cost(name, epsilon):
    """A series of blocks gives each of them the price of the first, whether that could start from a model or not."""
    estimator = estimators(epsilon)[name]
    event, whole = PickedFit(estimator).event_for(8), estimator.event_for(8)
    assert isinstance(event, PickedFitEvent)
    cost, alone = event.cost(), whole.cost()
    assert 0.999 * alone.epsilon <= cost.epsilon <= alone.epsilon
    assert cost.delta <= alone.delta
    # The fit inside has less than all.
    inner = event.inner.cost()
    assert inner.rho < 0.95 * alone.rho if name in GAUSSIAN else inner.epsilon == pytest.approx(0.9 * alone.epsilon)
    assert event.in_rho().cost().rho <= alone.rho


@pytest.mark.parametrize("method", ["objective", "output"])
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_fit_and_pick_cost_for_another_answer_what_the_fit_would_have_cost(method, epsilon):
    fit = PrivateLogisticRegression(epsilon, 3.0, method, classes=CLASSES)
    picked, alone = (
        LabelTrainingEvent(each.event_for(8), "logistic").cost(adjacency="replace").epsilon
        for each in (PickedFit(fit, of_answers=True), fit)
    )
    assert 0.999 * alone <= picked <= alone
    unaware = LabelTrainingEvent(PickedFit(fit).event_for(8), "logistic").cost(adjacency="replace").epsilon
    assert unaware > 1.05 * alone


@pytest.mark.parametrize("name", estimators())
def test_a_fit_of_noise_is_not_released_in_place_of_a_good_model(name):
    """With ten rows and hardly any epsilon a fit is noise, which passes in 10 %: false alarm below 1e-4."""
    rng = np.random.default_rng(1)
    X, y = rows_of(rng, 10)
    kept = 0
    for seed in range(20):
        estimator = estimators(0.05, prior=GOOD, random_state=SimulationRandom(seed))[name]
        picked = PickedFit(estimator, GOOD).fit(X, y)
        kept += np.array_equal(picked.coef_, GOOD.coef)
        assert not picked.releasable
        assert np.array_equal(recompute(Transcript.from_json(picked.transcript_.to_json())).coef, picked.coef_)
    assert kept >= 12


@pytest.mark.parametrize("name", estimators())
def test_a_better_fit_is_released(name):
    rng = np.random.default_rng(2)
    X, y = rows_of(rng, 2_000)
    estimator = estimators(8.0, prior=TURNED, random_state=SimulationRandom(1))[name]
    picked = PickedFit(estimator, TURNED).fit(X, y)
    assert accuracy(picked, *rows_of(rng, 1_000)) > 0.9
    assert not np.array_equal(picked.coef_, TURNED.coef)
    assert picked.multiclass == estimator.multiclass
    again = recompute(Transcript.from_json(picked.transcript_.to_json()))
    assert np.array_equal(again.coef, picked.coef_)
    assert np.array_equal(again.intercept, picked.intercept_)


def test_nothing_is_counted_without_a_model_before():
    X, y = rows_of(np.random.default_rng(3), 200)
    picked = PickedFit(PrivateSums(2.0, classes=CLASSES, random_state=SimulationRandom(1))).fit(X, y)
    np.testing.assert_array_equal(picked.coef_, picked.fit_.coef_)


def test_noise_of_the_operating_system_is_releasable():
    X, y = rows_of(np.random.default_rng(4), 50)
    for estimator in estimators(prior=GOOD).values():
        assert PickedFit(estimator, GOOD).fit(X, y).releasable


def test_candidates_lie_between_the_models_whatever_their_lengths():
    long = Weights(GOOD.coef * 100 + 5.0, np.full(3, 7.0))
    fitted = Weights(TURNED.coef, TURNED.intercept)
    first, *between, last = weights_between(long, fitted)
    assert first is long
    assert last is fitted
    middle = np.eye(3) + np.roll(np.eye(3), 1, axis=0) - 2 / 3
    np.testing.assert_allclose(between[1].coef, 2 * middle)
    np.testing.assert_allclose(between[1].intercept, 0, atol=1e-9)
    assert len(between) == 3


def test_of_two_classes_one_vector_speaks_for_the_second():
    rng = np.random.default_rng(5)
    X, y = rows_of(rng, 1_000)
    X, y = X[y < 2], y[y < 2]
    wrong = LinearModel(np.array([[4.0, -4.0, 0.0]]), np.zeros(1), ("0", "1"), "softmax")
    estimator = PrivateSoftmaxSteps(4.0, classes=[0, 1], prior=wrong, random_state=SimulationRandom(1))
    picked = PickedFit(estimator, wrong).fit(X, y)
    assert float((((X @ picked.coef_[0] + picked.intercept_[0]) > 0) == y).mean()) > 0.9


def test_of_two_classes_the_model_before_fades_as_labels_come():
    """Labels that are few beside the noise of a count leave it a candidate as it is."""
    X, y = rows_of(np.random.default_rng(5), 1_000)
    X, y = X[y < 2], y[y < 2]
    good = LinearModel(np.array([[-4.0, 4.0, 0.0]]), np.zeros(1), ("0", "1"), "softmax")
    for number, first in ((5, 0.0), (600, 0.95)):
        parameters = {"classes": [0, 1], "prior": good, "random_state": SimulationRandom(1)}
        picked = PickedFit(PrivateSoftmaxSteps(4.0, **parameters), good).fit(X[:number], y[:number])
        grid = picked.transcript_.parameters["grid"]
        assert (grid[0], grid[-1], len(grid)) == (pytest.approx(first, abs=0.03), 1.0, picked.event_for(3).candidates)
        assert np.array_equal(recompute(Transcript.from_json(picked.transcript_.to_json())).coef, picked.coef_)


def test_a_fit_is_not_flattered_by_its_own_rows():
    """What a fit gets right of its own rows alone is counted out, of each candidate its part."""
    answer = np.array([5.0, 9.0, 12.0, 14.0])
    assert place_of(answer, 4.0) == 4
    assert place_of(answer, 4.0, flattery=10.0) == 3
    assert place_of(answer, 4.0, flattery=14.0) == 0
    X, y = rows_of(np.random.default_rng(3), 400)
    for examples, expected in ((True, 0.75 * 20), (False, 0.0)):
        fitted = PickedFit(PrivateSoftmaxSteps(classes=CLASSES, from_examples=examples, random_state=1), GOOD).fit(X, y)
        assert fitted.transcript_.parameters["flattery"] == pytest.approx(expected, rel=0.1)
        assert np.array_equal(recompute(fitted.transcript_).coef, fitted.coef_)


@pytest.mark.parametrize("kind", GAUSSIAN.values())
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_a_third_class_leaves_no_series_that_two_classes_opened(kind, epsilon):
    """Counts have another share of the budget for two classes, and together both cost no more for three."""
    two, three = (PickedFit(kind(epsilon, classes=list(range(number)))).event_for(8) for number in (2, 3))
    assert two.scale < three.scale
    assert three.cost().epsilon <= two.cost().epsilon
    assert three.cost().rho <= two.cost().rho
