"""The canary of randomised answers: it sings for our sampler, and not for one that lets twice as much through.

The draws are the operating system's. False alarm: < 5e-9 in all.
"""

import pytest

from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from learner.releases import canaries as canary_room
from learner.releases.canaries import plain_parameters, send_canary, stage_for
from privacy.accounting.answers import response_odds
from privacy.accounting.events import RandomizedAnswersEvent
from privacy.mechanisms.randomized_response import RandomizedResponse
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom

pytestmark = pytest.mark.statistical


class TwiceAsLoud(RandomizedAnswersClassifier):
    """Charged as its parent, with the weight of an epsilon twice as large."""

    @property
    def response(self):
        return RandomizedResponse(len(self.classes), response_odds(2 * self.answers.epsilon))


def estimator(epsilon, randomizations=1, kind=RandomizedAnswersClassifier):
    event = RandomizedAnswersEvent(epsilon, 5, randomizations=randomizations)
    return kind(event, classes=[0, 1, 2, 3, 4])


@pytest.mark.parametrize(("epsilon", "randomizations"), [(0.5, 1), (2.0, 1), (2.0, 2), (4.0, 1)])
def test_it_sings_for_the_sampler_and_not_for_one_twice_as_loud(epsilon, randomizations, monkeypatch):
    """False alarm: < 2e-9 each, exact sums over both counts; a twin twice as loud escapes below 1e-12."""
    monkeypatch.setattr(canary_room, "CONFIDENCE", 1 - 1e-9)
    sound = send_canary(estimator(epsilon, randomizations))
    assert sound.sings
    assert sound.charged == pytest.approx(epsilon * randomizations)
    assert sound.epsilon_lower_bound > 0.7 * sound.charged
    assert not send_canary(estimator(epsilon, randomizations, TwiceAsLoud)).sings


def test_every_response_of_it_is_the_operating_systems(monkeypatch):
    asked = []
    real = SecureRandom.words
    monkeypatch.setattr(SecureRandom, "words", lambda self, count: asked.append(count) or real(self, count))
    monkeypatch.setattr(SimulationRandom, "words", lambda *_: pytest.fail("a seeded draw"))
    send_canary(estimator(1.0).set_params(random_state=7), trials=20)
    assert asked


def test_its_charge_is_that_of_all_answers():
    stage = stage_for(estimator(1.5, 3))
    cost = estimator(1.5, 3).set_params(**plain_parameters(estimator(1.5, 3))).event_for(1).cost()
    assert stage.epsilon(stage.promised) == pytest.approx(cost.epsilon)
