"""Events of noisy sums, running sums, cell counts and second moments, with the noise they need."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Self

from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, float_at_least, outward
from privacy.accounting.event import Event, EventWords, counted_words
from privacy.accounting.training import ANY_ADJACENCY, gaussian_cost
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
    words: ClassVar[EventWords] = EventWords(_("training from noisy sums"), _("noisy sums and second moments"))
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("n_classes", self.n_classes, 1)
        checks.at_least("labels_per_record", self.labels_per_record, 1)
        checks.positive("norm_bound", self.norm_bound)
        checks.not_negative("moment_sigma", self.moment_sigma)
        checks.positive("class_sigma", self.class_sigma)
        if self.labels_per_record > self.n_classes:
            raise ValueError(
                f"labels_per_record must be at most the {self.n_classes} classes, got {self.labels_per_record}"
            )
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta}")
        if self.entries > MOST_ENTRIES:
            raise ValueError(f"at most {MOST_ENTRIES} sums can be released, got {self.entries}")

    @property
    def grids(self) -> int:
        """Releases that are rounded to a grid each: all sums together."""
        return 1

    @property
    def entries(self) -> int:
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
        return replace(self, delta=0.0)

    def summary(self) -> str:
        columns = counted_words(self.dimension, "column")
        classes = counted_words(self.n_classes, "class", "classes")
        if self.moment_sigma == 0:
            return f"sums of {columns} for {classes} with Gaussian noise of {self.class_sigma:.4g}"
        noise = f"Gaussian noise of {self.moment_sigma:.4g} and {self.class_sigma:.4g}"
        return f"second moments of {columns} and sums for {classes} with {noise}"


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
    """
    checks.positive("mu", mu)
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    if not 0 <= moment_share < 1:
        raise ValueError(f"moment_share must lie in [0, 1), got {moment_share}")
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
        raise ValueError(f"epsilon must be > {2 * GRID_EPSILON}, got {epsilon}")
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
    return delta / (1 + 2 * GRID_DELTA)


# Coefficients are whole numbers of this part of one, so that every machine computes the same ones.
PARTS: Final = 2**16
MOST_UPDATES: Final = 1024
# Decays and weights, in parts, by the updates they were fitted for: least mean variance of the running sums times the
# squared norm of a column, found by Nelder and Mead from public numbers alone.
FITTED: Final[Mapping[int, tuple[tuple[int, int], tuple[int, int]]]] = {
    16: ((11796, 55273), (5695, 27007)),
    32: ((28541, 60129), (11587, 21483)),
    64: ((38640, 62685), (16181, 16672)),
    128: ((45626, 64016), (19241, 12871)),
    256: ((50692, 64717), (21004, 9935)),
    512: ((54434, 65090), (21732, 7668)),
    1024: ((57226, 65287), (21673, 5918)),
}


@dataclass(frozen=True, slots=True)
class RunningSumsEvent(Event):
    r"""At update t of an epoch, :math:`\sum_{j\le t} c_{t-j}` times the sums of batch j, with noise as `sums` says.

    Each record is in one batch of one epoch of at most `updates`. Coefficients are public: :math:`c_0 = 1` and
    :math:`c_k = \sum_i \omega_i\theta_i^{k-1}` from `weights` and `decays`, in parts of :math:`2^{-16}`. Batches may be
    chosen by looking at what was released before. `sums` is one release; its delta is where all of them are charged.
    """

    sums: SumsEvent
    updates: int
    decays: tuple[int, ...]
    weights: tuple[int, ...]
    kind: ClassVar[str] = "running_sums"
    words: ClassVar[EventWords] = EventWords(_("training from running sums"), _("noisy running sums over batches"))
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.at_least("updates", self.updates, 1)
        if self.updates > MOST_UPDATES:
            raise ValueError(f"updates must be at most {MOST_UPDATES}, got {self.updates}")
        if len(self.decays) != len(self.weights) or not all(0 <= part < PARTS for part in self.decays + self.weights):
            raise ValueError(f"decays and weights must be as many, each in [0, {PARTS})")
        if self.sums.entries * self.updates > MOST_ENTRIES:
            raise ValueError(f"at most {MOST_ENTRIES} sums can be released, got {self.sums.entries * self.updates}")

    @property
    def coefficients(self) -> tuple[int, ...]:
        """The coefficients of an epoch's updates, newest batch first, in parts."""
        return coefficients(self.updates, self.decays, self.weights)

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        r"""Return how far, in standard deviations, one neighbour moves all releases together.

        Notes
        -----
        A record of batch j moves release t by :math:`c_{t-j}` times what it moves its own batch's sums by, so the first
        batch of an epoch is the worst. Noise is fresh in every release and later batches may depend on earlier
        releases: the ratio of two such courses is that of one Gaussian vector with this shift (Denisov et al. 2022).
        """
        return outward(self.sums.gaussian_mu(adjacency=adjacency) * column_norm(self.coefficients))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the price of all releases of all epochs; whatever is computed from them is free."""
        exact = gaussian_cost(self.gaussian_mu(adjacency=adjacency), 1.0, self.sums.delta)
        if self.sums.delta == 0:
            return exact
        return Cost(exact.epsilon + GRID_EPSILON, min(1.0, self.sums.delta * (1 + GRID_DELTA)), rho=exact.rho)

    def in_rho(self) -> Self:
        return replace(self, sums=self.sums.in_rho())

    def summary(self) -> str:
        batches = counted_words(self.updates, "batch:", "batches: each time")
        return f"running sums of at most {batches} {self.sums.summary()}"


@lru_cache(maxsize=64)
def coefficients(updates: int, decays: tuple[int, ...], weights: tuple[int, ...]) -> tuple[int, ...]:
    found, terms = [PARTS], [weight * PARTS for weight in weights]
    for _batch in range(updates - 1):
        found.append(sum(terms) // PARTS)
        terms = [term * decay // PARTS for term, decay in zip(terms, decays, strict=True)]
    return tuple(found)


def column_norm(parts: tuple[int, ...]) -> float:
    square = Fraction(sum(part * part for part in parts), PARTS * PARTS)
    return outward(math.sqrt(float_at_least(square)))


def fitted_for(updates: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return decays and weights for an epoch of so many updates."""
    for fitted, found in FITTED.items():
        if updates <= fitted:
            return found
    raise ValueError(f"updates must be at most {MOST_UPDATES}, got {updates}")


def running_sums_event(
    mu: float,
    *,
    updates: int,
    dimension: int,
    n_classes: int,
    norm_bound: float,
    moment_share: float,
    delta: float = 0.0,
    adjacency: Adjacency = "null",
) -> RunningSumsEvent:
    """Return the event whose sensitivity-to-noise ratio, all releases together, is at most `mu` under `adjacency`."""
    decays, weights = fitted_for(updates)
    sums = sums_event(
        mu / column_norm(coefficients(updates, decays, weights)) * (1 - 2.0**-44),
        dimension=dimension,
        n_classes=n_classes,
        norm_bound=norm_bound,
        moment_share=moment_share,
        delta=delta,
        adjacency=adjacency,
    )
    return RunningSumsEvent(sums, updates, decays, weights)
