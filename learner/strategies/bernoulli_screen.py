"""Select what lies in a slab around the separator at one rate, and everything else at a lower one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import QueryStrategy, Series, StrategyChoice
from learner.strategies.scoring import boundary_distances, score_blocks
from privacy.accounting.events import BernoulliScreenEvent, Event
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.screening import coin_probability, flip_coins
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


class BernoulliScreen(QueryStrategy):
    r"""Select with probability `high` where :math:`e^{-d} \ge \tau`, else with probability `low`.

    Parameters
    ----------
    high, low : float
        Selection probabilities, 0 < low <= high < 1, taken as the nearest multiples of 2**-53. Small
        rates save labels; their ratio decides the price of a selection, :math:`\ln(high / low)`.
    threshold : float
        :math:`\tau` in (0, 1]: the slab reaches :math:`\ln(1/\tau)` to either side of the separator. It must not
        come from private data.

    Notes
    -----
    The event pays for one coin of every record, so no record may be examined twice.

    References
    ----------
    .. [1] Ghassemi, Sarwate, Wright, "Differentially private online active learning with applications to
       anomaly detection", 2016, Section 3.1.
    """

    name = "bernoulli_screen"
    needs_model = True
    oracles = frozenset({"trusted"})
    post_processing_only = False
    fills_batch = False

    def __init__(self, high: float = 0.5, low: float = 0.1, *, threshold: float = 0.9) -> None:
        self.high, self.low = coin_probability(high), coin_probability(low)
        if self.low > self.high:
            raise ValueError(f"low must be <= high, got {low} and {high}")
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must lie in (0, 1], got {threshold}")
        self.threshold = float(threshold)

    @property
    def rates(self) -> tuple[float, float]:
        return float(self.high), float(self.low)

    def probabilities(self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel) -> NDArray[np.float64]:
        """Return one of the two rates for each row, from that row and the released model alone."""
        reach = -math.log(self.threshold)
        near = [boundary_distances(scores, model.coef) <= reach for scores in score_blocks(X, model, candidates=rows)]
        return np.where(np.concatenate([np.empty(0, dtype=np.bool_), *near]), *self.rates)

    def decide(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None, rng: RandomSource
    ) -> NDArray[np.bool_]:
        if model is None:
            raise ValueError(f"selection {self.name} needs a released model")
        return flip_coins(self.probabilities(X, rows, model), high=self.high, low=self.low, rng=rng)

    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        """Choose the first `n` at most whose coin selects them, in an order that no record influences."""
        order = np.asarray(rng.permutation(self.check_query(X, candidates, model, n)), dtype=np.int64)
        return order[self.decide(X, order, model, rng)][:n]

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        return BernoulliScreenEvent(*self.rates)


@dataclass(frozen=True)
class TwoRates(StrategyChoice):
    """A Bernoulli screen as projects choose it."""

    name: ClassVar[str] = "bernoulli_screen"
    label: ClassVar[str] = _("screen of two rates")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",),
        arrivals=("stream",),
        why_not={
            "crowd": _("A screen reads records; a crowd project ranks gate output."),
            "pool": _("A screen is for streams; choose a secret sample for a pool."),
        },
    )

    screen_high: float = parameter(
        0.1,
        above=0,
        below=1,
        label=_("Screen: rate near the boundary"),
        help=_("Larger rates ask more; skips reveal more."),
        charged=True,
    )
    screen_low: float = parameter(
        0.05,
        above=0,
        below=1,
        label=_("Screen: rate elsewhere"),
        help=_("The ratio of the two rates sets the privacy loss."),
        no_more_than="screen_high",
        charged=True,
    )
    screen_reach: float = parameter(
        0.1,
        at_least=0,
        at_most=10,
        label=_("What is near"),
        help=_("Distance from the boundary, at most 1."),
    )

    def strategy(self) -> BernoulliScreen:
        return BernoulliScreen(self.screen_high, self.screen_low, threshold=math.exp(-self.screen_reach))

    def why(self, settings: Mapping[str, object]) -> str:
        return _("One coin per record, likelier where the model is unsure")

    def rates(self) -> tuple[float, float]:
        if self.screen_low > self.screen_high:
            raise ValueError(as_message("must not exceed the rate near the boundary, got {low}", low=self.screen_low))
        return self.strategy().rates
