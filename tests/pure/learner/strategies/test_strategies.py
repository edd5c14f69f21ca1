import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.choices.catalogue import CATALOGUE
from learner.linear_model import LinearModel
from learner.strategies import random, scoring, top_c, uncertainty
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.blocks import draw_blocks
from learner.strategies.catalogue import CHOICES
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from learner.strategies.every_record import EveryRecord
from learner.strategies.random import RandomChoice
from learner.strategies.rows import NO_ROWS, ListedRows, OpenRows, WatchedRows
from learner.strategies.secret_sample import SecretSample
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty
from privacy.accounting.events import (
    MinibatchSgdEvent,
    PostProcessingEvent,
    RandomChoiceEvent,
    SecretChoiceEvent,
    event_from_json,
)
from privacy.choices import Kind
from privacy.errors import UnsoundCombination
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.top_c import select_top_c

RNG = np.random.default_rng(11)
X = RNG.uniform(-0.2, 0.2, size=(120, 6)).astype(np.float32)
BINARY = LinearModel(RNG.normal(size=(1, 6)), RNG.normal(size=1) / 20, ("no", "yes"))
THREE_CLASSES = LinearModel(RNG.normal(size=(3, 6)), RNG.normal(size=3) / 20, ("a", "b", "c"))
ZERO = LinearModel(np.zeros((1, 6)), np.zeros(1), ("no", "yes"))


def registered():
    """Return the strategy of every choice that is registered, as its defaults make it."""
    return [choice.of({}).strategy() for choice in CATALOGUE.of_kind(Kind.STRATEGY)]


NAMED = {strategy.name: strategy for strategy in (type(choice().strategy()) for choice in CHOICES)}
# Further parameters, beside what is registered.
STRATEGIES = [
    RandomChoice(),
    TopC(),
    TopC(4.0, reach=0.1),
    Uncertainty(),
    Uncertainty("margin"),
    Uncertainty("least_confidence"),
    ClusteredUncertainty(),
    ClusteredUncertainty("entropy"),
    BernoulliScreen(),
    BernoulliScreen(0.02, 0.02, threshold=1.0),
    SecretSample(0.3),
    *registered(),
]


@pytest.fixture(params=STRATEGIES, ids=lambda strategy: strategy.name)
def strategy(request):
    return request.param


@pytest.fixture(params=[BINARY, THREE_CLASSES, ZERO], ids=["binary", "three", "zero"])
def model(request):
    return request.param


def chosen(strategy, candidates, n, *, model=BINARY, seed=1):
    return strategy.query(X, np.asarray(candidates), model, n, SimulationRandom(seed))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
@given(candidates=st.lists(st.integers(0, 119), unique=True, max_size=40), n=st.integers(0, 50), seed=st.integers(0, 9))
def test_picks_are_distinct_candidates_in_the_right_number(strategy, candidates, n, seed):
    picks = chosen(strategy, np.array(candidates, dtype=np.int64), n, seed=seed)
    assert picks.dtype == np.int64
    assert len(picks) == min(n, len(candidates)) or not strategy.fills_batch
    assert len(picks) <= n or strategy.hidden
    assert len(set(picks.tolist())) == len(picks)
    assert set(picks.tolist()) <= set(candidates)


def test_same_randomness_same_picks(strategy, model):
    np.testing.assert_array_equal(
        chosen(strategy, np.arange(120), 20, model=model), chosen(strategy, np.arange(120), 20, model=model)
    )


def test_order_of_candidates_does_not_matter(strategy, model):
    shuffled = np.random.default_rng(2).permutation(120)
    np.testing.assert_array_equal(
        chosen(strategy, shuffled, 20, model=model), chosen(strategy, np.arange(120), 20, model=model)
    )


def test_only_randomised_strategies_depend_on_the_seed(strategy):
    picks = {tuple(chosen(strategy, np.arange(120), 20, seed=seed)) for seed in range(5)}
    assert (len(picks) == 1) == strategy.post_processing_only


def test_rows_outside_the_candidates_do_not_matter(strategy, model):
    candidates = np.arange(30, 90)
    other = np.array(X)
    other[:30] = 9.0
    other[90:] = np.nan
    picks = strategy.query(other, candidates, model, 10, SimulationRandom(3))
    np.testing.assert_array_equal(picks, chosen(strategy, candidates, 10, model=model, seed=3))


