"""What each gate would let out of a source of which only public numbers are known: asked before anything is paid."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy.accounting import checks
from privacy.accounting.cost import Unit
from privacy.contributions.counting import CountingGate
from privacy.planning import Passing, best_gates, passing
from privacy.survey import Frequencies
from privacy.wording import as_message

# Ranks beyond these are grouped: so many texts are said once or twice that one number stands for a range of ranks.
EXACT_RANKS: Final = 4096
LONGEST_WINDOW: Final = 10_000.0
# Texts of one contributor that a gate may count.
CAPS: Final = (1, 2, 3, 5, 10)


@dataclass(frozen=True, slots=True)
class PublicSource:
    """What is publicly known about a source under one normaliser, not read from the records to be protected.

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
                as_message(
                    "no source has these numbers: records {records}, different texts {different_texts}, the most "
                    "frequent of them {most_frequent}",
                    records=self.records,
                    different_texts=self.different_texts,
                    most_frequent=self.most_frequent,
                )
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

    Attributes
    ----------
    gates : tuple of (gate, Passing)
        Of each kind the one that lets out most, and what passes it, in the order of `privacy.planning.GATES`.
    window : float
        How many times as long one must collect until `wanted` texts pass the better gate; infinite where even
        `LONGEST_WINDOW` times is too short.
    """

    gates: tuple[tuple[CountingGate, Passing], ...]
    window: float

    @property
    def enough(self) -> bool:
        """Whether the wanted number of texts passes without collecting for longer."""
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
    """Say what each gate would let out of a source before anything is paid.

    Parameters
    ----------
    source : PublicSource
        Its public numbers under the normaliser in question.
    epsilon, delta : float
        What the gate may cost one record, or one contributor.
    unit, texts_per_contributor
        As for the gates.
    wanted : int
        Number of texts people are to be asked about, >= 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    checks.at_least("wanted", wanted, 1)
    frequencies = source.frequencies()
    gates = best_gates(frequencies, epsilon, delta, unit, texts_per_contributor)

    def passes(window: float) -> bool:
        longer = source.frequencies(window=window)
        return max(passing(longer, gate).texts for gate in gates) >= wanted

    return SourcePlan(tuple((gate, passing(frequencies, gate)) for gate in gates), window=_shortest(passes))


@dataclass(frozen=True, slots=True)
class CapPlan:
    """A cap on the texts of one contributor, the gate at the price with it, and what passes that on average."""

    texts_per_contributor: int
    gate: CountingGate
    passing: Passing


def plan_caps(
    source: PublicSource, *, people: int, epsilon: float, delta: float, caps: Sequence[int] = CAPS
) -> list[CapPlan]:
    """Say for each cap what the best gate lets out of a source of so many people, the cap that lets out most first.

    A person with more texts than the cap keeps a random part of them, so every text loses that share of its people; a
    higher cap keeps more and makes each text dearer. Everybody is taken to give the same number.

    Parameters
    ----------
    source : PublicSource
        Its public numbers, of (contributor, text) pairs.
    people : int
        How many contributors there are, between 1 and the pairs.
    epsilon, delta : float
        What the gate may cost one contributor with all their texts.
    caps : sequence of int
        To choose from, each >= 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    checks.at_least("people", people, 1)
    checks.at_least("records", source.records, people)
    everything = source.frequencies()
    found = []
    for cap in caps:
        share = min(1.0, cap * people / source.records)
        counts = np.floor(everything.counts * share).astype(np.int64)
        kept = replace(everything, counts=counts, mean_weight=1 / math.sqrt(min(cap, source.records / people)))
        gates = best_gates(kept, epsilon, delta, "contributor", cap)
        plans = [CapPlan(cap, gate, passing(kept, gate)) for gate in gates]
        found.append(max(plans, key=lambda plan: plan.passing.texts))
    return sorted(found, key=lambda plan: (-plan.passing.texts, plan.texts_per_contributor))


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
