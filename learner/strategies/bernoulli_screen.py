"""Select what lies in a slab around the separator at one rate, and everything else at a lower one."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.scoring import boundary_distances, score_blocks
from learner.strategies.screen import OF_RECORDS, RateScreenChoice, Screen, reach_of_screen
from privacy.accounting.events import BernoulliScreenEvent, Event
from privacy.choices import Sound, parameter
from privacy.mechanisms.screening import coin_probability
from privacy.wording import gettext_noop as _


class BernoulliScreen(Screen):
    r"""Select with probability `high` where :math:`e^{-d} \ge \tau`, else with probability `low`.

    Parameters
    ----------
    high, low : float
        Selection probabilities, 0 < low <= high < 1, taken as the nearest multiples of 2**-53. Small
        rates save labels; their ratio decides the price of a selection, :math:`\ln(high / low)`.
    threshold : float
        :math:`\tau` in (0, 1]: the slab reaches :math:`\ln(1/\tau)` to either side of the separator. It must not
        come from private data; `shrinking_threshold` makes it narrower with every released update.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    In a series of rounds the first one pays for one decision about every record, and no record may be examined twice.
    A pool that is to be examined again and again needs `ExposureCappedScreen`.

    References
    ----------
    .. [1] Ghassemi, Sarwate, Wright, "Differentially private online active learning with applications to
       anomaly detection", 2016, Section 3.1.
    """

    name = "bernoulli_screen"

    def __init__(self, high: float = 0.5, low: float = 0.1, *, threshold: float = 0.9) -> None:
        self.high, self.low = coin_probability(high), coin_probability(low)
        if self.low > self.high:
            raise ValueError(f"low must be <= high, got {low} and {high}")
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must lie in (0, 1], got {threshold}")
        self.threshold = float(threshold)

    def informative(self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel) -> NDArray[np.bool_]:
        """Say which rows lie in the slab, shape (rows,)."""
        blocks = score_blocks(X, model, candidates=rows)
        reach = -math.log(self.threshold)
        return np.concatenate([boundary_distances(values, model.coef) <= reach for values in blocks])

    def probabilities(self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel) -> NDArray[np.float64]:
        """Return one of the two rates for each row."""
        return np.where(self.informative(X, rows, model), *self.rates)

    def one_pass_event(self) -> Event:
        """Return the event of one pass."""
        return BernoulliScreenEvent(*self.rates)


def shrinking_threshold(updates: int) -> float:
    r"""Return :math:`\tau_t = e^{-1/t}` for the public number t of released updates, >= 0 (counted as at least 1).

    Raises
    ------
    ValueError
        If the number is negative.
    """
    if updates < 0:
        raise ValueError(f"updates must be >= 0, got {updates}")
    return math.exp(-1 / max(1, updates))


@dataclass(frozen=True)
class SlabChoice(RateScreenChoice):
    """A screen that tells what is near the boundary from what is not."""

    screen_reach: float = reach_of_screen()

    @property
    def threshold(self) -> float:
        """The reach as the screen counts it."""
        return math.exp(-self.screen_reach)


@dataclass(frozen=True)
class TwoRates(SlabChoice):
    """A Bernoulli screen as projects choose it."""

    name: ClassVar[str] = "bernoulli_screen"
    label: ClassVar[str] = _("screen with two rates, each record looked at once")
    sound: ClassVar[Sound] = Sound(oracles=("trusted",), why_not={"crowd": OF_RECORDS})

    screen_shrinks: bool = parameter(
        False,
        arrivals=("stream",),
        elsewhere=_("What is near shrinks with the updates of a stream; a pool has none."),
        label=_("Screen: what is near shrinks with the updates"),
        help=_("After t updates, near is a distance of at most 1/t. It costs the same: the rates are charged."),
    )

    def in_stream(self, updates: int) -> BernoulliScreen:
        """Return the screen after so many updates; what is charged are the rates, so a narrower slab costs the same."""
        threshold = shrinking_threshold(updates) if self.screen_shrinks else self.threshold
        return BernoulliScreen(self.screen_high, self.screen_low, threshold=threshold)

    def strategy(self) -> BernoulliScreen:
        """Return the screen."""
        return BernoulliScreen(self.screen_high, self.screen_low, threshold=self.threshold)
