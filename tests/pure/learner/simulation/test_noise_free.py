import numpy as np
import pytest

from learner.simulation.trusted import STRENGTHS, clear_answers, strength_of


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=200)
    return rng.normal(size=(200, 3)) + 2.0 * labels[:, None], labels


def test_it_learns_what_there_is(rows):
    X, y = rows
    strength = strength_of(X[:100], y[:100])
    assert strength in STRENGTHS
    assert (clear_answers(X[:100], y[:100], X[100:], strength) == y[100:]).mean() > 0.9


def test_too_few_labels_take_a_middling_strength(rows):
    X, y = rows
    assert strength_of(X[:5], y[:5]) == 10.0
    assert strength_of(X[:20], np.array([1] + [0] * 19)) == 10.0


def test_one_class_is_said_of_everything(rows):
    X, _ = rows
    assert clear_answers(X[:3], np.array([1, 1, 1]), X[100:], 1.0).tolist() == [1] * 100
    assert clear_answers(X[:0], np.array([], dtype=np.int64), X[100:], 1.0).tolist() == [0] * 100
