import numpy as np
import pytest

from learner.linear_model import LinearModel
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from privacy.mechanisms.randomness import SimulationRandom

RNG = SimulationRandom(0)
MIDDLES = np.eye(6, dtype=np.float32)
MODEL = LinearModel(8 * np.eye(6)[:3], np.zeros(3), ("a", "b", "c"), "softmax")


def texts(*, each=40, spread=0.05, seed=4):
    groups = np.repeat(np.arange(6), each)
    noise = np.random.default_rng(seed).normal(size=(len(groups), 6)) * spread
    return (MIDDLES[groups] + noise).astype(np.float32), groups


def ask(X, n, *, model=None, counts=None, strategy=None):
    return (strategy or ClusteredUncertainty()).query(X, np.arange(len(X)), model, n, RNG, counts=counts)


def test_the_first_batch_has_one_text_of_every_group():
    X, groups = texts()
    assert sorted(groups[ask(X, 6)]) == [0, 1, 2, 3, 4, 5]


def test_what_was_asked_before_draws_no_middle():
    """Groups of which one text was asked are left alone; a twin that forgets what was asked goes there again."""
    X, groups = texts()
    asked = [np.flatnonzero(groups == group)[0] for group in (0, 2, 4)]
    left = np.setdiff1d(np.arange(len(X)), asked)
    asked = np.array(asked)
    certain, response = ClusteredUncertainty("entropy"), ClusteredUncertainty("response")
    assert set(groups[certain.query(X, left, None, 3, RNG, asked=asked)]) == {1, 3, 5}
    assert set(groups[certain.query(X, left, None, 3, RNG)]) != {1, 3, 5}
    # What was said of a question at random does not speak for its like.
    assert response.query(X, left, None, 3, RNG, asked=asked).tolist() == response.query(X, left, None, 3, RNG).tolist()


def test_a_text_that_was_emptied_covers_nothing():
    X, groups = texts()
    X = np.vstack([X, np.zeros((5, 6), dtype=np.float32)])
    emptied = np.arange(len(groups), len(X))
    picks = ClusteredUncertainty("entropy").query(X, np.arange(len(groups)), None, 6, RNG, asked=emptied)
    assert sorted(groups[picks]) == [0, 1, 2, 3, 4, 5]


def test_frequent_texts_stand_for_their_group():
    X, groups = texts()
    counts = np.ones(len(X))
    counts[7] = 10_000
    assert 7 in ask(X, 6, counts=counts)
    assert groups[ask(X, 1, counts=counts)] == groups[7]


@pytest.mark.parametrize("measure", ["response", "entropy", "margin", "least_confidence"])
def test_what_the_model_knows_is_not_asked(measure):
    """The model knows the first three groups; the others lie between its classes."""
    X, groups = texts(spread=0.01)
    picks = ask(X, 3, model=MODEL, strategy=ClusteredUncertainty(measure, epsilon=2.0))
    assert set(groups[picks]) == {3, 4, 5}


def test_a_batch_of_the_same_doubt_is_spread():
    """Ranking by doubt alone takes all from one group where that is a little more doubtful."""
    X, groups = texts(spread=0.01)
    X[groups == 3] *= 0.9
    asked = ask(X, 3, model=MODEL, strategy=ClusteredUncertainty("entropy"))
    assert sorted(groups[asked]) == [3, 4, 5]
