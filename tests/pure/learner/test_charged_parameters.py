"""Whatever a price rests on is marked `charged=True`, in every choice that ships and in the examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.gates import GateChoice
from annotation.choices.randomizers import RandomizerChoice
from annotation.choices.selections import AsksInBlocks, AsksStream
from learner.estimators.choice import EstimatorChoice, Shape
from learner.strategies.base import StrategyChoice
from privacy.accounting.event import Event
from privacy.choices import BrokenRules, Choice, Parameter, parameter
from tests.examples.estimator import Unhurried
from tests.examples.gate import Halfway
from tests.examples.randomizer import Hushed
from tests.examples.strategy import LongFirst

# Of parameters without a default.
SETTINGS = {
    "gate_epsilon": 1.0,
    "normalizer": "L1",
    "gate_k": 20,
    "gate_sampling_rate": 0.2,
    "gate_delta": 1e-6,
    "gate_floor": 3,
    "answers_unit": "annotator",
    "answers_cap": 3,
}
PRICED = (GateChoice, RandomizerChoice, StrategyChoice, EstimatorChoice)


def events_of(choice: Choice) -> Iterator[Event | None]:
    """Return what uses of a choice are charged, in the same public circumstances whatever its parameters."""
    if isinstance(choice, GateChoice):
        yield choice.event(unit="contributor" if choice.texts_per_contributor else "record")
    elif isinstance(choice, RandomizerChoice):
        yield choice.event(n_classes=3)
    elif isinstance(choice, StrategyChoice):
        yield choice.event(pool_size=1000, picks=10)
    elif isinstance(choice, EstimatorChoice):
        yield choice.event(shape=Shape([0, 1], norm_bound=1.0, intercept_scaling=1.0), n_features=8)


def price_of(choice: Choice) -> tuple[Any, ...]:
    costs = [None if event is None else event.cost() for event in events_of(choice)]
    rates = [choice.rates()] if isinstance(choice, AsksStream) else []
    blocks = [choice.block_rates] if isinstance(choice, AsksInBlocks) else []
    return (
        *(cost and (f"{cost.epsilon:.9g}", f"{cost.delta:.9g}", f"{cost.rho:.9g}") for cost in costs),
        *rates,
        *blocks,
    )


def others(declared: Parameter, value: Any) -> Iterator[Any]:
    """Return other values that a parameter may have, near the one it has."""
    if declared.options:
        yield from (option for option in declared.options if option != value)
    elif declared.type is bool:
        yield not value
    elif declared.type is int:
        yield from (each for each in ((value or 1) + 1, (value or 2) - 1) if not declared.broken(each))
    elif declared.type is float:
        yield from (each for each in ((value or 0.1) * 1.25, (value or 0.1) * 0.75) if not declared.broken(each))


def unmarked(choice: type[Choice]) -> list[str]:
    """Return the parameters whose value moves the price and that are not marked."""
    if not choice.parameters():
        return []
    usual = choice.of({name: value for name, value in SETTINGS.items() if name in names(choice)})
    price, found = price_of(usual), []
    for declared in choice.parameters():
        for value in others(declared, getattr(usual, declared.name)):
            try:
                other = choice.of({**SETTINGS, **usual.document(), declared.name: value})
                moved = price_of(other) != price
            except (BrokenRules, ValueError):
                continue
            if moved and not declared.charged:
                found.append(declared.name)
    return sorted(set(found))


def names(choice: type[Choice]) -> set[str]:
    return {each.name for each in choice.parameters()}


def priced() -> list[type[Choice]]:
    shipped = [choice for choice in CATALOGUE.all() if issubclass(choice, PRICED)]
    return [*shipped, LongFirst, Unhurried, Halfway, Hushed]


@pytest.mark.parametrize("choice", priced(), ids=lambda choice: choice.name)
def test_what_a_price_rests_on_is_marked(choice: type[Choice]) -> None:
    assert unmarked(choice) == []


def test_a_parameter_that_moves_the_price_and_is_not_marked_is_found() -> None:
    @dataclass(frozen=True)
    class Forgetful(LongFirst):
        length_scale: float = parameter(0.5, above=0, at_most=3, label="Pull")

    assert unmarked(Forgetful) == ["length_scale"]
