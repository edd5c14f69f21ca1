"""Strategies by the names under which projects store them."""

from collections.abc import Mapping
from typing import Any

from learner.strategies.base import QueryStrategy, StrategyChoice
from learner.strategies.bernoulli_screen import TwoRates
from learner.strategies.clustered_uncertainty import SpreadDoubt
from learner.strategies.every_record import EveryRecord
from learner.strategies.exponential_screen import FallingRate
from learner.strategies.exposure_capped import LimitedLooks
from learner.strategies.noisy_clusters import NoisyClusters
from learner.strategies.random import Chance
from learner.strategies.secret_sample import ScreenedSecretSample, SecretBlocks
from learner.strategies.top_c import NoisyRanking, TopC
from learner.strategies.uncertainty import MostUncertain
from learner.strategies.version_space import Undecided

# What projects may choose, in the order in which forms list it; a new strategy joins by one line.
CHOICES: tuple[type[StrategyChoice], ...] = (
    SecretBlocks,
    NoisyRanking,
    LimitedLooks,
    TwoRates,
    Undecided,
    FallingRate,
    SpreadDoubt,
    MostUncertain,
    Chance,
    EveryRecord,
)

# What a choice may become of which another is the first: later secret blocks, and the first where it is thinned.
FURTHER: tuple[type[QueryStrategy], ...] = (ScreenedSecretSample, NoisyClusters)
STRATEGIES: Mapping[str, type[QueryStrategy]] = {
    strategy.name: strategy for strategy in (*(type(choice().strategy()) for choice in CHOICES), *FURTHER)
}


def strategy_for(name: str, *, scale: float, parameters: Mapping[str, Any] | None = None) -> QueryStrategy:
    """Build the strategy a project asks for.

    Parameters
    ----------
    name : str
        Its name.
    scale : float
        Exponent of top-c, which alone needs it.
    parameters : mapping, optional
        Further arguments of its class; those left out keep their defaults.

    Raises
    ------
    ValueError
        If no strategy has that name, or a parameter is unknown or out of range.
    """
    if name not in STRATEGIES:
        raise ValueError(f"no selection is called {name!r}")
    arguments = dict(parameters or {})
    if name == TopC.name:
        arguments.setdefault("scale", scale)
    try:
        return STRATEGIES[name](**arguments)
    except TypeError as error:
        raise ValueError(f"selection {name} does not take these parameters: {', '.join(sorted(arguments))}") from error
