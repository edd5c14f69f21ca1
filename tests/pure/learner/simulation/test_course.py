import numpy as np
import pytest

from learner.simulation.trusted import TrustedSettings, course
from privacy.mechanisms.randomness import SimulationRandom

CLASSES = ("a", "b", "c")


def clouds(n, *, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    rows = np.eye(3, 8)[labels] + 0.3 * rng.normal(size=(n, 8))
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-6)), labels


def played(*, prior=None, **given):
    settings = TrustedSettings.of({"selection_rate": "0.1", **given}, n_classes=3)
    rows, labels = clouds(2000, seed=1)
    test, truth = clouds(300, seed=2)
    found, asked = course(settings.suited, rows, labels, test, classes=CLASSES, prior=prior, rng=SimulationRandom(3))
    return [float(np.mean(answers == truth)) for answers in found], np.concatenate(asked)


@pytest.mark.parametrize("estimator", ["planned", "sums"])
def test_each_block_is_asked_about_once_and_the_last_model_is_good(estimator):
    reached, asked = played(estimator=estimator)
    assert len(reached) == 2
    assert len(np.unique(asked)) == len(asked)
    # Blocks hold 80 % of the records, five standard deviations either way.
    assert abs(len(asked) - 1600) < 5 * np.sqrt(2000 * 0.8 * 0.2)
    assert reached[-1] > 0.9


def test_the_limit_decides_how_good_it_is():
    assert played(pool_epsilon="0.01")[0][-1] < played()[0][-1] - 0.1
