"""Strategies by the names under which projects store them."""

from collections.abc import Mapping
from typing import Any

from learner.strategies.base import QueryStrategy
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.exponential_screen import ExponentialScreen
from learner.strategies.exposure_capped import ExposureCappedScreen
from learner.strategies.random import RandomChoice
from learner.strategies.secret_sample import ScreenedSecretSample, SecretSample
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty
from learner.strategies.version_space import VersionSpaceScreen

STRATEGIES: Mapping[str, type[QueryStrategy]] = {
    strategy.name: strategy
    for strategy in (
        RandomChoice,
        BernoulliScreen,
        ExponentialScreen,
        ExposureCappedScreen,
        VersionSpaceScreen,
        TopC,
        SecretSample,
        ScreenedSecretSample,
        Uncertainty,
    )
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
