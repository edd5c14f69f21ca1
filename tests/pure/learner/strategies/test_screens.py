import math
from fractions import Fraction
from itertools import cycle

import numpy as np
import pytest

from learner.linear_model import LinearModel
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.secret_sample import SecretSample
from privacy.accounting.events import BernoulliScreenEvent, MinibatchSgdEvent
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.screening import RESOLUTION, REST_BITS

AXIS = LinearModel(np.array([[2.0, 0.0, 0.0]]), np.zeros(1), ("no", "yes"))
RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, size=(400, 3)).astype(np.float32)
ROWS = np.arange(400)
SCREENS = [BernoulliScreen(), BernoulliScreen(0.3, 0.01)]


def test_bernoulli_slab_is_where_closeness_reaches_the_threshold():
    wanted = BernoulliScreen(0.5, 0.125, threshold=0.8).probabilities(X, ROWS, AXIS)
    closeness = np.exp(-np.abs(X[:, 0]))
    assert wanted.tolist() == np.where(closeness >= 0.8, 0.5, 0.125).tolist()
    assert {0.5, 0.125} == set(wanted)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: str(screen.rates))
@pytest.mark.parametrize("features", [X, X * 1e30, np.full_like(X, np.nan), np.full_like(X, np.inf)])
def test_every_record_gets_a_coin_between_the_rates(screen, features):
    """Coins from a source that returns the same uniform for all show the clamp from both sides."""
    low, high = float(screen.low), float(screen.high)
    with np.errstate(all="ignore"):
        assert not screen.decide(features, ROWS, AXIS, Fixed(high)).any()
        assert screen.decide(features, ROWS, AXIS, Fixed(low - 2.0**-53)).all()


class Fixed(SimulationRandom):
    """A source of which every coin draws the same number: the front bits of all coins, then the rest of each."""

    def __init__(self, value):
        super().__init__(0)
        front, rest = divmod(int(value * RESOLUTION), 2**REST_BITS)
        self.answers = cycle([front * (1 + 2**16 + 2**32 + 2**48), rest << 64 - REST_BITS])

    def words(self, count):
        return np.full(count, next(self.answers), dtype=np.uint64)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: str(screen.rates))
def test_the_charge_covers_the_exact_probabilities(screen):
    """Both answers, between the two ends of what the coins can show, in rational arithmetic."""
    q_hi, q_lo = screen.rates
    assert Fraction(q_lo) <= screen.low <= screen.high <= Fraction(q_hi)
    worst = max(screen.high / screen.low, (1 - screen.low) / (1 - screen.high))
    event = screen.event_for(pool_size=400, picks=9, series="single")
    assert math.log(worst) <= event.cost().epsilon


def test_secret_sample_ignores_how_many_were_asked_for():
    sizes = [len(SecretSample(0.5).query(X, ROWS, None, n, SimulationRandom(3))) for n in (0, 1, 400)]
    assert sizes[0] == sizes[1] == sizes[2] > 150


def test_secret_release_is_amplified_by_the_rate():
    training = MinibatchSgdEvent(1.0, 5)
    sample = SecretSample(0.25)
    assert sample.event_for(pool_size=400, picks=100, series="single").cost().epsilon == 0
    assert sample.release_event(training).cost().epsilon == pytest.approx(math.log(1 + 0.25 * math.expm1(1.0)))


def test_equal_rates_cost_nothing_and_different_ones_do():
    assert BernoulliScreenEvent(*BernoulliScreen(0.3, 0.3).rates).cost().epsilon == 0
    assert BernoulliScreenEvent(*BernoulliScreen(0.3, 0.2).rates).cost().epsilon > 0
