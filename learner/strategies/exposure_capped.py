"""A Bernoulli screen over a pool that is examined in rounds, each record a limited number of times."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from learner.linear_model import LinearModel
from learner.strategies.bernoulli_screen import BernoulliScreen, SlabChoice
from learner.strategies.screen import Screening, note_looks
from privacy.accounting.events import Event, ExposureCappedScreenEvent
from privacy.choices import parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import gettext_noop as _

# Looks are stored in one byte.
MOST_EXPOSURES = 255


class ExposureCappedScreen(BernoulliScreen):
    r"""Screen rounds of one pool; a record leaves when it is selected or has been examined `exposures` times.

    The first round pays for all: :math:`\max\{E s_0, (E-1) s_0 + s_1\}`, with the losses of a skip and of a selection.

    Parameters
    ----------
    high, low, threshold
        As in `BernoulliScreen`; all rounds of one series use the same rates.
    exposures : int
        How often a record may be examined, 1 to 255.
    looks : array_like of int, shape (rows,), optional
        How often each row of the feature file has been examined; zeros by default. Keep it from round to round
        with `looks_after`, in the transaction that stores the choice.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    name = "exposure_capped_screen"

    def __init__(
        self,
        high: float = 0.5,
        low: float = 0.1,
        *,
        threshold: float = 0.9,
        exposures: int = 3,
        looks: ArrayLike | None = None,
    ) -> None:
        super().__init__(high, low, threshold=threshold)
        if not 1 <= exposures <= MOST_EXPOSURES:
            raise ValueError(f"exposures must be between 1 and {MOST_EXPOSURES}, got {exposures}")
        self.exposures = int(exposures)
        self.looks = None if looks is None else np.asarray(looks, dtype=np.int64)

    def screen(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> Screening:
        """Examine as `Screen.screen` says, leaving aside candidates whose looks are used up."""
        rows = self.check_query(X, candidates, model, n)
        looks = self._looks(len(X))
        return super().screen(X, rows[looks[rows] < self.exposures], model, n, rng)

    def looks_after(self, screening: Screening, *, n_rows: int) -> NDArray[np.int64]:
        """Return the looks of all `n_rows` rows once a screening is over, shape (n_rows,)."""
        looks = self._looks(n_rows).copy()
        note_looks(looks, screening, exposures=self.exposures)
        return looks

    def one_pass_event(self) -> Event:
        """Return the event that pays for all looks."""
        return ExposureCappedScreenEvent(*self.rates, exposures=self.exposures)

    def _looks(self, n_rows: int) -> NDArray[np.int64]:
        looks = np.zeros(n_rows, dtype=np.int64) if self.looks is None else self.looks
        if looks.shape != (n_rows,):
            raise ValueError(f"looks must have one number for each of {n_rows} rows, got shape {looks.shape}")
        return looks


@dataclass(frozen=True)
class LimitedLooks(SlabChoice):
    """An exposure-capped screen as projects choose it."""

    name: ClassVar[str] = "exposure_capped_screen"
    label: ClassVar[str] = _("screen, each record looked at a limited number of times")

    exposures: int = parameter(
        3,
        at_least=1,
        at_most=MOST_EXPOSURES,
        label=_("Screen: looks at each record"),
        help=_("Over all rounds together; each look costs."),
        charged=True,
    )

    def strategy(self) -> ExposureCappedScreen:
        """Return the screen."""
        return ExposureCappedScreen(
            self.screen_high, self.screen_low, threshold=self.threshold, exposures=self.exposures
        )
