"""Event of a series of secret blocks: a record is in at most one block, and the whole series is one charge."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost, outward
from privacy.accounting.event import Event, EventWords, counted_words
from privacy.accounting.screens import inner_epsilon
from privacy.accounting.training import FIXED_SLOTS, SecretSampleEvent, require_slot
from privacy.wording import gettext_noop as _


@dataclass(frozen=True, slots=True)
class SecretSeriesEvent(Event):
    r"""Mechanisms on blocks of records; a secret coin puts each record into block k with probability `rates[k]`.

    Coins of a record are exclusive: it is in one block at most, and the blocks' rates add up to 1 at most. Block k's
    mechanism is within (`epsilons[k]`, `deltas[k]`) under `null` for its own records and may otherwise depend on what
    earlier blocks released. All three lists are fixed before the first coin falls, the event is charged once, and each
    block releases once.
    """

    rates: tuple[float, ...]
    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    kind: ClassVar[str] = "secret_series"
    words: ClassVar[EventWords] = EventWords(
        _("training on secret blocks"),
        _("disjoint secret blocks"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        if not len(self.rates) == len(self.epsilons) == len(self.deltas) or not self.rates:
            raise ValueError("a series needs a rate, an epsilon and a delta of each block")
        for rate in self.rates:
            checks.rate("rate", rate)
        for epsilon in self.epsilons:
            checks.positive("epsilon", epsilon)
        for delta in self.deltas:
            if not 0 <= delta < 1:
                raise ValueError(f"delta must lie in [0, 1), got {delta}")
        # Rates that are parts of one may add up to a rounding error more.
        if math.fsum(self.rates) > 1 + 1e-12:
            raise ValueError(f"rates must add up to at most 1, got {math.fsum(self.rates)}")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        r"""Return the loss of the whole series.

        Notes
        -----
        Given the block of a record, the outputs of all other blocks have ratio 1 between the neighbours, so the ratio
        of all outputs is the mixture :math:`1 - \sum_k q_k + \sum_k q_k r_k` of the blocks' ratios.
        """
        require_slot(self, adjacency)
        epsilon = mixture_epsilon(self.rates, self.epsilons)
        if not any(self.deltas):
            floor = _floor(self.rates, self.epsilons)
            return Cost(outward(epsilon - math.log(floor) if adjacency == "replace" else epsilon))
        once = Cost(outward(epsilon), outward_delta(self.rates, self.epsilons, self.deltas))
        return once.of_two_steps() if adjacency == "replace" else once

    def summary(self) -> str:
        blocks = counted_words(len(self.rates), "secret block that holds", "secret blocks that hold")
        return f"a series of {blocks} at most {min(1.0, math.fsum(self.rates)):.4g} of the records"


@dataclass(frozen=True, slots=True)
class SecretBlockEvent(Event):
    r"""One release from block `block` of a series, counted from 1; all releases together cost what the series costs.

    `attempts` says how often each block was reserved for before, this one included if an attempt at it died: any of
    them may have released. The first entry of a series opens it, each later one descends from the one before.
    """

    series: SecretSeriesEvent
    inner: Event
    block: int
    attempts: tuple[int, ...]
    kind: ClassVar[str] = "secret_block"
    words: ClassVar[EventWords] = EventWords(_("training on a secret block"), _("disjoint secret block %(block)s"))
    valid_for: ClassVar[frozenset[Adjacency]] = frozenset({"null"})

    def __post_init__(self) -> None:
        if len(self.attempts) != len(self.series.rates) or any(count < 0 for count in self.attempts):
            raise ValueError("a release needs a number of attempts >= 0 of each block")
        if not 1 <= self.block <= len(self.attempts):
            raise ValueError(f"block must lie in [1, {len(self.attempts)}], got {self.block}")
        if isinstance(self.inner, SecretSampleEvent | SecretBlockEvent | SecretSeriesEvent) or self.inner.needs_parent:
            raise ValueError(f"{self.inner.kind} cannot be sampled")
        cost = self.inner.cost(adjacency="null")
        place = self.block - 1
        if cost.epsilon > self.series.epsilons[place] or cost.delta > self.series.deltas[place]:
            raise ValueError(
                f"block {self.block} was given epsilon {self.series.epsilons[place]:.6g} and delta "
                f"{self.series.deltas[place]:.3g} when its series was opened"
            )

    @classmethod
    def next_of(
        cls, before: "SecretBlockEvent | None", training: Event, *, block: int, rates: Sequence[float]
    ) -> "SecretBlockEvent | None":
        """Return the release from `block` after the entry `before`, or the one that opens a series of `rates`.

        A series that is opened gives every block what `training` costs. None where the block was given less.
        """
        cost = training.cost(adjacency="null")
        if before is not None:
            series, attempts = before.series, before.counted
            if cost.epsilon > series.epsilons[block - 1] or cost.delta > series.deltas[block - 1]:
                return None
        else:
            n = len(rates)
            series = SecretSeriesEvent(tuple(rates), (cost.epsilon,) * n, (cost.delta,) * n)
            attempts = (0,) * n
        return cls(series, training, block, attempts)

    @property
    def counted(self) -> tuple[int, ...]:
        return tuple(count + (place == self.block) for place, count in enumerate(self.attempts, start=1))

    @property
    def needs_parent(self) -> bool:
        return any(self.attempts)

    def check_parent(self, parent: Event | None) -> None:
        """Refuse to continue anything but this series, as far as it has come."""
        Event.check_parent(self, parent)
        if not self.needs_parent:
            return
        if not isinstance(parent, SecretBlockEvent) or parent.series != self.series:
            raise ValueError("a further block must descend from a block of the same series")
        if self.attempts != parent.counted:
            raise ValueError("attempts must count every release of the series before")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        r"""Return what this release adds to the series.

        Notes
        -----
        A block reserved for m times has released within :math:`m\varepsilon_k`, so what all releases up to here cost is
        :math:`\ln(1 + \sum_k q_k(e^{m_k\varepsilon_k} - 1))`, whatever later blocks do; each entry pays the difference
        to the one before. Both bounds on delta depend on the blocks to come, so the entry that opens a series pays the
        deltas of all its blocks. The argument is one of ratios along all outputs: in rho there is none.
        """
        require_slot(self, adjacency)
        paid = mixture_epsilon(self.series.rates, self._block_epsilons(self.attempts))
        released = mixture_epsilon(self.series.rates, self._block_epsilons(self.counted))
        missed = self._missed(self.counted) - (self._missed(self.attempts) if self.needs_parent else 0.0)
        return Cost(max(0.0, outward(released) - paid), min(1.0, max(0.0, outward(missed))), rho=math.inf)

    @property
    def total_epsilon(self) -> float:
        """Epsilon of the series up to this release, this one included."""
        return outward(mixture_epsilon(self.series.rates, self._block_epsilons(self.counted)))

    def _block_epsilons(self, attempts: tuple[int, ...]) -> tuple[float, ...]:
        return tuple(count * epsilon for count, epsilon in zip(attempts, self.series.epsilons, strict=True))

    def _missed(self, attempts: tuple[int, ...]) -> float:
        counts = tuple(max(1, count) for count in attempts)
        deltas = tuple(count * delta for count, delta in zip(counts, self.series.deltas, strict=True))
        return outward_delta(self.series.rates, self._block_epsilons(counts), deltas)

    def summary(self) -> str:
        sample = f"a {self.series.rates[self.block - 1]:.4g} sample"
        return f"on secret block {self.block} of {len(self.attempts)}, {sample}: {self.inner.summary()}"


def mixture_epsilon(rates: Sequence[float], epsilons: Sequence[float]) -> float:
    r"""Return :math:`\ln(1 + \sum_k q_k(e^{\varepsilon_k} - 1))`, however large an epsilon is."""
    top = max(epsilons)
    if top < 500:
        return math.log1p(math.fsum(rate * math.expm1(epsilon) for rate, epsilon in zip(rates, epsilons, strict=True)))
    # One is far below a rounding error of the rest; added, it keeps this an upper bound.
    grown = math.fsum(rate * math.exp(epsilon - top) for rate, epsilon in zip(rates, epsilons, strict=True))
    return top + math.log(grown + math.exp(-top))


def outward_delta(rates: Sequence[float], epsilons: Sequence[float], deltas: Sequence[float]) -> float:
    if not any(deltas):
        return 0.0
    blocks = list(zip(rates, epsilons, deltas, strict=True))
    missed = math.fsum(rate * delta for rate, _, delta in blocks)
    floor = _floor(rates, epsilons)
    kept = math.fsum(rate * math.exp(-epsilon) * delta for rate, epsilon, delta in blocks)
    return min(1.0, outward(max(missed, kept / floor))) if floor > 0 else 1.0


def _floor(rates: Sequence[float], epsilons: Sequence[float]) -> float:
    return 1 + math.fsum(rate * math.expm1(-epsilon) for rate, epsilon in zip(rates, epsilons, strict=True))


def even_training(
    epsilon: float, delta: float, rates: Sequence[float], *, releases: int, as_series: bool = True
) -> tuple[float, float]:
    r"""Return the (epsilon, delta) of one training with which the first `releases` blocks spend a limit.

    Every block gets the same: :math:`\varepsilon_m=\ln(1+(e^\varepsilon-1)/\sum_kq_k)` over the blocks that release, of
    all `rates`. A series pays the delta of all its blocks with the first of them, so delta is divided over all. Nothing
    is left for a second attempt: one that dies costs what its release would have cost. Where nothing is proved for a
    series (`as_series` false) each block pays as a sample of its own.
    """
    checks.positive("epsilon", epsilon)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta}")
    checks.at_least("releases", releases, 1)
    if not rates:
        raise ValueError("a series needs a rate, an epsilon and a delta of each block")
    for rate in rates:
        checks.rate("rate", rate)
    paying = rates[:releases]
    if as_series:
        return inner_epsilon(epsilon, math.fsum(paying)), delta / math.fsum(rates)
    low, high = epsilon / len(paying), inner_epsilon(epsilon, min(paying))
    for _halving in range(80):
        middle = (low + high) / 2
        total = math.fsum(mixture_epsilon([rate], [middle]) for rate in paying)
        low, high = (middle, high) if total <= epsilon else (low, middle)
    return low, delta / math.fsum(paying)
