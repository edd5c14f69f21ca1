"""The event of noisy sums: second moments and class sums of rows, at one price for any number of classes."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Self

from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost
from privacy.accounting.count_words import class_words, column_words
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_training import ANY_ADJACENCY
from privacy.accounting.units import outward
from privacy.accounting.vector_noise import gaussian_cost
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

# The sampler's grid is so fine that its law and that of a rounded continuous Gaussian differ by less than these, over
# all entries together; see docs/privacy.md, sums.
GRID_EPSILON = 1e-8
GRID_DELTA = 1e-8
MOST_ENTRIES = 2_000_000


@dataclass(frozen=True, slots=True)
class SumsEvent(Event):
    r"""Independent Gaussian noise on :math:`\sum_i x_i x_i^\top` and on the sum of the rows of each class.

    Rows have at most `norm_bound`, constant column included, and at most `labels_per_record` classes each.
    `moment_sigma` is the standard deviation on the diagonal of the moments, of which the entries above it have the
    :math:`\sqrt2`-th part; 0 stands for class sums alone. `class_sigma` is that of every entry of the class sums.
    With `delta` > 0 the charge is a point on the exact curve, for `pure` accounts; without, rho alone.
    """

    dimension: int
    n_classes: int
    norm_bound: float
    moment_sigma: float
    class_sigma: float
    labels_per_record: int = 1
    delta: float = 0.0
    kind: ClassVar[str] = "sums"
    words: ClassVar[EventWords] = EventWords(
        _("training from noisy sums"),
        _("noisy sums of rows and of products of their columns"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges."""
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("n_classes", self.n_classes, 1)
        checks.at_least("labels_per_record", self.labels_per_record, 1)
        checks.positive("norm_bound", self.norm_bound)
        checks.not_negative("moment_sigma", self.moment_sigma)
        checks.positive("class_sigma", self.class_sigma)
        if self.labels_per_record > self.n_classes:
            raise ValueError(
                as_message(
                    "labels_per_record must be at most the {n_classes} classes, got {labels}",
                    n_classes=self.n_classes,
                    labels=self.labels_per_record,
                )
            )
        if not 0 <= self.delta < 1:
            raise ValueError(as_message("delta must lie in [0, 1), got {delta}", delta=self.delta))
        if self.entries > MOST_ENTRIES:
            raise ValueError(
                as_message("at most {most} sums can be released, got {n}", most=MOST_ENTRIES, n=self.entries)
            )

    @property
    def entries(self) -> int:
        """How many numbers are released."""
        moments = self.dimension * (self.dimension + 1) // 2 if self.moment_sigma else 0
        return moments + self.dimension * self.n_classes

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        r"""Return how far, in standard deviations, one neighbour moves the sums.

        Notes
        -----
        One row against an empty slot, or one more row, moves the weighted upper triangle by :math:`\|x\|^2` and at most
        r class sums by :math:`\|x\|` each. One row against another moves them by at most :math:`\sqrt2 M^2` and
        :math:`2\sqrt r M`.
        """
        checks.one_of("adjacency", adjacency, ADJACENCIES)
        replaced = adjacency == "replace"
        square = 0.0
        if self.moment_sigma:
            square += (2 if replaced else 1) * (self.norm_bound**2 / self.moment_sigma) ** 2
        square += (4 if replaced else 1) * self.labels_per_record * (self.norm_bound / self.class_sigma) ** 2
        return outward(math.sqrt(square))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the price of all sums together; whatever is computed from them is free."""
        exact = gaussian_cost(self.gaussian_mu(adjacency=adjacency), 1.0, self.delta)
        if self.delta == 0:
            return exact
        return Cost(exact.epsilon + GRID_EPSILON, min(1.0, self.delta * (1 + GRID_DELTA)), rho=exact.rho)

    def in_rho(self) -> Self:
        """Return the same noise without a point of its curve."""
        return replace(self, delta=0.0)

    def summary(self) -> str:
        """Return one sentence."""
        shape = {
            "word_columns": column_words(self.dimension),
            "word_classes": class_words(self.n_classes),
            "class_sigma": self.class_sigma,
        }
        if self.moment_sigma == 0:
            return as_message(
                "sums of {word_columns} for {word_classes} with Gaussian noise of {class_sigma:.4g}", **shape
            )
        return as_message(
            "second moments of {word_columns} and sums for {word_classes} with Gaussian noise of "
            "{moment_sigma:.4g} and {class_sigma:.4g}",
            moment_sigma=self.moment_sigma,
            **shape,
        )


def sums_event(
    mu: float,
    *,
    dimension: int,
    n_classes: int,
    norm_bound: float,
    moment_share: float = 0.5,
    labels_per_record: int = 1,
    delta: float = 0.0,
    adjacency: Adjacency = "null",
) -> SumsEvent:
    """Return the event whose sensitivity-to-noise ratio under `adjacency` is at most `mu`.

    Parameters
    ----------
    mu : float
        > 0.
    moment_share : float
        Share of the squared ratio that goes to the second moments, in [0, 1); 0 leaves them out.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    checks.positive("mu", mu)
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    if not 0 <= moment_share < 1:
        raise ValueError(as_message("moment_share must lie in [0, 1), got {share}", share=moment_share))
    replaced = adjacency == "replace"
    # Several outward roundings lie between the sigmas and the price.
    room = mu * (1 - 2.0**-44)
    moments = norm_bound**2 * math.sqrt(2 if replaced else 1) / (room * math.sqrt(moment_share)) if moment_share else 0
    classes = norm_bound * math.sqrt(labels_per_record) * (2 if replaced else 1) / (room * math.sqrt(1 - moment_share))
    return SumsEvent(dimension, n_classes, float(norm_bound), float(moments), classes, labels_per_record, float(delta))


@lru_cache(maxsize=64)
def sums_mu(epsilon: float, delta: float) -> float:
    """Return the largest ratio whose sums cost at most (epsilon, delta), grid included, to a part in 1e12.

    Raises
    ------
    ValueError
        If epsilon is not above what the grid is charged, or delta not in (0, 1).
    """
    checks.delta_in_open_interval("delta", delta)
    if not epsilon > 2 * GRID_EPSILON:
        raise ValueError(
            as_message("epsilon must be > {least}, got {epsilon}", least=2 * GRID_EPSILON, epsilon=epsilon)
        )
    inside = delta / (1 + 2 * GRID_DELTA)
    low, high = 0.0, 1.0

    def price(mu: float) -> float:
        return gaussian_cost(outward(mu), 1.0, inside).epsilon + GRID_EPSILON

    while price(high) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if price(middle) <= epsilon else (low, middle)
    return low


def charged_delta(delta: float) -> float:
    """Return the delta to write into an event that may cost at most `delta`."""
    return delta / (1 + 2 * GRID_DELTA)
