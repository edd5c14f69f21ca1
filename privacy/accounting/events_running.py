"""The event of running sums: sums of batches that are released anew with every batch, at one price for all of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Self

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_sums import GRID_DELTA, GRID_EPSILON, MOST_ENTRIES, SumsEvent, sums_event
from privacy.accounting.events_training import ANY_ADJACENCY
from privacy.accounting.units import float_at_least, outward
from privacy.accounting.vector_noise import gaussian_cost
from privacy.wording import as_message, as_plural_message
from privacy.wording import gettext_noop as _

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
    words: ClassVar[EventWords] = EventWords(
        _("training from running sums"),
        _("noisy sums of all batches so far, released anew with every batch"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges."""
        checks.at_least("updates", self.updates, 1)
        if self.updates > MOST_UPDATES:
            raise ValueError(
                as_message("updates must be at most {most}, got {got}", most=MOST_UPDATES, got=self.updates)
            )
        if len(self.decays) != len(self.weights) or not all(0 <= part < PARTS for part in self.decays + self.weights):
            raise ValueError(as_message("decays and weights must be as many, each in [0, {parts})", parts=PARTS))
        if self.sums.entries * self.updates > MOST_ENTRIES:
            raise ValueError(
                as_message(
                    "at most {most} sums can be released, got {n}",
                    most=MOST_ENTRIES,
                    n=self.sums.entries * self.updates,
                )
            )

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
        """Return the same noise without a point of its curve."""
        return replace(self, sums=self.sums.in_rho())

    def summary(self) -> str:
        """Return one sentence."""
        return as_plural_message(
            "running sums of at most {n} batch: {reason}",
            "running sums of at most {n} batches: each time {reason}",
            n=self.updates,
            reason=self.sums.summary(),
        )


@lru_cache(maxsize=64)
def coefficients(updates: int, decays: tuple[int, ...], weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return as many coefficients, in parts, by integers alone."""
    found, terms = [PARTS], [weight * PARTS for weight in weights]
    for _batch in range(updates - 1):
        found.append(sum(terms) // PARTS)
        terms = [term * decay // PARTS for term, decay in zip(terms, decays, strict=True)]
    return tuple(found)


def column_norm(parts: tuple[int, ...]) -> float:
    """Return the norm of the coefficients, of which one record meets all."""
    square = Fraction(sum(part * part for part in parts), PARTS * PARTS)
    return outward(math.sqrt(float_at_least(square)))


def fitted_for(updates: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return decays and weights for an epoch of so many updates.

    Raises
    ------
    ValueError
        If there are more updates than were fitted for.
    """
    for fitted, found in FITTED.items():
        if updates <= fitted:
            return found
    raise ValueError(as_message("updates must be at most {most}, got {got}", most=MOST_UPDATES, got=updates))


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
    """Return the event whose sensitivity-to-noise ratio, all releases together, is at most `mu` under `adjacency`.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
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
