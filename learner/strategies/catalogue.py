"""Strategies by the names under which projects store them."""

from learner.strategies.base import QueryStrategy
from learner.strategies.random import RandomChoice
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty


def strategy_for(name: str, *, scale: float) -> QueryStrategy:
    """Build the strategy a project asks for; `scale` matters to top-c alone.

    Raises
    ------
    ValueError
        If no strategy has that name.
    """
    if name == RandomChoice.name:
        return RandomChoice()
    if name == TopC.name:
        return TopC(scale)
    if name == Uncertainty.name:
        return Uncertainty()
    raise ValueError(f"no selection is called {name!r}")
