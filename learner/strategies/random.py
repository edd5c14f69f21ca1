"""Ask about records chosen blindly: the baseline, and the first round of every pool."""

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import QueryStrategy, Series
from privacy.accounting.events import Event, RandomChoiceEvent
from privacy.mechanisms.randomness import RandomSource


class RandomChoice(QueryStrategy):
    """Choose uniformly without replacement; the choice reads no record and costs nothing."""

    name = "random"
    needs_model = False
    oracles = frozenset({"trusted", "crowd"})
    post_processing_only = False

    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        """Choose as `QueryStrategy.query` says, returning rows in increasing order."""
        rows = self.check_query(X, candidates, model, n)
        if n == 0 or n >= rows.size:
            return rows[:n]
        while True:
            lots = rng.words(rows.size)
            chosen: NDArray[np.int64] = rows[lots <= np.partition(lots, n - 1)[n - 1]]
            # Equal lots at the cut could favour neither record, so all are drawn again.
            if chosen.size == n:
                return chosen

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        """Return the event of one choice."""
        return RandomChoiceEvent(picks=picks)

    def describe(self) -> str:
        """Return one plain sentence about how questions are chosen."""
        return "Questions are drawn at random, without looking at any record."