def test_exact_choices_are_for_public_input_alone(strategy):
    """What uses no noise must not be offered in front of raw records."""
    assert strategy.post_processing_only == (strategy.oracles == frozenset({"crowd"}))


def test_each_strategy_stands_before_the_annotators_it_is_proved_for():
    """Written down here once more, by hand: a strategy that widens its own list must not pass by its own word.

    What hides behind secret coins is seen by whoever is asked, and what scores raw records tells a crowd about them.
    """
    proved = {
        "random": {"trusted", "crowd"},
        "uncertainty": {"crowd"},
        "clustered_uncertainty": {"crowd"},
        "top_c": {"trusted"},
        "bernoulli_screen": {"trusted"},
        "secret_sample": {"trusted"},
    }
    assert {name: set(kind.oracles) for name, kind in NAMED.items()} == proved


def test_a_secret_sample_is_charged_at_its_rate():
    training = MinibatchSgdEvent(noise_scale=1 / 1.5, dimension=1)
    sample = SecretSample(0.4)
    expected = math.log(1 + 0.4 * (math.exp(1.5) - 1))
    assert sample.release_event(training).cost().epsilon == pytest.approx(expected, rel=1e-9)
    assert sample.event_for(pool_size=9, picks=0, series="single").rate == pytest.approx(0.4)


def test_other_oracles_are_refused(strategy):
    for oracle in ("trusted", "crowd"):
        if oracle in strategy.oracles:
            strategy.check_oracle(oracle)
        else:
            with pytest.raises(UnsoundCombination, match=strategy.name):
                strategy.check_oracle(oracle)


def test_a_missing_model_is_refused_where_needed(strategy):
    if strategy.needs_model:
        with pytest.raises(ValueError, match="needs a released model"):
            chosen(strategy, np.arange(9), 3, model=None)
    else:
        assert len(chosen(strategy, np.arange(9), 3, model=None)) == 3 or strategy.hidden


@pytest.mark.parametrize(
    ("candidates", "n", "message"),
    [
        ([1, 1], 1, "distinct"),
        ([-1, 2], 1, "candidates must be rows"),
        ([120], 1, "candidates must be rows"),
        ([1], -1, "n must be"),
    ],
)
def test_arguments_are_checked(strategy, candidates, n, message):
    with pytest.raises(ValueError, match=message):
        chosen(strategy, candidates, n)


def test_event_carries_what_the_choice_was(strategy):
    event = strategy.event_for(pool_size=120, picks=7, series="opened")
    assert event_from_json(event.to_json()) == event
    assert "7" in event.summary() or not strategy.fills_batch
    free = isinstance(event, RandomChoiceEvent | PostProcessingEvent | SecretChoiceEvent)
    equal_rates = getattr(event, "q_hi", 1) == getattr(event, "q_lo", 0)
    assert (event.cost().epsilon == 0) == (free or equal_rates)


def test_top_c_is_charged_for_its_place_in_the_series():
    costs = [
        TopC(0.25).event_for(pool_size=500, picks=9, series=s).cost().epsilon for s in ("continued", "single", "opened")
    ]
    assert costs == sorted(set(costs))


def test_the_catalogue_and_the_battery_hold_the_same_classes():
    assert set(NAMED.values()) == {type(strategy) for strategy in STRATEGIES}


def test_who_asks_about_every_record_asks_about_those_that_come():
    assert type(EveryRecord().strategy()) is RandomChoice


# Whoever declares a strategy elsewhere hands it to each of these.
BATTERY = (
    test_same_randomness_same_picks,
    test_order_of_candidates_does_not_matter,
    test_only_randomised_strategies_depend_on_the_seed,
    test_rows_outside_the_candidates_do_not_matter,
    test_exact_choices_are_for_public_input_alone,
    test_other_oracles_are_refused,
    test_a_missing_model_is_refused_where_needed,
    test_event_carries_what_the_choice_was,
)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("block", [7, 1000])
def test_rows_nobody_lists_are_chosen_as_listed_ones(strategy, model, block, monkeypatch):
    """From the same draws: by blocks or at once, whatever is left out of the pool."""
    for module in (top_c, uncertainty, scoring, random):
        monkeypatch.setattr(module, "default_block_rows", lambda dimension, outputs: block, raising=False)
        monkeypatch.setattr(module, "BLOCK_ROWS", block, raising=False)
    taken = np.array([0, 5, 6, 7, 60, 119])
    listed = np.setdiff1d(np.arange(120), taken)
    for n in (0, 1, 30, 200):
        expected = strategy.query(X, listed, model, n, SimulationRandom(n))
        found = strategy.choose(X, OpenRows(120, taken), model, n, SimulationRandom(n))
        assert found.tolist() == expected.tolist()


