"""Ask about records chosen blindly: the baseline, and the first round of every pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import BEYOND_A_STREAM, BlockwiseStrategy, Series, StrategyChoice
from learner.strategies.rows import NO_ROWS, Rows
from privacy.accounting.events import Event, RandomChoiceEvent
from privacy.choices import Sound
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import gettext_noop as _

BLOCK_ROWS = 131_072


class RandomChoice(BlockwiseStrategy):
    """Choose uniformly without replacement; the choice reads no record and costs nothing."""

    name = "random"
    needs_model = False
    oracles = frozenset({"trusted", "crowd"})
    post_processing_only = False

    def choose(
        self, X: NDArray[np.float32], rows: Rows, model: LinearModel | None, n: int, rng: RandomSource
    ) -> NDArray[np.int64]:
        """Choose those with the `n` smallest of as many lots as there are rows, drawn by blocks; in row order."""
        count = len(rows)
        if n == 0 or n >= count:
            return rows.at(np.arange(min(n, count), dtype=np.int64))
        while True:
            places = _smallest_lots(count, n, rng)
            # Equal lots at the cut could favour neither record, so all are drawn again.
            if places.size == n:
                return rows.at(places)

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        return RandomChoiceEvent(picks=picks)


def _smallest_lots(count: int, n: int, rng: RandomSource) -> NDArray[np.int64]:
    """Draw a lot for each place and return, in order, those up to the n-th smallest lot; more than n where some tie."""
    places, lots = NO_ROWS, np.empty(0, dtype=np.uint64)
    limit = np.uint64(2**64 - 1)
    for start in range(0, count, BLOCK_ROWS):
        drawn = rng.words(min(BLOCK_ROWS, count - start))
        low = np.flatnonzero(drawn <= limit)
        places, lots = np.concatenate([places, start + low]), np.concatenate([lots, drawn[low]])
        if lots.size > n:
            limit = np.partition(lots, n - 1)[n - 1]
            kept = lots <= limit
            places, lots = places[kept], lots[kept]
    return places


@dataclass(frozen=True)
class Chance(StrategyChoice):
    """Random choice as projects choose it."""

    name: ClassVar[str] = "random"
    label: ClassVar[str] = _("random choice")
    by_chance: ClassVar[bool] = True
    order: ClassVar[str] = _("This project asks in random order.")
    stays: ClassVar[bool] = False
    sound: ClassVar[Sound] = Sound(arrivals=("pool",), why_not={"stream": BEYOND_A_STREAM})

    def why(self, settings: Mapping[str, Any]) -> str:
        if settings.get("oracle") == "crowd":
            return _("This text was drawn at random.")
        return _("This record was drawn at random")

    def strategy(self) -> RandomChoice:
        return RandomChoice()
