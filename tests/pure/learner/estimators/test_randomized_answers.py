import numpy as np
import pytest

from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from privacy.accounting.events import RandomizedAnswersEvent
from privacy.mechanisms.randomized_response import RandomizedResponse


@pytest.mark.parametrize("randomizations", [1, 3])
def test_answers_that_are_said_alike_give_one_model(monkeypatch, randomizations):
    """Every response is the same in both worlds, whose answers differ for every question."""
    rng = np.random.default_rng(20_251_124)
    rows, truth, said = rng.normal(size=(60, 4)), rng.integers(3, size=60), rng.integers(3, size=60)
    monkeypatch.setattr(RandomizedResponse, "release", lambda self, classes, kept, *, rng: said)

    def fitted(answers):
        event = RandomizedAnswersEvent(2.0, 3, randomizations=randomizations)
        return RandomizedAnswersClassifier(event, classes=[0, 1, 2]).fit(rows, answers)

    here, there, other = fitted(truth), fitted((truth + 1) % 3), fitted(said)
    for model in (there, other):
        np.testing.assert_array_equal(here.coef_, model.coef_)
        np.testing.assert_array_equal(here.intercept_, model.intercept_)
    assert np.abs(here.coef_).max() > 0