def test_blocks_of_top_c_choose_what_all_scores_at_once_choose(monkeypatch):
    """The noise of a candidate is what it was when all scores were held at once: draw for draw."""
    monkeypatch.setattr(top_c, "default_block_rows", lambda dimension, outputs: 9)
    strategy, rows = TopC(2.0), np.arange(120)
    scores = np.concatenate(list(strategy.uncertainties(X, rows, BINARY)))
    for seed in range(30):
        expected = select_top_c(scores, picks=11, scale=2.0, rng=SimulationRandom(seed))
        found = strategy.choose(X, OpenRows(120, rows[:0]), BINARY, 11, SimulationRandom(seed))
        assert found.tolist() == rows[expected].tolist()


def test_blocks_of_lots_choose_what_all_lots_at_once_choose(monkeypatch):
    monkeypatch.setattr(random, "BLOCK_ROWS", 10)
    for seed in range(30):
        lots = SimulationRandom(seed).words(120)
        expected = np.flatnonzero(lots <= np.sort(lots)[12])
        found = RandomChoice().choose(X, OpenRows(120, np.arange(0)), None, 13, SimulationRandom(seed))
        assert found.tolist() == expected.tolist()


class Tied(SimulationRandom):
    drawn = 0

    def words(self, count):
        self.drawn += 1
        return np.arange(count, dtype=np.uint64) // 8 if self.drawn == 1 else super().words(count)


def test_lots_that_tie_at_the_cut_are_drawn_again():
    rng = Tied(4)
    assert len(RandomChoice().choose(X, OpenRows(120, np.arange(0)), None, 13, rng)) == 13
    assert rng.drawn == 2


@given(
    total=st.integers(0, 60),
    taken=st.lists(st.integers(0, 59), max_size=80),
    size=st.integers(1, 70),
    asked=st.lists(st.integers(0, 59), max_size=20),
)
def test_open_rows_are_the_list_of_them(total, taken, size, asked):
    taken = np.array([row for row in taken if row < total], dtype=np.int64)
    found = OpenRows(total, taken)
    listed = np.setdiff1d(np.arange(total), taken)
    assert len(found) == len(listed)
    for rows in (found, ListedRows(listed)):
        blocks = list(rows.blocks(size))
        assert [row for block in blocks for row in block] == listed.tolist()
        assert all(len(block) == size for block in blocks[:-1])
        assert rows.at(np.arange(len(listed))[::-1]).tolist() == listed[::-1].tolist()
    assert np.flatnonzero(found.mask()).tolist() == listed.tolist()
    asked = np.array([row for row in asked if row < total], dtype=np.int64)
    assert found.only(asked).tolist() == [row for row in asked if row in listed]


def test_a_watch_hears_how_many_were_taken_out():
    heard = []
    watched = WatchedRows(OpenRows(10, np.array([3])), heard.append)
    assert [block.tolist() for block in watched.blocks(4)] == [[0, 1, 2, 4], [5, 6, 7, 8], [9]]
    assert heard == [0, 4, 8]
    assert (len(watched), watched.at(np.array([3])).tolist()) == (9, [4])


MODEL = LinearModel(np.array([[1.0]]), np.zeros(1), ("no", "yes"))


HELD = {
    "top-c": (0.2, lambda X, rows: TopC().choose(X, rows, MODEL, 100, SimulationRandom(1))),
    "by chance": (0.2, lambda X, rows: RandomChoice().choose(X, rows, None, 100, SimulationRandom(1))),
    "uncertainty": (0.2, lambda X, rows: Uncertainty().choose(X, rows, MODEL, 100, SimulationRandom(1))),
    "secret coins": (1.2, lambda X, rows: draw_blocks(len(rows), (0.1, 0.7), SimulationRandom(1))),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", HELD)
def test_a_choice_holds_next_to_nothing_of_a_candidate(name):
    """The largest memory of a choice grows by so many bytes a candidate; it may be 48."""
    most, choose = HELD[name]
    small, large = 1_500_000, 3_000_000
    X = np.linspace(-1, 1, large, dtype=np.float32)[:, None]
    peaks = []
    for count in (small, large):
        rows = OpenRows(count, NO_ROWS)
        tracemalloc.start()
        choose(X[:count], rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / (large - small) < most
