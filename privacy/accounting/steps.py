"""Event of noisy gradient steps: one record moves each step by a bounded residual times its row."""

import math
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Self

from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, outward
from privacy.accounting.event import Event, EventWords, counted_words
from privacy.accounting.sums import GRID_DELTA, GRID_EPSILON, MOST_ENTRIES
from privacy.accounting.training import ANY_ADJACENCY, gaussian_cost
from privacy.wording import gettext_noop as _
from privacy.wording import ngettext_noop

# Each step answers for a grid of its own.
MOST_STEPS = 1000


@dataclass(frozen=True, slots=True)
class GradientStepsEvent(Event):
    r"""Gaussian noise on the number of rows, then on :math:`\sum_i r_i x_i^\top` in each of several steps.

    Rows have at most `norm_bound`, constant column included. A residual `r`, one entry a class, may depend on its own
    record and on whatever earlier steps released; it has at most `residual_bound`. With `delta` > 0 the charge is a
    point on the exact curve, for `pure` accounts; without, rho alone.
    """

    steps: int
    dimension: int
    n_classes: int
    norm_bound: float
    residual_bound: float
    sigma: float
    count_sigma: float
    delta: float = 0.0
    kind: ClassVar[str] = "gradient_steps"
    words: ClassVar[EventWords] = EventWords(
        _("noisy gradient descent"),
        ngettext_noop("%(steps)s noisy gradient step", "%(steps)s noisy gradient steps"),
        counted="steps",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.at_least("steps", self.steps, 1)
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("n_classes", self.n_classes, 1)
        for name in ("norm_bound", "residual_bound", "sigma", "count_sigma"):
            checks.positive(name, getattr(self, name))
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta}")
        if self.steps > MOST_STEPS:
            raise ValueError(f"at most {MOST_STEPS} steps can be made, got {self.steps}")
        if (entries := self.dimension * self.n_classes) > MOST_ENTRIES:
            raise ValueError(f"at most {MOST_ENTRIES} sums can be released, got {entries}")

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        r"""Return how far, in standard deviations, one neighbour moves all steps and the count together.

        Notes
        -----
        Gaussian mechanisms chosen one after the other compose as one of ratio :math:`\sqrt{\sum_t \mu_t^2}` [1]_. A
        row against an empty slot, or one more row, moves a step by :math:`\|r\|\|x\|` and the count by 1. A replacement
        may be that as well, or a row against another, which moves a step by twice as much and the count not at all.

        References
        ----------
        .. [1] Dong, Roth, Su, "Gaussian differential privacy", 2022, Corollary 3.3.
        """
        checks.one_of("adjacency", adjacency, ADJACENCIES)
        one = self.residual_bound * self.norm_bound / self.sigma
        counted = math.sqrt(self.steps * one**2 + self.count_sigma**-2)
        return outward(max(2 * math.sqrt(self.steps) * one, counted) if adjacency == "replace" else counted)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the price of all steps together; whatever is computed from them is free."""
        exact = gaussian_cost(self.gaussian_mu(adjacency=adjacency), 1.0, self.delta)
        if self.delta == 0:
            return exact
        return Cost(
            exact.epsilon + self.grids * GRID_EPSILON,
            min(1.0, self.delta * (1 + self.grids * GRID_DELTA)),
            rho=exact.rho,
        )

    @property
    def grids(self) -> int:
        """Releases that are rounded to a grid each: all steps and the number of rows."""
        return self.steps + 1

    def in_rho(self) -> Self:
        return replace(self, delta=0.0)

    def summary(self) -> str:
        return self._summary("")

    def _summary(self, about: str) -> str:
        steps, columns = counted_words(self.steps, "gradient step"), counted_words(self.dimension, "column")
        classes = counted_words(self.n_classes, "class", "classes")
        return f"{steps} of {columns}{about} for {classes} with Gaussian noise of {self.sigma:.4g}"


@dataclass(frozen=True, slots=True)
class CenteredStepsEvent(GradientStepsEvent):
    r"""Gaussian noise on :math:`\sum_i x_i` as well, before the first step: rows are then taken about their mean.

    What a step reads of a record may depend on the noisy sum, as it may on earlier steps; it has at most `norm_bound`.
    """

    center_sigma: float = field(kw_only=True)
    kind: ClassVar[str] = "centered_gradient_steps"
    words: ClassVar[EventWords] = EventWords(
        _("noisy gradient descent"),
        ngettext_noop(
            "%(steps)s noisy gradient step about a noisy mean",
            "%(steps)s noisy gradient steps about a noisy mean",
        ),
        counted="steps",
    )

    def __post_init__(self) -> None:
        GradientStepsEvent.__post_init__(self)
        checks.positive("center_sigma", self.center_sigma)

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        r"""Return how far, in standard deviations, one neighbour moves the sum of rows, the steps and the count.

        Notes
        -----
        A row against an empty slot, or one more row, moves the sum by :math:`\|x\|`, another row by twice that.
        """
        later = GradientStepsEvent.gaussian_mu(self, adjacency=adjacency)
        times = 2 if adjacency == "replace" else 1
        return outward(math.hypot(later, times * self.norm_bound / self.center_sigma))

    @property
    def grids(self) -> int:
        """Releases that are rounded to a grid each: all steps, the number of rows and their sum."""
        return self.steps + 2

    def summary(self) -> str:
        return self._summary(" about a noisy mean")


@dataclass(frozen=True, slots=True)
class SpanStepsEvent(GradientStepsEvent):
    r"""Gaussian noise on the number of records, then on the gradient of a chain over their tokens in each step.

    A record's gradient, `n_classes` by `dimension` with transitions included, may depend on its own tokens and tags and
    on whatever earlier steps released; all of it together has at most `residual_bound`. `norm_bound` is 1.
    """

    kind: ClassVar[str] = "span_steps"
    words: ClassVar[EventWords] = EventWords(
        _("noisy gradient descent on spans"),
        ngettext_noop(
            "%(steps)s noisy gradient step, clipped per text",
            "%(steps)s noisy gradient steps, clipped per text",
        ),
        counted="steps",
    )

    def __post_init__(self) -> None:
        GradientStepsEvent.__post_init__(self)
        if self.norm_bound != 1:
            raise ValueError(f"norm_bound must be 1, got {self.norm_bound}")


def gradient_steps_event(
    epsilon: float,
    delta: float,
    *,
    steps: int,
    dimension: int,
    n_classes: int,
    norm_bound: float,
    residual_bound: float,
    count_share: float = 0.01,
    center_share: float = 0.0,
    adjacency: Adjacency = "null",
) -> GradientStepsEvent:
    """Return the event that costs at most (epsilon, delta) under `adjacency`, to a part in a million.

    Parameters
    ----------
    count_share : float
        Share of the squared ratio that goes to the number of rows, in (0, 1).
    center_share : float
        Share of it that goes to the sum of rows, in [0, 1); 0 for none, and then no sum is released.
    """
    checks.delta_in_open_interval("delta", delta)
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    grids = steps + (2 if center_share else 1)
    if not epsilon > 2 * grids * GRID_EPSILON:
        raise ValueError(f"epsilon must be > {2 * grids * GRID_EPSILON}, got {epsilon}")
    if not 0 < count_share < 1:
        raise ValueError(f"count_share must lie in (0, 1), got {count_share}")
    if not 0 <= center_share < 1 - count_share:
        raise ValueError(f"center_share must lie in [0, {1 - count_share}), got {center_share}")
    inside = delta / (1 + 2 * grids * GRID_DELTA)

    def event_of(mu: float) -> GradientStepsEvent:
        times = 2 if adjacency == "replace" else 1
        sigma = times * residual_bound * norm_bound * math.sqrt(steps / (1 - count_share - center_share)) / mu
        count = 1 / (mu * math.sqrt(count_share))
        parameters = (steps, dimension, n_classes, float(norm_bound), float(residual_bound), sigma, count, inside)
        if not center_share:
            return GradientStepsEvent(*parameters)
        return CenteredStepsEvent(*parameters, center_sigma=times * norm_bound / (mu * math.sqrt(center_share)))

    low, high = 0.0, 1.0
    while event_of(high).cost(adjacency=adjacency).epsilon <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        fits = event_of(middle).cost(adjacency=adjacency).epsilon <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return event_of(low)


def span_steps_event(
    epsilon: float, delta: float, *, steps: int, dimension: int, n_tags: int, clip: float, adjacency: Adjacency = "null"
) -> SpanStepsEvent:
    """Return the event of a chain with `n_tags` tags that costs at most (epsilon, delta), to a part in a million.

    `dimension` are the weights of a tag, those of the tags before it included; `clip` bounds a record's gradient.
    """
    shape = {"steps": steps, "dimension": dimension, "n_classes": n_tags, "norm_bound": 1.0, "residual_bound": clip}
    found = gradient_steps_event(epsilon, delta, adjacency=adjacency, **shape)  # type: ignore[arg-type]
    return SpanStepsEvent(**{field.name: getattr(found, field.name) for field in fields(found)})
