"""Screens: who gets which coin, what is examined, and that no neighbour is told apart beyond the charge."""

import math
from collections import Counter
from fractions import Fraction
from itertools import cycle, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learner.linear_model import LinearModel
from learner.strategies import screen as screen_module
from learner.strategies.bernoulli_screen import BernoulliScreen, shrinking_threshold
from learner.strategies.exponential_screen import ExponentialScreen
from learner.strategies.exposure_capped import ExposureCappedScreen
from learner.strategies.random import RandomChoice
from learner.strategies.secret_sample import SecretSample
from learner.strategies.top_c import TopC
from privacy.accounting.events import BernoulliScreenEvent, MinibatchSgdEvent, ScreenRoundEvent
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.screening import RESOLUTION, REST_BITS

AXIS = LinearModel(np.array([[2.0, 0.0, 0.0]]), np.zeros(1), ("no", "yes"))
RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, size=(400, 3)).astype(np.float32)
ROWS = np.arange(400)
SCREENS = [
    BernoulliScreen(),
    BernoulliScreen(0.3, 0.01),
    ExponentialScreen(),
    ExponentialScreen(0.1, norm_bound=2.0, epsilon=3.0),
    ExposureCappedScreen(),
]


def test_bernoulli_slab_is_where_closeness_reaches_the_threshold():
    wanted = BernoulliScreen(0.5, 0.125, threshold=0.8).probabilities(X, ROWS, AXIS)
    closeness = np.exp(-np.abs(X[:, 0]))
    assert wanted.tolist() == np.where(closeness >= 0.8, 0.5, 0.125).tolist()
    assert {0.5, 0.125} == set(wanted)


def test_thresholds_shrink_the_slab_with_every_update():
    widths = [-math.log(shrinking_threshold(t)) for t in (0, 1, 2, 10)]
    assert widths == pytest.approx([1, 1, 0.5, 0.1])
    with pytest.raises(ValueError, match="updates"):
        shrinking_threshold(-1)


def test_exponential_probabilities_follow_equation_7():
    screen = ExponentialScreen(0.2, norm_bound=1.0, epsilon=2.0)
    distance = np.abs(X[:, 0].astype(float))
    expected = np.exp(-np.maximum(0.2, distance) * 2.0 / 0.8)
    np.testing.assert_allclose(screen.probabilities(X, ROWS, AXIS), expected, rtol=1e-6)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
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


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_charge_covers_the_exact_probabilities(screen):
    """Both answers, between the two ends of what the coins can show, in rational arithmetic."""
    q_hi, q_lo = screen.rates
    assert Fraction(q_lo) <= screen.low <= screen.high <= Fraction(q_hi)
    worst = max(screen.high / screen.low, (1 - screen.low) / (1 - screen.high))
    event = screen.event_for(pool_size=400, picks=9, series="single")
    assert math.log(worst) <= event.cost().epsilon


@given(seed=st.integers(0, 2**32), n=st.integers(1, 60), block=st.sampled_from([1, 7, 8192]))
@settings(max_examples=40, deadline=None)
def test_examined_are_all_up_to_the_last_pick(seed, n, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screen_module, "BLOCK_ROWS", block)
        done = BernoulliScreen(0.3, 0.1).screen(X, ROWS, AXIS, n, SimulationRandom(seed))
    assert len(set(done.examined.tolist())) == len(done.examined)
    places = np.flatnonzero(np.isin(done.examined, done.selected))
    assert done.examined[places].tolist() == done.selected.tolist()
    if len(done.selected) == n:
        assert done.examined[-1] == done.selected[-1]
    else:
        assert len(done.examined) == 400


def test_examination_order_is_uniform_and_ignores_the_records():
    """Seeded: the first record examined, over 2,000 passes of 4 records; a share off by 5 sigma would fail."""
    candidates = np.arange(4)
    first = Counter(
        int(BernoulliScreen(0.9, 0.9).screen(X, candidates, AXIS, 1, SimulationRandom(seed)).examined[0])
        for seed in range(2_000)
    )
    assert all(abs(count - 500) < 5 * math.sqrt(2_000 * 0.25 * 0.75) for count in first.values())


def test_looks_are_counted_and_never_exceed_the_cap():
    looks = None
    unseen, rounds = np.arange(400), 0
    while unseen.size:
        screen = ExposureCappedScreen(0.2, 0.05, exposures=3, looks=looks)
        done = screen.screen(X, ROWS, AXIS, 15, SimulationRandom(rounds))
        before = np.zeros(400, dtype=int) if looks is None else looks
        assert (before[done.examined] < 3).all()
        looks = screen.looks_after(done, n_rows=400)
        assert (looks <= 3).all()
        assert (looks[done.selected] == 3).all()
        unseen, rounds = np.flatnonzero(looks < 3), rounds + 1
    assert rounds > 5
    exhausted = ExposureCappedScreen(0.2, 0.05, exposures=3, looks=looks)
    assert not exhausted.query(X, ROWS, AXIS, 25, SimulationRandom(0)).size


