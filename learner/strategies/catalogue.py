"""Strategies by the names under which projects store them."""

from learner.strategies.base import StrategyChoice
from learner.strategies.bernoulli_screen import TwoRates
from learner.strategies.clustered_uncertainty import SpreadDoubt
from learner.strategies.every_record import EveryRecord
from learner.strategies.random import Chance
from learner.strategies.secret_blocks import SecretBlocks
from learner.strategies.top_c import NoisyRanking
from learner.strategies.uncertainty import MostUncertain

# What projects may choose, in the order in which forms list it; a new strategy joins by one line.
CHOICES: tuple[type[StrategyChoice], ...] = (
    SecretBlocks,
    NoisyRanking,
    TwoRates,
    SpreadDoubt,
    MostUncertain,
    Chance,
    EveryRecord,
)
