"""What every screen shares: one private coin for each record, with a probability between two public rates."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import QueryStrategy, Series
from privacy.accounting.events import Event, ExposureCappedScreenEvent, MinibatchSgdEvent, ScreenRoundEvent, StreamEvent
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.screening import flip_coins

# Enough rows for full scoring speed; what lies beyond the last pick of a block was read in vain.
BLOCK_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Screening:
    """What one pass of a screen did.

    Attributes
    ----------
    selected : ndarray of int64
        Rows to ask about, in the order they were examined in.
    examined : ndarray of int64
        Every row that got a coin, in order; each has used up one look. It follows from `selected` and
        the public order, so it may be stored and acted upon.
    """

    selected: NDArray[np.int64]
    examined: NDArray[np.int64]


def count_looks(looks: NDArray[np.int64], screening: Screening, *, exposures: int) -> NDArray[np.int64]:
    """Return the looks of all rows after a screening, shape (rows,); whoever was selected has used all of them up."""
    counted = looks.copy()
    counted[screening.examined] += 1
    counted[screening.selected] = exposures
    return counted


class Screen(QueryStrategy):
    """Examine records one after another in an order that no record influences, until enough are selected.

    Attributes
    ----------
    high, low : Fraction
        Exact largest and smallest selection probability.
    exposures : int
        How often a record may be examined in a series of rounds.
    """

    needs_model = True
    oracles = frozenset({"trusted"})
    post_processing_only = False
    fills_batch = False

    high: Fraction
    low: Fraction
    exposures: int = 1

    @abstractmethod
    def probabilities(self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel) -> NDArray[np.float64]:
        """Return the wanted selection probability of each row, from that row and the released model alone."""

    @property
    def rates(self) -> tuple[float, float]:
        """Largest and smallest selection probability as they are charged."""
        return float(self.high), float(self.low)

    def decide(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None, rng: RandomSource
    ) -> NDArray[np.bool_]:
        """Flip the coin of every row, shape (rows,); the probabilities are clamped to the rates."""
        if model is None:
            raise ValueError(f"selection {self.name} needs a released model")
        shown = np.empty(rows.size, dtype=np.bool_)
        for start in range(0, rows.size, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            wanted = self.probabilities(X, rows[block], model)
            # A feature that is no number must still get some coin: the mechanism is total.
            wanted = np.nan_to_num(wanted, nan=float(self.low), copy=False)
            shown[block] = flip_coins(wanted, high=self.high, low=self.low, rng=rng)
        return shown

    def screen(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> Screening:
        """Examine candidates in uniform random order until `n` are selected or none is left.

        Stopping is a function of the coins, which are visible anyway, so every record pays for its own coin alone.
        """
        rows = self.check_query(X, candidates, model, n)
        if n == 0 or model is None or not rows.size:
            return Screening(rows[:0], rows[:0])
        order = np.asarray(rng.permutation(rows), dtype=np.int64)
        picked = np.empty(0, dtype=np.int64)
        for start in range(0, order.size, BLOCK_ROWS):
            places = start + np.flatnonzero(self.decide(X, order[start : start + BLOCK_ROWS], model, rng))
            picked = np.concatenate([picked, places])
            if picked.size >= n:
                return Screening(order[picked[:n]], order[: picked[n - 1] + 1])
        return Screening(order[picked], order)

    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        """Choose as `QueryStrategy.query` says, at most `n` records in the order they were examined in."""
        return self.screen(X, candidates, model, n, rng).selected

    @abstractmethod
    def one_pass_event(self) -> Event:
        """Return the event of one decision about every record."""

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        """Return the event of one pass, of the first round of a series, which pays for all, or of a later one."""
        if series == "single":
            return self.one_pass_event()
        if series == "continued":
            return ScreenRoundEvent(*self.rates)
        return ExposureCappedScreenEvent(*self.rates, exposures=self.exposures)

    def stream_event(
        self, update: MinibatchSgdEvent, *, selection_visible: bool, schedule: Literal["flsw", "flmb"]
    ) -> StreamEvent:
        """Return the event of a whole stream screened by this: every record one coin and at most one update."""
        q_hi, q_lo = self.rates
        return StreamEvent(q_hi, q_lo, update, selection_visible, schedule)
