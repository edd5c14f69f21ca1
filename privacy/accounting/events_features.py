"""Events of releases that shape features: the noisy second moments from which principal directions are taken."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost
from privacy.accounting.count_words import column_words
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_training import ANY_ADJACENCY
from privacy.accounting.noise_words import NOISE_WORDS
from privacy.accounting.units import outward
from privacy.accounting.vector_noise import check_vector_noise, gaussian_cost
from privacy.wording import as_message, ngettext_noop
from privacy.wording import gettext_noop as _

MomentNoise = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class SecondMomentsEvent(Event):
    """Independent noise on each entry, on and above the diagonal, of the sum of x x^T over rows of bounded norm.

    Rows are first shortened to a grid, so sums are exact. Discrete Laplace noise is charged as pure epsilon, discrete
    Gaussian noise as rho and, with `delta`, as a point on its exact curve.
    """

    dimension: int
    norm_bound: float
    noise_scale: float
    noise: MomentNoise = "laplace"
    delta: float = 0.0
    kind: ClassVar[str] = "second_moments"
    words: ClassVar[EventWords] = EventWords(
        _("principal directions"),
        ngettext_noop(
            "noisy second moments of %(dimension)s column",
            "noisy second moments of %(dimension)s columns",
        ),
        counted="dimension",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges."""
        checks.at_least("dimension", self.dimension, 1)
        checks.positive("norm_bound", self.norm_bound)
        checks.one_of("noise", self.noise, ("laplace", "gaussian"))
        check_vector_noise(self.noise, self.noise_scale, 0.0, self.delta)

    def sensitivity(self, adjacency: Adjacency = "null") -> float:
        """Return how far one neighbour moves the entries: in L1 for Laplace noise, in L2 for Gaussian."""
        checks.one_of("adjacency", adjacency, ADJACENCIES)
        square, d = self.norm_bound**2, self.dimension
        if self.noise == "gaussian":
            return outward(square * (math.sqrt(2) if adjacency == "replace" else 1.0))
        if adjacency == "replace":
            return outward(square * min(d + 1.0, d / math.sqrt(2) + 1.0))
        return outward(square * (d + 1) / 2)

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float | None:
        """Return sensitivity over sigma with Gaussian noise."""
        return self.sensitivity(adjacency) / self.noise_scale if self.noise == "gaussian" else None

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the price of the noisy matrix; whatever is computed from it is free."""
        if self.noise == "gaussian":
            return gaussian_cost(self.sensitivity(adjacency), self.noise_scale, self.delta)
        return Cost(outward(self.sensitivity(adjacency) / self.noise_scale))

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "second moments of {word_columns} with {word_noise} of scale {noise_scale:.4g}",
            word_columns=column_words(self.dimension),
            word_noise=NOISE_WORDS[self.noise],
            noise_scale=self.noise_scale,
        )


def second_moments_event(
    epsilon: float, dimension: int, *, norm_bound: float = 1.0, delta: float = 0.0
) -> SecondMomentsEvent:
    """Return the event with the least noise that costs at most `epsilon` under null, Gaussian where `delta` > 0.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    checks.positive("epsilon", epsilon)

    def event(scale: float) -> SecondMomentsEvent:
        return SecondMomentsEvent(dimension, float(norm_bound), scale, "gaussian" if delta > 0 else "laplace", delta)

    if delta == 0:
        # Two outward roundings lie between the sensitivity and the price.
        return event(event(1.0).sensitivity() / epsilon * (1 + 2.0**-44))
    low, high = 1e-9 * norm_bound**2, norm_bound**2
    while event(high).cost().epsilon > epsilon:
        low, high = high, 2 * high
    for _halving in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if event(middle).cost().epsilon <= epsilon else (middle, high)
    return event(high)
