"""Query strategy that asks about long records more often: a mechanism, and the choice of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import BEYOND_A_STREAM, QueryStrategy, Series, StrategyChoice
from privacy.accounting.events import TopCEvent
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.top_c import select_top_c
from privacy.wording import as_message


class Lengths(QueryStrategy):
    """Draw long rows more often than short ones."""

    name = "lengths"
    needs_model = False
    oracles = frozenset({"trusted"})
    post_processing_only = False

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        rows = self.check_query(X, candidates, model, n)
        if n == 0 or not rows.size:
            return rows[:0]
        lengths = np.linalg.norm(np.asarray(X[rows], dtype=np.float64), axis=1) if X.shape[1] else np.zeros(rows.size)
        scores = np.clip(np.nan_to_num(lengths), 0.0, 1.0)
        return rows[select_top_c(scores, picks=min(n, rows.size), scale=self.scale, rng=rng)]

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> TopCEvent:
        return TopCEvent(pool_size=pool_size, picks=picks, scale=self.scale, series=series)


@dataclass(frozen=True)
class LongFirst(StrategyChoice):
    """What a project chooses of it."""

    name: ClassVar[str] = "lengths"
    label: ClassVar[str] = "long records more often"
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",),
        arrivals=("pool",),
        why_not={"crowd": "A length is read from the record.", "stream": BEYOND_A_STREAM},
    )

    length_scale: float = parameter(
        0.5,
        above=0,
        at_most=3,
        label="Pull of long records",
        help="Weights are exp(scale × length).",
        rule="Above 0 and at most 3, not {got}.",
        charged=True,
    )
    length_floor: float = parameter(
        0.0,
        at_least=0,
        at_most=3,
        label="Least length",
        help="Shorter ones count as this.",
        no_more_than="length_scale",
    )

    def strategy(self) -> Lengths:
        return Lengths(self.length_scale)

    def why(self, settings: Mapping[str, Any]) -> str:
        return as_message("Long records are asked more often, by a pull of {pull:g}", pull=self.length_scale)
