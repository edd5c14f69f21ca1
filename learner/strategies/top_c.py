"""Ask about records near the released model's decision boundary, chosen with differential privacy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import BEYOND_A_STREAM, BlockwiseStrategy, Series, StrategyChoice
from learner.strategies.rows import NO_ROWS, Rows
from learner.strategies.scoring import boundary_distances, default_block_rows, score_blocks
from privacy.accounting.events import Event, TopCEvent
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.top_c import select_top_c
from privacy.wording import gettext_noop as _


class TopC(BlockwiseStrategy):
    """Draw records without replacement with weights exp(scale u), u in [0, 1] the uncertainty.

    Parameters
    ----------
    scale : float
        Exponent a of the weights, > 0; the part of the cost one record pays once in a series of rounds.
    reach : float
        Distance from the boundary at which u has fallen from 1 to 0, > 0. A public number: the norm
        bound of the features by default.
    """

    name = "top_c"
    needs_model = True
    oracles = frozenset({"trusted"})
    post_processing_only = False

    def __init__(self, scale: float = 0.25, *, reach: float = 1.0) -> None:
        if not 0 < scale < np.inf:
            raise ValueError(f"scale must be > 0 and finite, got {scale}")
        if not 0 < reach < np.inf:
            raise ValueError(f"reach must be > 0 and finite, got {reach}")
        self.scale = float(scale)
        self.reach = float(reach)

    def choose(
        self, X: NDArray[np.float32], rows: Rows, model: LinearModel | None, n: int, rng: RandomSource
    ) -> NDArray[np.int64]:
        """Choose a block at a time, in row order: of all before, what may still be among the chosen alone is kept."""
        picks = min(n, len(rows))
        if not picks or model is None:
            return NO_ROWS
        blocks = rows.blocks(default_block_rows(X.shape[1], len(model.coef)))
        scores = (part for block in blocks for part in self.uncertainties(X, block, model))
        return rows.at(select_top_c(scores, picks=picks, scale=self.scale, rng=rng))

    def uncertainties(
        self, X: NDArray[np.float32], candidates: NDArray[np.int64], model: LinearModel
    ) -> Iterator[NDArray[np.float64]]:
        """Yield u = 1 - min(1, distance / reach) in blocks, each value from its record and the model alone."""
        for values in score_blocks(X, model, candidates=candidates):
            closeness = 1.0 - boundary_distances(values, model.coef) / self.reach
            # A feature that is no number must still get some score: the mechanism is total.
            yield np.clip(np.nan_to_num(closeness, nan=0.0), 0.0, 1.0)

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        return TopCEvent(pool_size=pool_size, picks=picks, scale=self.scale, series=series)


@dataclass(frozen=True)
class NoisyRanking(StrategyChoice):
    """Private top-c as projects choose it."""

    name: ClassVar[str] = "top_c"
    label: ClassVar[str] = _("private top-c by the released model's uncertainty")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",),
        arrivals=("pool",),
        why_not={
            "crowd": _("Private top-c reads records; a crowd project ranks gate output."),
            "stream": BEYOND_A_STREAM,
        },
    )

    selection_epsilon: float = parameter(
        0.25,
        above=0,
        at_most=100,
        label=_("Epsilon of the choice"),
        help=_("Log ratio of the largest to the smallest selection weight."),
        charged=True,
    )

    def why(self, settings: Mapping[str, Any]) -> str:
        return _("The model was unsure about records like this one")

    def strategy(self) -> TopC:
        return TopC(self.selection_epsilon)
