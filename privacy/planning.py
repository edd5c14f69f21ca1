"""What a gate would let through: the choice of k and sampling rate, both gates side by side, one line of advice."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from privacy.accounting.cost import Unit
from privacy.accounting.gate import gate_delta
from privacy.contributions.counting import CountingGate
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.survey import Frequencies

# What is planned from numbers alone; a new mechanism joins by one line.
GATES: Final[tuple[type[CountingGate], ...]] = (KAnonymityGate, ThresholdGate)
PAPER_EPSILONS: Final = (0.25, 0.5, 0.75, 1.0)
PAPER_RATES: Final = (0.1, 0.3, 0.6, 0.9)
PAPER_KS: Final = (20, 100, 200, 500)
SHOWN_KS: Final = (2, 5, 10, 20, 50, 100, 200, 500, 1000)

Gate = TypeVar("Gate", bound=CountingGate)


@dataclass(frozen=True, slots=True)
class Passing:
    """What would pass a gate on average; not private."""

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


@dataclass(frozen=True, slots=True)
class PaperCell:
    """One setting of the source's table, its delta by both accountings; `published` is None where nothing is proven."""

    k: int
    sampling_rate: float
    epsilon: float
    exact: float
    published: float | None


def paper_table(
    *,
    ks: Sequence[int] = PAPER_KS,
    rates: Sequence[float] = PAPER_RATES,
    epsilons: Sequence[float] = PAPER_EPSILONS,
) -> list[PaperCell]:
    """Return the source's grid with the delta that is charged and the one its tail bound gives.

    References
    ----------
    .. [1] Feyisetan et al., "Privacy-preserving active learning on sensitive data for user intent classification",
       2019, Table 1.
    """
    cells = []
    for rate in rates:
        for epsilon in epsilons:
            exact = np.atleast_1d(gate_delta(list(ks), rate, epsilon))
            proven = epsilon >= -math.log1p(-rate)
            published = np.atleast_1d(gate_delta(list(ks), rate, epsilon, "li2012")) if proven else [None] * len(ks)
            cells += [
                PaperCell(k, rate, epsilon, float(ours), None if theirs is None else float(theirs))
                for k, ours, theirs in zip(ks, exact, published, strict=True)
            ]
    return cells


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


def best_of_kind(
    kind: type[Gate],
    frequencies: Frequencies,
    epsilon: float,
    delta: float,
    gate_unit: Unit,
    texts_per_contributor: int | None,
) -> Gate:
    """Return the gate of a kind that lets out most contributions at a price; one of `GATES` has some at any."""
    offered = kind.at_price(epsilon, delta, gate_unit, texts_per_contributor)
    return max(offered, key=lambda gate: passing(frequencies, gate).contribution_share)


def best_gates(
    frequencies: Frequencies, epsilon: float, delta: float, gate_unit: Unit, texts_per_contributor: int | None
) -> list[CountingGate]:
    """Return of every kind the gate that lets out most contributions."""
    return [best_of_kind(kind, frequencies, epsilon, delta, gate_unit, texts_per_contributor) for kind in GATES]


def recommendation(sampled: Passing, gate: KAnonymityGate, threshold: Passing) -> str:
    """Return one line: what to choose and what it lets out, or what to do where nothing comes out."""
    needed = math.ceil(gate.k / gate.exact_sampling_rate)
    if max(sampled.texts, threshold.texts) < 1:
        return (
            f"Nothing would pass: a text would have to be said about {needed} times. Raise the normaliser level, "
            "collect more records, or spend more epsilon."
        )
    choice = f"k = {gate.k} on a {gate.exact_sampling_rate:.2f} sample"
    if threshold.texts > sampled.texts:
        choice = "the threshold gate"
    better, other = (threshold, sampled) if threshold.texts > sampled.texts else (sampled, threshold)
    return (
        f"Take {choice}: about {better.texts:,.0f} texts with {better.contribution_share:.0%} of the contributions "
        f"would pass, against {other.texts:,.0f} by the other gate at the same cost."
    )
