"""Select with a probability that decays with the distance to the separator."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import LEANING, OF_LEANING, SharedLimit
from learner.strategies.divisions import Division
from learner.strategies.scoring import boundary_distances, score_blocks
from learner.strategies.screen import OF_RECORDS, Screen, ScreenChoice
from privacy.accounting.events import Event, ExponentialScreenEvent
from privacy.choices import Sound, parameter
from privacy.mechanisms.screening import exponential_screen_range
from privacy.wording import gettext_noop as _

# Every featuriser clips to this; distances beyond it, which an intercept may bring, are screened like it.
NORM_BOUND = 1.0
# Log ratios of the largest rate to the smallest that a plan tries.
SCALES = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


class ExponentialScreen(Screen):
    r"""Select with probability :math:`e^{-\max(b, d)\,\varepsilon/(M - b)}` at distance d from the separator.

    Parameters
    ----------
    threshold : float
        The distance b below which all records are selected alike, 0 < b < M. A small one selects nearly
        everything there, and then a skip tells much: the price has no bound as b goes to 0.
    norm_bound : float
        The largest distance M, > 0: the norm bound of the features.
    epsilon : float
        Log ratio of the largest to the smallest probability, > 0; the price of a selection.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] Ghassemi, Sarwate, Wright, "Differentially private online active learning with applications to
       anomaly detection", 2016, equation 7.
    """

    name = "exponential_screen"

    def __init__(self, threshold: float = 0.5, *, norm_bound: float = 1.0, epsilon: float = 1.0) -> None:
        self.high, self.low = exponential_screen_range(threshold, norm_bound, epsilon)
        self.threshold = float(threshold)
        self.norm_bound = float(norm_bound)
        self.epsilon = float(epsilon)

    @property
    def _event(self) -> ExponentialScreenEvent:
        return ExponentialScreenEvent(self.threshold, self.norm_bound, self.epsilon)

    @property
    def rates(self) -> tuple[float, float]:
        """Extreme probabilities as they are charged, one step of the coins' grid outside those that are used."""
        return self._event.rates

    def probabilities(self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel) -> NDArray[np.float64]:
        """Return the probability of each row."""
        rate = self.epsilon / (self.norm_bound - self.threshold)
        distances = np.concatenate(
            [boundary_distances(values, model.coef) for values in score_blocks(X, model, candidates=rows)]
        )
        wanted: NDArray[np.float64] = np.exp(-np.maximum(distances, self.threshold) * rate)
        return wanted

    def one_pass_event(self) -> Event:
        """Return the event of one pass."""
        return self._event


@dataclass(frozen=True)
class FallingRate(ScreenChoice):
    """An exponential screen as projects choose it."""

    name: ClassVar[str] = "exponential_screen"
    label: ClassVar[str] = _("screen with a falling rate, each record looked at once")
    sound: ClassVar[Sound] = Sound(oracles=("trusted",), why_not={"crowd": OF_RECORDS})

    selection_epsilon: float = parameter(
        1.0,
        above=0,
        at_most=10,
        label=LEANING,
        help=OF_LEANING,
        rule=_("Must lie between 0 and 10 here, got {got}."),
        charged=True,
    )
    exponential_threshold: float = parameter(
        0.5,
        above=0,
        below=NORM_BOUND,
        label=_("Screen: where the rate begins to fall"),
        help=_("Distance from the boundary, below 1."),
        rule=_("Must lie between 0 and 1, the norm bound, got {got}: at 0 a skip tells everything."),
        charged=True,
    )

    def divisions(self, shared: SharedLimit) -> Iterator[Division]:
        """Vary the range of the rate, since a skip costs at least what it costs at the smallest one."""
        for scale in () if shared.hidden else SCALES:
            looks = replace(self, selection_epsilon=scale).event(pool_size=1, picks=1).cost().epsilon
            # A record of a stream is skipped, or else selected and learned from; in a pool its looks are paid before.
            choosing, trainings = (scale, 1) if shared.stream else (looks, max(1, shared.releases))
            if looks <= shared.epsilon and choosing < shared.epsilon:
                training = (shared.epsilon - choosing) / trainings
                yield Division(changes={"selection_epsilon": scale}, choosing=choosing, training=training)

    def undivided(self, *, hidden: bool) -> str:
        """Say that one price holds both."""
        if not hidden:
            return ""
        return _(
            "Nothing is to divide here: hidden windows have one price for choice and update together, and a falling "
            "rate sets both."
        )

    def strategy(self) -> ExponentialScreen:
        """Return the screen."""
        return ExponentialScreen(self.exponential_threshold, norm_bound=NORM_BOUND, epsilon=self.selection_epsilon)
