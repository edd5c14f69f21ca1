"""What every screen shares: one private coin for each record, with a probability between two public rates."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import BEYOND_A_STREAM, QueryStrategy, Series, SharedLimit, StrategyChoice
from learner.strategies.divisions import RATES, SHARES, SMALLEST_RATE, Division, of_one_price
from learner.strategies.rows import NO_ROWS, ListedRows, Rows, in_random_order
from privacy.accounting.events import Event, ExposureCappedScreenEvent, MinibatchSgdEvent, ScreenRoundEvent, StreamEvent
from privacy.accounting.screens import stream_epsilon
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.screening import flip_coins
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

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


def note_looks(looks: NDArray[np.integer], screening: Screening, *, exposures: int) -> None:
    """Count in place, for each row, the looks a screening took; whoever was selected has used all of them up."""
    looks[screening.examined] += 1
    looks[screening.selected] = exposures


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
        """Examine candidates in uniform random order until `n` are selected or none is left."""
        rows = self.check_query(X, candidates, model, n)
        passes = list(self.examine(X, ListedRows(rows), np.ones(len(rows), dtype=np.bool_), model, n, rng))
        return Screening(
            np.concatenate([NO_ROWS, *(each.selected for each in passes)]),
            np.concatenate([NO_ROWS, *(each.examined for each in passes)]),
        )

    def examine(
        self,
        X: NDArray[np.float32],
        rows: Rows,
        is_open: NDArray[np.bool_],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> Iterator[Screening]:
        """Examine rows whose places are open in uniform random order, a block at a time, and yield each block.

        It ends with the `n`-th selection or when all are examined. That is a function of the coins, which are visible
        anyway, so every record pays for its own coin alone. Of what is past, nothing is kept but `is_open`, a byte a
        place, in which more may be closed in the end than were examined.
        """
        missing = n
        if not missing:
            return
        for places in in_random_order(is_open, block_rows=BLOCK_ROWS, rng=rng):
            order = rows.at(places)
            picked = np.flatnonzero(self.decide(X, order, model, rng))
            if picked.size >= missing:
                yield Screening(order[picked[:missing]], order[: picked[missing - 1] + 1])
                return
            missing -= picked.size
            yield Screening(order[picked], order)

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


def reach_of_screen() -> Any:
    """Declare what is near the boundary for the screens that tell it from what is not."""
    return parameter(
        0.1,
        at_least=0,
        at_most=10,
        label=_("What is near"),
        help=_("Distance from the boundary; features have a length of at most 1."),
        rule=_("Must lie between 0 and 10, got {got}."),
    )


OF_RECORDS = _("A screen reads records; a crowd project ranks what the gate let through.")


@dataclass(frozen=True)
class ScreenChoice(StrategyChoice):
    """What every screen has."""

    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",), arrivals=("pool",), why_not={"crowd": OF_RECORDS, "stream": BEYOND_A_STREAM}
    )

    @abstractmethod
    def strategy(self) -> Screen:
        """Return the screen with these parameters."""

    def in_stream(self, updates: int) -> Screen:
        """Return the screen as it decides about a record of a stream after so many updates, which are public."""
        return self.strategy()

    def rates(self) -> tuple[float, float]:
        """Return the largest and the smallest probability as the screen's own event is charged for them."""
        return self.strategy().rates

    def why(self, settings: Mapping[str, Any]) -> str:
        """Say of a stream what its coins do; rounds of a pool stop at the last one that they want."""
        if settings.get("arrival") != "stream":
            return super().why(settings)
        return _(
            "A coin decides about each record once, as it comes: more often heads where the model is unsure, never "
            "certain either way"
        )

    def most_asked(self, *, stream: bool) -> float:
        """Return the share that would be asked about if every record were near the boundary."""
        if stream:
            return self.rates()[0]
        screen = self.strategy()
        return -math.expm1(screen.exposures * math.log1p(-float(screen.high)))

    def opening(self, settings: Mapping[str, Any]) -> Event | None:
        """Return what opens a series of rounds and pays for all looks; a stream pays with its updates."""
        return None if settings.get("arrival") == "stream" else self.event(pool_size=1, picks=1)


@dataclass(frozen=True)
class RateScreenChoice(ScreenChoice):
    """A screen of two public rates."""

    screen_high: float = parameter(
        0.1,
        above=0,
        below=1,
        label=_("Screen: rate near the boundary"),
        help=_("Larger rates ask more, and a skip tells more."),
        rule=_("Must lie between 0 and 1, got {got}: a certain answer gives a record away."),
        charged=True,
    )
    screen_low: float = parameter(
        0.05,
        above=0,
        below=1,
        label=_("Screen: rate elsewhere"),
        help=_("What a question tells is the ratio of the two rates."),
        rule=_("Must be above 0 and at most the rate near the boundary, got {got}."),
        no_more_than="screen_high",
        charged=True,
    )

    def rates(self) -> tuple[float, float]:
        """Return both rates as coins have them."""
        if self.screen_low > self.screen_high:
            raise ValueError(
                as_message(
                    "the rate elsewhere must not exceed the one near the boundary, got {low}", low=self.screen_low
                )
            )
        return super().rates()

    def divisions(self, shared: SharedLimit) -> Iterable[Division]:
        """Vary the share of choosing by the rate elsewhere; of hidden windows, over the same records, the rate near."""
        return self._at_rates(shared) if shared.hidden else self._at_shares(shared)

    def _at_shares(self, shared: SharedLimit) -> Iterator[Division]:
        looks, trainings = self.strategy().exposures, 1 if shared.stream else max(1, shared.releases)
        for share in SHARES:
            low = self.screen_high * math.exp(-share * shared.epsilon / looks)
            if low >= SMALLEST_RATE:
                training = (1 - share) * shared.epsilon / trainings
                yield Division(changes={"screen_low": low}, choosing=share * shared.epsilon, training=training)

    def _at_rates(self, shared: SharedLimit) -> Iterator[Division]:
        for rate in RATES:
            low = self.screen_low * rate / self.screen_high

            def price(training: float, rate: float = rate, low: float = low) -> float:
                return stream_epsilon(rate, low, training, selection_visible=False, adjacency="null")

            training = of_one_price(shared.epsilon, price)
            if training is not None:
                changes = {"screen_high": rate, "screen_low": low}
                yield Division(changes=changes, training=training, rate=rate, asked=(rate, self.screen_high))

    def asking(self, share: float) -> Mapping[str, float]:
        """Multiply both rates."""
        return {"screen_high": self.screen_high * share, "screen_low": self.screen_low * share}
