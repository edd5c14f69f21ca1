"""Event of noisy gradient steps: one record moves each step by a bounded residual times its row."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost
from privacy.accounting.event import Event, EventWords, class_words, column_words
from privacy.accounting.sums import GRID_DELTA, GRID_EPSILON, MOST_ENTRIES
from privacy.accounting.training import ANY_ADJACENCY, gaussian_cost
from privacy.accounting.units import outward
from privacy.wording import as_message, as_plural_message, ngettext_noop
from privacy.wording import gettext_noop as _

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
        _("training by noisy gradient steps"),
        ngettext_noop("%(steps)s noisy gradient step over all rows", "%(steps)s noisy gradient steps over all rows"),
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
            raise ValueError(as_message("delta must lie in [0, 1), got {delta}", delta=self.delta))
        if self.steps > MOST_STEPS:
            raise ValueError(as_message("at most {most} steps can be made, got {n}", most=MOST_STEPS, n=self.steps))
        if (entries := self.dimension * self.n_classes) > MOST_ENTRIES:
            raise ValueError(as_message("at most {most} sums can be released, got {n}", most=MOST_ENTRIES, n=entries))

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
        return as_plural_message(
            "{n} gradient step of {word_columns} for {word_classes} with Gaussian noise of {sigma:.4g}",
            "{n} gradient steps of {word_columns} for {word_classes} with Gaussian noise of {sigma:.4g}",
            n=self.steps,
            word_columns=column_words(self.dimension),
            word_classes=class_words(self.n_classes),
            sigma=self.sigma,
        )


@dataclass(frozen=True, slots=True)
class CenteredStepsEvent(GradientStepsEvent):
    r"""Gaussian noise on :math:`\sum_i x_i` as well, before the first step: rows are then taken about their mean.

    What a step reads of a record may depend on the noisy sum, as it may on earlier steps; it has at most `norm_bound`.
    """

    center_sigma: float = field(kw_only=True)
    kind: ClassVar[str] = "centered_gradient_steps"
    words: ClassVar[EventWords] = EventWords(
        _("training by noisy gradient steps about a mean"),
        ngettext_noop(
            "%(steps)s noisy gradient step over all rows, taken about their noisy mean",
            "%(steps)s noisy gradient steps over all rows, taken about their noisy mean",
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
        return as_plural_message(
            "{n} gradient step of {word_columns} about a noisy mean for {word_classes} with Gaussian noise of "
            "{sigma:.4g}",
            "{n} gradient steps of {word_columns} about a noisy mean for {word_classes} with Gaussian noise of "
            "{sigma:.4g}",
            n=self.steps,
            word_columns=column_words(self.dimension),
            word_classes=class_words(self.n_classes),
            sigma=self.sigma,
        )


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
        raise ValueError(
            as_message("epsilon must be > {least}, got {epsilon}", least=2 * grids * GRID_EPSILON, epsilon=epsilon)
        )
    if not 0 < count_share < 1:
        raise ValueError(as_message("count_share must lie in (0, 1), got {share}", share=count_share))
    if not 0 <= center_share < 1 - count_share:
        raise ValueError(
            as_message("center_share must lie in [0, {most}), got {share}", most=1 - count_share, share=center_share)
        )
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