def test_one_entry_pays_for_all_rounds_of_a_capped_screen():
    screen = ExposureCappedScreen(0.5, 0.25, exposures=4)
    opened = screen.event_for(pool_size=9, picks=1, series="opened")
    following = screen.event_for(pool_size=9, picks=1, series="continued")
    assert opened.cost().epsilon == pytest.approx(3 * math.log(0.75 / 0.5) + math.log(2))
    assert isinstance(following, ScreenRoundEvent)
    following.check_parent(opened)
    assert following.cost().epsilon == 0


def course_probability(rates, exposures):
    """All courses of one record under given rates: selected at look k, or never."""
    alive, courses = Fraction(1), []
    for rate in rates[:exposures]:
        courses.append(alive * rate)
        alive *= 1 - rate
    return [*courses, alive]


@pytest.mark.parametrize("exposures", [1, 2, 3])
def test_capped_courses_of_neighbours_differ_by_at_most_the_charge(exposures):
    """Exact enumeration over every way two records may be rated, round by round; the worst reaches the charge."""
    screen = ExposureCappedScreen(0.5, 0.125, exposures=exposures)
    worst = Fraction(1)
    for first in product([screen.high, screen.low], repeat=exposures):
        for second in product([screen.high, screen.low], repeat=exposures):
            pairs = zip(course_probability(first, exposures), course_probability(second, exposures), strict=True)
            worst = max([worst, *(p / q for p, q in pairs)])
    charged = screen.event_for(pool_size=9, picks=1, series="single").cost().epsilon
    assert math.log(worst) == pytest.approx(charged, rel=1e-9)
    assert math.log(worst) <= charged


def test_secret_sample_ignores_how_many_were_asked_for():
    sizes = [len(SecretSample(0.5).query(X, ROWS, None, n, SimulationRandom(3))) for n in (0, 1, 400)]
    assert sizes[0] == sizes[1] == sizes[2] > 150


def test_secret_release_is_amplified_by_the_rate():
    training = MinibatchSgdEvent(1.0, 5)
    sample = SecretSample(0.25)
    assert sample.event_for(pool_size=400, picks=100, series="single").cost().epsilon == 0
    assert sample.release_event(training).cost().epsilon == pytest.approx(math.log(1 + 0.25 * math.expm1(1.0)))


def test_a_stream_is_charged_at_the_rates_of_its_screen():
    update = MinibatchSgdEvent(1.0, 3)
    visible = BernoulliScreen(0.5, 0.25).stream_event(update, selection_visible=True, schedule="flmb")
    assert visible.cost().epsilon == pytest.approx(math.log(2) + 1)
    hidden = ExponentialScreen().stream_event(update, selection_visible=False, schedule="flsw")
    assert hidden.cost().epsilon == pytest.approx(math.log(1 + math.exp(-1) * math.expm1(1)))


def test_equal_rates_cost_nothing_and_different_ones_do():
    assert BernoulliScreenEvent(*BernoulliScreen(0.3, 0.3).rates).cost().epsilon == 0
    assert BernoulliScreenEvent(*BernoulliScreen(0.3, 0.2).rates).cost().epsilon > 0


def test_strategies_that_may_not_fill_a_batch_say_so():
    assert RandomChoice.fills_batch
    assert TopC.fills_batch
    assert not any(type(screen).fills_batch for screen in SCREENS)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BernoulliScreen(0.1, 0.2), "low must be"),
        (lambda: BernoulliScreen(1.0, 0.2), "probability must lie"),
        (lambda: BernoulliScreen(threshold=0.0), "threshold must lie"),
        (lambda: ExponentialScreen(0.0), "threshold must lie"),
        (lambda: ExponentialScreen(epsilon=-1.0), "epsilon must be"),
        (lambda: ExposureCappedScreen(exposures=0), "exposures must be"),
        (lambda: SecretSample(0.0), "probability must lie"),
    ],
)
def test_parameters_are_checked(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_looks_must_fit_the_feature_file():
    with pytest.raises(ValueError, match="looks must have"):
        ExposureCappedScreen(looks=[0, 1]).query(X, ROWS, AXIS, 3, SimulationRandom(0))
