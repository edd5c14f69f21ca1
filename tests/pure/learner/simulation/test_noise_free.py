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
