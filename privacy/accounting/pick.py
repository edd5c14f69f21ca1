"""Event of a fit with a noisy count that picks how far to go from the model before it."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from privacy.accounting import checks
from privacy.accounting.composition import bounded_range_rho
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import NOISE_WORDS, Event, EventWords
from privacy.accounting.series import SecretBlockEvent, SecretSeriesEvent
from privacy.accounting.steps import GradientStepsEvent
from privacy.accounting.sums import GRID_DELTA, GRID_EPSILON, SumsEvent
from privacy.accounting.training import ANY_ADJACENCY, SecretSampleEvent, gaussian_cost, records_moved
from privacy.accounting.units import outward
from privacy.wording import gettext_noop as _

PickNoise = Literal["gaussian", "exponential"]
MOST_CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class PickedFitEvent(Event):
    r"""A training, then one of `candidates` models picked by a noisy count of the same rows that each gets right.

    The candidates are made of public models and of what the training released. Gaussian noise of deviation `scale` is
    on the difference of each count to that of the first candidate; `inner` then is Gaussian as well, without a delta
    of its own, and `delta` is where both together are charged. Or a candidate is drawn with probability proportional
    to :math:`e^{s u}`, s the `scale` and u its count.
    """

    inner: Event
    candidates: int
    scale: float
    noise: PickNoise = "gaussian"
    delta: float = 0.0
    kind: ClassVar[str] = "picked_fit"
    words: ClassVar[EventWords] = EventWords(
        _("training with model selection"),
        _("best of %(candidates)s models by noisy counts"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.at_least("candidates", self.candidates, 2)
        checks.positive("scale", self.scale)
        checks.one_of("noise", self.noise, ("gaussian", "exponential"))
        if self.candidates > MOST_CANDIDATES:
            raise ValueError(f"candidates must be at most {MOST_CANDIDATES}, got {self.candidates}")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta}")
        amplified = isinstance(self.inner, PickedFitEvent | SecretSampleEvent | SecretBlockEvent | SecretSeriesEvent)
        if amplified or self.inner.needs_parent or getattr(self.inner, "unit", "record") != "record":
            raise ValueError(f"{self.inner.kind} is no training whose fit can be picked")
        composes = isinstance(self.inner, SumsEvent | GradientStepsEvent) and self.inner.delta == 0
        if self.noise == "gaussian" and not composes:
            raise ValueError(f"{self.inner.kind} does not compose with Gaussian counts")
        if self.noise == "exponential" and self.delta:
            raise ValueError(f"delta must be 0 for {NOISE_WORDS['exponential']}, got {self.delta}")

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float | None:
        r"""Return how far, in standard deviations, one neighbour moves the training and the counts together.

        Notes
        -----
        A row that leaves or comes moves each of the :math:`m - 1` differences by at most 1, so all of them by
        :math:`\sqrt{m-1}`; a row against another is both. The candidates follow from the training's outputs, so this is
        an adaptive composition of Gaussian mechanisms: squares of ratios add up [1]_.

        References
        ----------
        .. [1] Dong, Roth, Su, "Gaussian differential privacy", 2022, Corollary 3.3.
        """
        trained = self.inner.gaussian_mu(adjacency=adjacency)
        if self.noise != "gaussian" or trained is None:
            return None
        moved = records_moved(adjacency) * math.sqrt(self.candidates - 1)
        return outward(math.hypot(trained, moved / self.scale))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        r"""Return the price of training and pick together.

        Notes
        -----
        A row that leaves or comes moves all counts the same way, by 1 at most, so weights change by a factor in
        :math:`[1, e^s]` and their sum, too: the draw costs s, and its losses lie within a range of s.
        """
        mu = self.gaussian_mu(adjacency=adjacency)
        if mu is None:
            return self.inner.cost(adjacency=adjacency).plus(self.drawing_cost(adjacency=adjacency))
        exact = gaussian_cost(mu, 1.0, self.delta)
        if self.delta == 0:
            return exact
        return Cost(
            exact.epsilon + self.grids * GRID_EPSILON,
            min(1.0, self.delta * (1 + self.grids * GRID_DELTA)),
            rho=exact.rho,
        )

    def drawing_cost(self, *, adjacency: Adjacency) -> Cost:
        """Return the price of the draw alone."""
        drawn = outward(records_moved(adjacency) * self.scale)
        return Cost(drawn, rho=outward(bounded_range_rho(drawn)))

    @property
    def grids(self) -> int:
        """Releases that are rounded to a grid each: those of the training and the counts."""
        return self.inner.grids + 1 if isinstance(self.inner, SumsEvent | GradientStepsEvent) else 0

    def in_rho(self) -> Self:
        """Return the same noise without a point of its curve."""
        return replace(self, inner=self.inner.in_rho(), delta=0.0)

    def summary(self) -> str:
        noise = f"{NOISE_WORDS[self.noise]} of {self.scale:.4g}"
        return f"{self.inner.summary()}; one of {self.candidates} models picked by counts with {noise}"


def picked_fit_event(
    inner: Event, *, candidates: int, share: float, delta: float = 0.0, adjacency: Adjacency = "null"
) -> PickedFitEvent:
    """Return a Gaussian training with a pick that has `share` of the squared ratio of both."""
    trained = inner.in_rho()
    mu = trained.gaussian_mu(adjacency=adjacency)
    if mu is None or not 0 < share < 1:
        raise ValueError(f"share must lie in (0, 1), got {share}")
    scale = records_moved(adjacency) * math.sqrt((candidates - 1) * (1 - share) / share) / mu
    return PickedFitEvent(trained, candidates, scale, delta=delta)
