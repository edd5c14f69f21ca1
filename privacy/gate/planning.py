"""Plans of gates: what each kind lets out at a price, of a survey or of public numbers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from privacy.accounting import checks
from privacy.accounting.cost import Unit
from privacy.gate.counting import CountingGate
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.gate.survey import Frequencies

# What is planned from numbers alone; a new mechanism joins by one line.
GATES: Final[tuple[type[CountingGate], ...]] = (KAnonymityGate, ThresholdGate)
SHOWN_KS: Final = (2, 5, 10, 20, 50, 100, 200, 500, 1000)

Gate = TypeVar("Gate", bound=CountingGate)


@dataclass(frozen=True, slots=True)
class Passing:
    """Expected result of a gate on average; not private."""

    texts: float
    text_share: float
    contribution_share: float


@dataclass(frozen=True, slots=True)
class SaidAtLeast:
    """Texts that are said `k` times or more, and their share of everything; not private."""

    k: int
    texts: float
    text_share: float
    contribution_share: float


def passing(frequencies: Frequencies, gate: CountingGate) -> Passing:
    """Return what would pass on average, from the number of contributions to each text."""
    chances = gate.chances(frequencies.counts, mean_weight=frequencies.mean_weight)
    texts = float(frequencies.texts @ chances)
    contributions = float((frequencies.texts * frequencies.counts) @ chances)
    return Passing(
        texts=texts,
        text_share=min(1.0, texts / max(1.0, frequencies.distinct_texts)),
        contribution_share=min(1.0, contributions / max(1, frequencies.contributions)),
    )


def said_at_least(frequencies: Frequencies, ks: Sequence[int] = SHOWN_KS) -> list[SaidAtLeast]:
    """Return what each k alone would let out, without sampling or noise: what a pool is made of, and no gate."""
    found = []
    for k in ks:
        often = frequencies.counts >= k
        texts = float(frequencies.texts[often].sum())
        contributions = float(frequencies.texts[often] @ frequencies.counts[often])
        found.append(
            SaidAtLeast(
                k,
                texts,
                text_share=min(1.0, texts / max(1.0, frequencies.distinct_texts)),
                contribution_share=min(1.0, contributions / max(1, frequencies.contributions)),
            )
        )
    return found


def best_gates(
    frequencies: Frequencies, epsilon: float, delta: float, gate_unit: Unit, texts_per_contributor: int | None
) -> list[CountingGate]:
    """Return of every kind the gate that lets out most contributions."""
    offered = (kind.at_price(epsilon, delta, gate_unit, texts_per_contributor) for kind in GATES)
    return [max(gates, key=lambda gate: passing(frequencies, gate).contribution_share) for gates in offered]


# Ranks beyond these are grouped: so many texts are said once or twice that one number stands for a range of ranks.
EXACT_RANKS: Final = 4096
LONGEST_WINDOW: Final = 10_000.0


@dataclass(frozen=True, slots=True)
class PublicSource:
    """Public numbers of a source under one normaliser, not read from the records to be protected.

    Parameters
    ----------
    records : int
        How many there will be, >= 1; for the unit contributor, how many (contributor, text) pairs.
    different_texts : int
        Between 1 and `records`.
    most_frequent : int
        How often the most frequent text is said, >= records / different_texts.

    Raises
    ------
    ValueError
        If the three numbers fit no source.
    """

    records: int
    different_texts: int
    most_frequent: int

    def __post_init__(self) -> None:
        for name in ("records", "different_texts", "most_frequent"):
            checks.at_least(name, getattr(self, name), 1)
        rest = self.records - self.most_frequent
        if not self.different_texts - 1 <= rest <= (self.different_texts - 1) * self.most_frequent:
            raise ValueError(
                f"impossible source: records {self.records}, different texts {self.different_texts}, "
                f"most frequent {self.most_frequent}"
            )

    def frequencies(self, *, window: float = 1.0) -> Frequencies:
        r"""Return how many texts are said how often where counts fall with the rank r as :math:`r^{-s}`, at least 1.

        The exponent is the one that gives the number of records. `window` times as long a collection says each of
        these texts so many times as often; texts that are new in it are left out, since few of them pass.
        """
        ranks, widths = self._ranks()
        low, high = 0.0, 60.0
        for _step in range(80):
            middle = (low + high) / 2
            enough = float(widths @ self._counts(ranks, middle)) >= self.records
            low, high = (middle, high) if enough else (low, middle)
        counts = np.maximum(1, np.floor(self._counts(ranks, low) * window)).astype(np.int64)
        values, place = np.unique(counts, return_inverse=True)
        texts = np.bincount(place, weights=widths).astype(np.float64)
        return Frequencies(
            counts=values,
            texts=texts,
            distinct_texts=float(self.different_texts),
            contributions=int(texts @ values),
            exact=False,
        )

    def _ranks(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ranks and how many each stands for: one by one first, then by ranges that grow."""
        exact = min(self.different_texts, EXACT_RANKS)
        if exact == self.different_texts:
            return np.arange(1.0, exact + 1), np.ones(exact)
        edges = np.unique(np.geomspace(exact, self.different_texts, 2000).astype(np.int64))
        ranks = np.concatenate([np.arange(1.0, exact + 1), (edges[1:] + edges[:-1] + 1) / 2])
        return ranks, np.concatenate([np.ones(exact), np.diff(edges).astype(np.float64)])

    def _counts(self, ranks: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
        counts: NDArray[np.float64] = np.maximum(1.0, self.most_frequent * ranks**-exponent)
        return counts


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """Gates of every kind at one price and what each lets out on average; public, since no record was read.

    `gates` has of each kind of `GATES` the one that lets out most. `window` is how many times as long one must collect
    until `wanted` texts pass the better gate; infinite where even `LONGEST_WINDOW` times is too short.
    """

    gates: tuple[tuple[CountingGate, Passing], ...]
    window: float

    @property
    def enough(self) -> bool:
        return self.window <= 1


def plan_source(
    source: PublicSource,
    *,
    epsilon: float,
    delta: float,
    unit: Unit = "record",
    texts_per_contributor: int | None = None,
    wanted: int = 180,
) -> SourcePlan:
    """Say what each gate would let out for `epsilon` and `delta` of one unit, before anything is paid."""
    checks.at_least("wanted", wanted, 1)
    frequencies = source.frequencies()
    gates = best_gates(frequencies, epsilon, delta, unit, texts_per_contributor)

    def passes(window: float) -> bool:
        longer = source.frequencies(window=window)
        return max(passing(longer, gate).texts for gate in gates) >= wanted

    return SourcePlan(tuple((gate, passing(frequencies, gate)) for gate in gates), window=_shortest(passes))


def _shortest(passes: Callable[[float], bool]) -> float:
    """Return the smallest factor, to a hundredth of itself, from which on `passes` holds; 1 where it does at once."""
    if passes(1.0):
        return 1.0
    if not passes(LONGEST_WINDOW):
        return math.inf
    low, high = 1.0, LONGEST_WINDOW
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
