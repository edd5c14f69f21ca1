import math

import pytest

from annotation.choices.planned_settings import planned_settings
from annotation.choices.presets import PRESETS, broken_rules
from annotation.choices.rules import batch_stream_epsilon
from learner.estimators.sums import PrivateSums
from learner.strategies.blocks import block_rates
from privacy.accounting.events import SecretBlockEvent
from privacy.accounting.series import even_training

PRESET = {**PRESETS["pool-experts"].defaults, "oracle": "trusted", "data_kind": "text", "classes": ["a", "b"]}


def settings(**changed):
    return PRESET | changed


def price(**changed):
    found = planned_settings(settings(**changed))
    return {name: value for name, value in found.items() if name.startswith("training_")}


def spent(planned, rate, growth, releases):
    training = PrivateSums(planned["training_epsilon"], delta=planned["training_delta"], classes=[0, 1]).event_for(8)
    before, costs = None, []
    for block in range(1, releases + 1):
        before = SecretBlockEvent.next_of(before, training, block=block, rates=block_rates(rate, growth))
        costs.append(before.cost())
    return math.fsum(cost.epsilon for cost in costs), math.fsum(cost.delta for cost in costs)


def test_the_preset_ships_what_is_planned_for_it():
    planned = planned_settings(settings(classes=["a", "b", "c"]))
    prices = {name: PRESET[name] for name in ("training_epsilon", "training_delta")}
    assert planned == prices | {"text_columns": 192, "sentence_network": True}
    assert planned_settings(PRESET) == prices | {"text_columns": 256, "sentence_network": False}


STREAM = {**PRESETS["fraud-stream"].defaults, "oracle": "trusted", "data_kind": "text", "classes": ["a", "b"]}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"pool_epsilon": 0.5},
        {"screen_high": 0.3, "screen_low": 0.3},
        {"update_policy": "flmb", "window_length": 50, "window_denominator": None},
        {"selection": "all", "update_policy": "flmb", "window_length": 50, "window_denominator": None},
    ],
)
def test_a_stream_spends_the_limit_once_and_no_more(changed):
    declared = STREAM | changed
    planned = planned_settings(declared)
    assert "training_delta" in planned
    assert broken_rules(declared | planned) == {}
    assert 0.998 * declared["pool_epsilon"] < batch_stream_epsilon(declared | planned) <= declared["pool_epsilon"]
    for name, price in planned.items():
        assert broken_rules(declared | planned | {name: 1.01 * price}) != {}


@pytest.mark.parametrize(
    ("rate", "growth", "releases"), [(0.1, 7, None), (0.1, 2, 2), (0.05, 7, 1), (0.2, 1, 3), (0.5, 7, None)]
)
@pytest.mark.parametrize("limit", [0.5, 2.0, 6.0])
def test_planned_blocks_spend_the_limit_and_no_more(rate, growth, releases, limit):
    declared = {"selection_rate": rate, "block_growth": growth, "maximum_releases": releases}
    planned = planned_settings(settings(**declared, pool_epsilon=limit))
    blocks = releases or len(block_rates(rate, growth))
    epsilon, delta = spent(planned, rate, growth, blocks)
    assert 0.998 * limit < epsilon <= limit
    assert 0.998 * 5e-6 < delta <= 5e-6
    # A hundredth more is too much.
    more = {name: 1.01 * price for name, price in planned.items()}
    assert (spent(more, rate, growth, blocks)[0] > limit, spent(more, rate, growth, blocks)[1] > 5e-6) == (True, True)


def test_a_second_attempt_at_any_block_is_more_than_is_left():
    training = PrivateSums(PRESET["training_epsilon"], delta=PRESET["training_delta"], classes=[0, 1]).event_for(8)
    before, paid = None, 0.0
    for block in (1, 2):
        before = SecretBlockEvent.next_of(before, training, block=block, rates=block_rates(0.1, 7))
        paid += before.cost().epsilon
        again = SecretBlockEvent.next_of(before, training, block=block, rates=block_rates(0.1, 7))
        assert paid + again.cost().epsilon > 2.0


def test_the_delta_of_all_blocks_is_divided_since_the_first_of_them_pays_it():
    for releases in (None, 1):
        planned = planned_settings(settings(maximum_releases=releases))
        assert 0.999 * 5e-6 < 0.8 * planned["training_delta"] <= 5e-6


def test_under_a_limit_that_others_share_each_block_pays_alone():
    shared = planned_settings(PRESET, shared_limit=True)
    alone = planned_settings(PRESET)
    assert shared["training_epsilon"] < alone["training_epsilon"]
    rates = block_rates(0.1, 7)
    assert even_training(2.0, 5e-6, rates, releases=2, as_series=False)[0] == pytest.approx(
        shared["training_epsilon"], rel=1e-3
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"oracle": "crowd"},
        {"arrival": "stream"},
        {"selection": "nothing of the kind"},
        {"pool_epsilon": 0.0},
        {"pool_epsilon": -1.0},
        {"pool_delta": 1.0},
        {"selection_rate": 1.5},
    ],
)
def test_where_something_else_decides_or_is_wrong_nothing_is_planned(changed):
    assert price(**changed) == {}
