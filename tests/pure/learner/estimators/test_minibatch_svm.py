"""Mini-batch private SVM: exact sums, price, sensitivity, hidden and visible windows, states that survive."""

import json
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learner.estimators.minibatch_svm import (
    MiniBatchPrivateSVM,
    MiniBatchSVMBaseline,
    gaussian_ratio,
    hinge_gradient_sum,
)
from privacy.accounting.composition import gaussian_delta
from privacy.accounting.events import event_from_json

TRIALS = 200 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
GRID = 2.0**-30


def blobs(n=400, d=5, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    X = rng.normal(size=(n, d)) + 4 * np.eye(classes, d)[y]
    return X / (1.001 * np.linalg.norm(X, axis=1, keepdims=True)), y


def plain_sum(rows, places, weights):
    """The definition, record by record, in real numbers."""
    total = np.zeros_like(weights)
    for row, place in zip(rows, places, strict=True):
        scores = weights @ row
        if len(weights) == 1:
            sign = 1 if place == 1 else -1
            total[0] += sign * row * (sign * scores[0] < 1)
        else:
            rival = max((k for k in range(len(weights)) if k != place), key=lambda k: scores[k])
            if scores[place] - scores[rival] < 1:
                total[place] += row
                total[rival] -= row
    return total


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_sum_is_the_definition_up_to_the_grid(n_classes):
    X, y = blobs(classes=n_classes, d=6)
    weights = np.random.default_rng(1).normal(size=(1 if n_classes == 2 else n_classes, 6)) * 2
    total = hinge_gradient_sum(X, y, weights, grid=GRID)
    assert (total / GRID % 1 == 0).all()
    np.testing.assert_allclose(total, plain_sum(X, y, weights), atol=400 * GRID)
    assert not np.allclose(total, plain_sum(X, y, 0 * weights), atol=1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_empirical_sensitivity_stays_under_the_stated_one_and_reaches_it(n_classes):
    """Sums of random neighbours at random weights; in a null pair the odd record's gradient is all of the bound."""
    rng = np.random.default_rng(2)
    for adjacency, floor in (("null", 0.999), ("replace", 0.999)):
        estimator = MiniBatchPrivateSVM(classes=range(n_classes), adjacency=adjacency, fit_intercept=False)
        event = estimator.event_for(4)
        stated = (1 if adjacency == "null" else 2) * event.norm_bound + event.grid * math.sqrt(event.dimension)
        worst = 0.0
        for trial in range(TRIALS):
            X, y = blobs(n=int(rng.integers(1, 9)), d=4, classes=n_classes, seed=trial)
            X = X * 1.001
            weights = rng.normal(size=(1 if n_classes == 2 else n_classes, 4)) * rng.choice([0.1, 3.0])
            other_X, other_y = X.copy(), y.copy()
            if adjacency == "null":
                other_X[0] = 0.0
            elif n_classes == 2:
                other_X[0], other_y[0] = (-X[0], y[0]) if trial % 2 else (rng.permutation(X[0]), 1 - y[0])
            else:
                # The same two classes, exchanged: both vectors move by twice the record.
                other_X[0] = -X[0]
                weights *= 1e-9
            pair = [hinge_gradient_sum(*each, weights, grid=GRID) for each in ((X, y), (other_X, other_y))]
            distance = np.linalg.norm(pair[0] - pair[1])
            assert distance <= stated
            worst = max(worst, distance)
        assert worst >= (floor if n_classes == 2 or adjacency == "null" else 0.5) * stated


@given(
    epsilon=st.floats(0.01, 20),
    noise=st.sampled_from(["k_norm", "gaussian"]),
    adjacency=st.sampled_from(["null", "replace"]),
    n_classes=st.integers(2, 6),
    n_features=st.integers(1, 300),
    epochs=st.integers(1, 4),
    norm_bound=st.floats(0.1, 10),
)
@settings(deadline=None)
def test_the_price_is_epsilon_whatever_the_parameters(
    epsilon, noise, adjacency, n_classes, n_features, epochs, norm_bound
):
    delta = 1e-6 if noise == "gaussian" else 0.0
    estimator = MiniBatchPrivateSVM(
        epsilon,
        delta=delta,
        noise=noise,
        adjacency=adjacency,
        classes=range(n_classes),
        epochs=epochs,
        norm_bound=norm_bound,
    )
    event = estimator.event_for(n_features)
    assert event_from_json(event.to_json()) == event
    cost = event.cost(adjacency=adjacency)
    assert epsilon * (1 - 1e-6) <= cost.epsilon <= epsilon
    assert cost.delta == pytest.approx(delta)


@given(epsilon=st.floats(1e-3, 30), delta=st.floats(1e-12, 0.5))
def test_gaussian_ratio_meets_its_delta(epsilon, delta):
    ratio = gaussian_ratio(epsilon, delta)
    assert delta * (1 - 1e-4) <= gaussian_delta(ratio, epsilon) <= delta


@pytest.mark.parametrize("noise", ["k_norm", "gaussian"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit_keeps_its_promises(noise, n_classes):
    X, y = blobs(classes=n_classes)
    estimator = MiniBatchPrivateSVM(
        50.0, noise=noise, delta=1e-6 * (noise == "gaussian"), classes=list(range(n_classes))
    )
    assert not estimator.releasable
    assert estimator.fit(X, y) is estimator
    assert estimator.privacy_event_ == estimator.event_for(5)
    assert estimator.releasable
    assert estimator.updates_ == 8
    assert estimator.score(X, y) > 0.85
    assert np.allclose(estimator.predict_proba(X).sum(axis=1), 1)
    assert np.linalg.norm(estimator.weights_) <= estimator.radius * (1 + 1e-12)


def test_every_fit_draws_new_noise_and_a_seed_only_simulates():
    X, y = blobs(n=60)
    first, second = (MiniBatchPrivateSVM(classes=[0, 1]).fit(X, y).coef_ for _ in range(2))
    assert not np.array_equal(first, second)
    seeded = [MiniBatchPrivateSVM(classes=[0, 1], random_state=3).fit(X, y) for _ in range(2)]
    assert np.array_equal(seeded[0].coef_, seeded[1].coef_)
    assert not seeded[0].releasable


def test_an_empty_visible_window_changes_nothing_and_a_hidden_one_adds_noise():
    X, y = blobs(n=20)
    estimator = MiniBatchPrivateSVM(classes=[0, 1]).partial_fit(X, y)
    before = estimator.weights_.copy()
    estimator.partial_fit(X[:0], y[:0])
    assert np.array_equal(before, estimator.weights_)
    assert estimator.updates_ == 1
    estimator.partial_fit(X[:0], y[:0], denominator=20)
    assert not np.array_equal(before, estimator.weights_)
    assert estimator.updates_ == 2


def test_a_hidden_step_divides_by_the_public_denominator(monkeypatch):
    X, y = blobs(n=20)
    monkeypatch.setattr(MiniBatchPrivateSVM, "_noisy", lambda self, total: total)
    steps = [MiniBatchPrivateSVM(classes=[0, 1]).partial_fit(X, y, denominator=b).weights_ for b in (20, 40, None)]
    np.testing.assert_allclose(steps[0], 2 * steps[1], rtol=1e-12)
    np.testing.assert_array_equal(steps[0], steps[2])


def test_iterates_are_averaged_or_not(monkeypatch):
    X, y = blobs(n=100)
    monkeypatch.setattr(MiniBatchPrivateSVM, "_noisy", lambda self, total: total)
    averaged, last = (MiniBatchPrivateSVM(classes=[0, 1], average=flag, fit_intercept=False) for flag in (True, False))
    iterates = []
    for start in range(0, 100, 25):
        for estimator in (averaged, last):
            estimator.partial_fit(X[start : start + 25], y[start : start + 25])
        iterates.append(last.weights_)
    np.testing.assert_allclose(averaged.coef_, np.mean(iterates, axis=0))
    np.testing.assert_array_equal(last.coef_, iterates[-1])


def test_learning_goes_on_from_a_stored_state():
    X, y = blobs(n=100, classes=3)
    whole = MiniBatchPrivateSVM(5.0, classes=[0, 1, 2], random_state=1).partial_fit(X[:50], y[:50])
    state = json.loads(json.dumps(whole.state()))
    again = MiniBatchPrivateSVM(5.0, classes=[0, 1, 2], random_state=1).resume(state)
    assert np.array_equal(again.coef_, whole.coef_)
    assert again.state() == whole.state()
    assert again.simulated_
    assert again.privacy_event_ == whole.privacy_event_
    secure = MiniBatchPrivateSVM(5.0, classes=[0, 1, 2]).resume(state)
    assert not secure.releasable, "what a seed began stays a simulation"
    assert secure.partial_fit(X[50:], y[50:]).updates_ == 2


def test_the_baseline_takes_the_same_steps_without_noise_and_is_never_releasable():
    X, y = blobs()
    baseline = MiniBatchSVMBaseline(classes=[0, 1]).fit(X, y)
    assert not baseline.releasable
    assert baseline.score(X, y) > 0.95
    private = MiniBatchPrivateSVM(1e9, classes=[0, 1], batch_size=400).fit(X, y)
    whole = MiniBatchSVMBaseline(classes=[0, 1], batch_size=400).fit(X, y)
    np.testing.assert_allclose(private.coef_, whole.coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0.0),
        ("delta", 1e-6),
        ("noise", "laplace"),
        ("batch_size", 0),
        ("step_size", -1.0),
        ("radius", math.inf),
        ("regularization", -1.0),
        ("epochs", 0),
        ("norm_bound", math.nan),
        ("adjacency", "add_remove"),
        ("grid", 0.1),
        ("intercept_scaling", 0.0),
    ],
)
def test_parameters_out_of_range_are_refused_by_the_price_and_by_the_fit(name, value):
    estimator = MiniBatchPrivateSVM(**{"classes": [0, 1], name: value})
    X, y = blobs(n=10)
    with pytest.raises(ValueError, match=name):
        estimator.event_for(5)
    with pytest.raises(ValueError, match=name):
        estimator.fit(X, y)


def test_records_and_classes_must_be_as_declared():
    X, y = blobs(n=10)
    with pytest.raises(ValueError, match="must be declared"):
        MiniBatchPrivateSVM().fit(X, y)
    with pytest.raises(ValueError, match="must be declared"):
        MiniBatchPrivateSVM().event_for(3)
    with pytest.raises(ValueError, match="clip them first"):
        MiniBatchPrivateSVM(classes=[0, 1]).fit(X * 2, y)
    with pytest.raises(ValueError, match="not among"):
        MiniBatchPrivateSVM(classes=["a", "b"]).fit(X, np.array(["a", "b", "c"])[y + 1])
    with pytest.raises(ValueError, match="denominator"):
        MiniBatchPrivateSVM(classes=[0, 1]).partial_fit(X, y, denominator=0)
    with pytest.raises(ValueError, match="does not fit on the grid"):
        MiniBatchPrivateSVM(classes=[0, 1], grid=2.0**-50).fit(X, y)
    started = MiniBatchPrivateSVM().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="those of the first call"):
        started.partial_fit(X, y, classes=[1, 2])
    with pytest.raises(ValueError, match="features"):
        started.partial_fit(X[:, :3], y)


def test_a_slot_without_a_label_moves_no_other_row_to_another_batch(monkeypatch):
    """Which rows share a step depends on the slots alone; an unanswered slot only leaves its own gradient out."""
    X, y = np.eye(6) * 0.9, np.array([0, 1, 0, 1, 0, 1])
    taken = []

    def remember(self, rows, places, denominator):
        taken.append((sorted(rows.argmax(axis=1).tolist()), denominator))

    monkeypatch.setattr(MiniBatchPrivateSVM, "_step", remember)
    whole = MiniBatchPrivateSVM(1.0, classes=[0, 1], batch_size=4, random_state=5)
    whole.fit_slots(X, y, slots=np.arange(6) + 2, n_slots=9)
    with_all, taken[:] = list(taken), []
    whole.fit_slots(np.delete(X, 2, axis=0), np.delete(y, 2), slots=np.delete(np.arange(6) + 2, 2), n_slots=9)
    assert [size for _, size in taken] == [size for _, size in with_all] == [4, 4, 1]
    assert [[row for row in rows if row != 2] for rows, _ in with_all] == [rows for rows, _ in taken]


@pytest.mark.parametrize(
    ("slots", "n_slots", "message"),
    [([0, 0], 3, "distinct"), ([0], 3, "one for each"), ([0, 3], 3, "lie in"), ([-1, 0], 3, "lie in")],
)
def test_slots_are_checked(slots, n_slots, message):
    estimator = MiniBatchPrivateSVM(1.0, classes=[0, 1])
    with pytest.raises(ValueError, match=message):
        estimator.fit_slots(np.eye(2), [0, 1], slots=np.array(slots), n_slots=n_slots)


@pytest.mark.parametrize("labelled", [0, 3, 23])
def test_what_it_tells_of_its_steps_follows_from_the_slots_and_not_from_their_labels(labelled):
    X, y = blobs(n=23)
    told = []
    estimator = MiniBatchPrivateSVM(2.0, classes=[0, 1], batch_size=5, epochs=2, random_state=1)
    estimator.on_step = lambda done, total: told.append((done, total))
    estimator.fit_slots(X[:labelled], y[:labelled], slots=np.arange(labelled), n_slots=23)
    assert told == [(done, 10) for done in range(1, 11)]
    assert estimator.updates_ == 10
