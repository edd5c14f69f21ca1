"""Other ways to divide a budget between choosing and training, counted from the prices."""

import math
from dataclasses import replace
from typing import Final

from learner.planning.setup import Setup
from learner.strategies.base import QueryStrategy
from learner.strategies.blocks import block_rates
from learner.strategies.catalogue import strategy_for
from learner.strategies.exponential_screen import FallingRate
from privacy.accounting.events_series import mixture_epsilon
from privacy.accounting.screens import stream_epsilon

SHARES: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)
RATES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
# Log ratios of a falling rate's largest to its smallest.
SCALES: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
SMALLEST_RATE: Final = 1e-4


def splits(setup: Setup, epsilon: float) -> list[Setup]:
    """Return setups that divide the same `epsilon` between choosing and training in other ways, if there are any.

    A secret sample pays for choosing by the size of its blocks: there the rate of the first block is varied, and
    training takes what the coins leave. Hidden windows likewise: choice and update have one price, so the rate near
    the boundary is varied over the same records. Elsewhere the share of choosing is; of a falling rate its range,
    since a skip costs at least what it costs at the smallest range.
    """
    if setup.first_rate is not None:
        return [found for rate in RATES if (found := _at_rate(setup, epsilon, rate)) is not None]
    if setup.selection == "top_c":
        return [found for share in SHARES if (found := _top_c_at(setup, epsilon, share)) is not None]
    if setup.selection == "bernoulli_screen" and setup.hidden:
        return [found for rate in RATES if (found := _hidden_at(setup, epsilon, rate)) is not None]
    if setup.selection in ("bernoulli_screen", "exposure_capped_screen", "version_space_screen"):
        return [found for share in SHARES if (found := _screen_at(setup, epsilon, share)) is not None]
    if setup.selection == "exponential_screen" and not setup.hidden:
        return [found for scale in SCALES if (found := _exponential_at(setup, epsilon, scale)) is not None]
    return []


def blocks_epsilon(training_epsilon: float, rates: "tuple[float, ...]") -> float:
    """Return what trainings on exclusive secret blocks cost a record together, as one series."""
    return mixture_epsilon(rates, [training_epsilon] * len(rates)) if rates else 0.0


def _at_rate(setup: Setup, epsilon: float, rate: float) -> Setup | None:
    rates = block_rates(rate)[: setup.releases]
    low, high = 0.0, epsilon + 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if blocks_epsilon(middle, rates) <= epsilon else (low, middle)
    if low < 1e-3:
        return None
    return replace(setup, first_rate=rate, training=replace(setup.training, epsilon=min(low, 10.0)))


def _top_c_at(setup: Setup, epsilon: float, share: float) -> Setup | None:
    low, high = 0.0, share * epsilon
    for _ in range(40):
        middle = (low + high) / 2
        fits = top_c_series_epsilon(setup, middle) <= share * epsilon
        low, high = (middle, high) if fits else (low, middle)
    training = (1 - share) * epsilon / max(1, setup.releases)
    if low <= 0 or training <= 0:
        return None
    spent = top_c_series_epsilon(setup, low)
    return replace(setup, scale=low, selection_epsilon=spent, training=replace(setup.training, epsilon=training))


def top_c_series_epsilon(setup: Setup, scale: float) -> float:
    """Return what all rounds of private top-c up to the last release cost a record; the first round is random."""
    return series_epsilon(setup, strategy_for("top_c", scale=scale))


def series_epsilon(setup: Setup, strategy: QueryStrategy) -> float:
    """Return what all rounds up to the last release cost a record; the first round is random."""
    counts = setup.label_counts
    asked = counts[0] if counts else 0
    total, series = 0.0, "opened"
    while counts and asked < counts[-1]:
        picks = min(setup.round_size, counts[-1] - asked)
        event = strategy.event_for(pool_size=max(setup.records - asked, picks), picks=picks, series=series)  # type: ignore[arg-type]
        total += event.cost().epsilon
        asked, series = asked + picks, "continued"
    return total


def _screen_at(setup: Setup, epsilon: float, share: float) -> Setup | None:
    looks = int(setup.parameters.get("exposures", 1))
    high = float(setup.parameters["high"])
    low = high * math.exp(-share * epsilon / looks)
    trainings = 1 if setup.stream else max(1, setup.releases)
    if low < SMALLEST_RATE:
        return None
    return replace(
        setup,
        parameters={**setup.parameters, "low": low},
        selection_epsilon=share * epsilon,
        training=replace(setup.training, epsilon=(1 - share) * epsilon / trainings),
    )


def _exponential_at(setup: Setup, epsilon: float, scale: float) -> Setup | None:
    falling = FallingRate(exponential_threshold=setup.parameters["threshold"], selection_epsilon=scale)
    looks = falling.event(pool_size=1, picks=1).cost().epsilon
    # A record of a stream is skipped, or else selected and learned from; in a pool its looks are paid before.
    choosing, trainings = (scale, 1) if setup.stream else (looks, max(1, setup.releases))
    if looks > epsilon or choosing >= epsilon:
        return None
    return replace(
        setup,
        parameters={**setup.parameters, "epsilon": scale},
        selection_epsilon=choosing,
        training=replace(setup.training, epsilon=(epsilon - choosing) / trainings),
    )


def _hidden_at(setup: Setup, epsilon: float, rate: float) -> Setup | None:
    present = float(setup.parameters["high"])
    low = float(setup.parameters["low"]) * rate / present
    least, most = 0.0, epsilon + 20.0
    for _ in range(60):
        middle = (least + most) / 2
        fits = stream_epsilon(rate, low, middle, selection_visible=False, adjacency="null") <= epsilon
        least, most = (middle, most) if fits else (least, middle)
    labels = round(setup.labels_per_release * rate / present)
    if least < 1e-3 or labels < 2:
        return None
    return replace(
        setup,
        parameters={**setup.parameters, "high": rate, "low": low},
        labels_per_release=labels,
        batch=max(1, round(setup.batch * rate / present)),
        askable=None if setup.askable is None else round(setup.askable * rate / present),
        training=replace(setup.training, epsilon=min(least, 10.0)),
    )
