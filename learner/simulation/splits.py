"""Other ways to divide a budget between choosing and training, as the project's strategy says them."""

from dataclasses import replace

from learner.simulation.setup import Setup, strategy_choice
from learner.strategies.base import QueryStrategy, SharedLimit
from learner.strategies.divisions import Division


def divisions(setup: Setup, epsilon: float) -> list[Division]:
    """Return other ways to divide the same `epsilon` between choosing and training, if there are any."""
    shared = SharedLimit(
        epsilon=epsilon,
        releases=setup.releases,
        stream=setup.stream,
        hidden=setup.hidden,
        rounds=lambda strategy: series_epsilon(setup, strategy),
    )
    found = strategy_choice(setup).divisions(shared)
    # A batch of one answer is no batch.
    return [each for each in found if each.asked == (1, 1) or _as_many(setup.labels_per_release, each) >= 2]


def divided(setup: Setup, division: Division) -> Setup:
    """Return a setup whose limit is divided so; batches grow with how many of the same records are asked."""
    return replace(
        setup,
        parameters={**setup.parameters, **division.changes},
        selection_epsilon=division.choosing or setup.selection_epsilon,
        training=replace(setup.training, epsilon=division.training),
        labels_per_release=_as_many(setup.labels_per_release, division),
        batch=max(1, _as_many(setup.batch, division)),
        askable=None if setup.askable is None else _as_many(setup.askable, division),
    )


def _as_many(count: int, division: Division) -> int:
    now, before = division.asked
    return round(count * now / before)


def splits(setup: Setup, epsilon: float) -> list[Setup]:
    """Return the setups that divide the same `epsilon` in other ways."""
    return [divided(setup, division) for division in divisions(setup, epsilon)]


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
