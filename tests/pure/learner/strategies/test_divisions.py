"""What a limit is divided into never costs more than the limit, whichever strategy divides it."""

import pytest

from annotation.choices.catalogue import CATALOGUE
from learner.strategies.base import SharedLimit
from learner.strategies.blocks import blocks_epsilon
from learner.strategies.divisions import MOST_TRAINING, largest_within, of_one_price
from privacy.accounting.screens import stream_epsilon
from privacy.choices import Kind

CHOICES = CATALOGUE.of_kind(Kind.STRATEGY)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
@pytest.mark.parametrize("limit", [0.5, 2.0, 9.0])
@pytest.mark.parametrize("stream", [False, True], ids=["pool", "stream"])
@pytest.mark.parametrize("hidden", [False, True], ids=["open", "hidden"])
def test_choosing_and_trainings_are_within_the_limit(choice, limit, stream, hidden):
    if (stream and "stream" not in choice.sound.arrivals) or (hidden and not stream):
        return
    shared = SharedLimit(
        epsilon=limit,
        releases=3,
        stream=stream,
        hidden=hidden,
        rounds=lambda strategy: strategy.event_for(pool_size=500, picks=20, series="opened").cost().epsilon,
    )
    for division in choice.of({}).divisions(shared):
        chosen = choice.of(division.changes)
        whole = division.choosing + (1 if stream else shared.releases) * division.training
        if chosen.block_rates:
            assert chosen.block_rates[0] == pytest.approx(division.rate, abs=2**-53)
            whole = blocks_epsilon(division.training, chosen.block_rates[: shared.releases])
        elif division.rate is not None:
            whole = stream_epsilon(*chosen.rates(), division.training, selection_visible=False, adjacency="null")
            assert division.asked == pytest.approx((chosen.rates()[0], choice.of({}).rates()[0]))
        assert 0 < whole <= limit * (1 + 1e-9)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
def test_what_asks_more_keeps_what_a_question_tells(choice):
    standing = choice.of({})
    asking = standing.asking(2.0)
    if asking:
        more = choice.of(asking)
        assert more.rates() == pytest.approx([2 * rate for rate in standing.rates()])


def test_of_numbers_within_a_limit_the_largest_is_found():
    assert largest_within(9.0, lambda value: value**2, most=100.0, steps=60) == pytest.approx(3.0)
    assert largest_within(0.0, lambda value: value + 1, most=1.0, steps=60) == 0.0
    assert largest_within(9.0, lambda value: value, most=2.0, steps=60) == pytest.approx(2.0)


def test_a_training_of_one_price_is_neither_nothing_nor_more_than_it_can_use():
    assert of_one_price(1.0, lambda epsilon: epsilon + 1) is None
    assert of_one_price(50.0, lambda epsilon: epsilon) == MOST_TRAINING
    assert of_one_price(2.0, lambda epsilon: 2 * epsilon) == pytest.approx(1.0)
