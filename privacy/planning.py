"""What a gate would let through: the choice of k and sampling rate, both gates side by side, one line of advice."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr

from privacy.accounting.cost import Unit
from privacy.accounting.gate import gate_delta, gate_minimum_k
from privacy.accounting.gate_planning import RATES, PlannedGate
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.survey import Frequencies
from privacy.threshold_gate import threshold_gate_at
from privacy.wording import as_message

SMALLEST_K: Final = 2
PAPER_EPSILONS: Final = (0.25, 0.5, 0.75, 1.0)
PAPER_RATES: Final = (0.1, 0.3, 0.6, 0.9)
PAPER_KS: Final = (20, 100, 200, 500)
SHOWN_KS: Final = (2, 5, 10, 20, 50, 100, 200, 500, 1000)


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


def frontier(
    epsilon: float, delta: float, *, texts_per_contributor: int = 1, rates: Sequence[float] = RATES
) -> list[PlannedGate]:
    """Return the gates that cost (epsilon, delta) and that no other one beats in both k and sampling rate.

    Parameters
    ----------
    epsilon, delta : float
        Cost of the whole release for one record, or for one contributor of `texts_per_contributor` texts.
    texts_per_contributor : int
        Cap m, >= 1: every text gets a share of 1 / m of both.
    rates : sequence of float
        Sampling rates to choose from, in (0, 1).

    Returns
    -------
    list of GateChoice
        By rising k, the smallest for its rate; at least 2.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    if texts_per_contributor < 1:
        raise ValueError(
            as_message(
                "texts_per_contributor must be >= 1, got {texts_per_contributor}",
                texts_per_contributor=texts_per_contributor,
            )
        )
    per_text = epsilon / texts_per_contributor, delta / texts_per_contributor
    choices: dict[int, PlannedGate] = {}
    for rate in sorted(rates):
        k = max(SMALLEST_K, gate_minimum_k(*per_text, rate))
        choices[k] = PlannedGate(k, rate)
    ordered = [choices[k] for k in sorted(choices)]
    return [
        choice
        for place, choice in enumerate(ordered)
        if all(choice.sampling_rate > smaller.sampling_rate for smaller in ordered[:place])
    ]


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


def passing(frequencies: Frequencies, gate: KAnonymityGate | ThresholdGate) -> Passing:
    """Return what would pass on average, from the number of contributions to each text."""
    if isinstance(gate, KAnonymityGate):
        chances = k_anonymity_chances(frequencies.counts, gate.k, gate.exact_sampling_rate)
    else:
        chances = threshold_chances(frequencies.counts, gate, mean_weight=frequencies.mean_weight)
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


def k_anonymity_chances(counts: NDArray[np.int64], k: int, sampling_rate: float) -> NDArray[np.float64]:
    """Return the chance that a sample of texts said `counts` times has `k` or more of them, shape (n,)."""
    enough = counts >= k
    chances = np.zeros(len(counts))
    chances[enough] = betainc(k, counts[enough] - k + 1, sampling_rate)
    return chances


def threshold_chances(
    counts: NDArray[np.int64], gate: ThresholdGate, *, mean_weight: float = 1.0
) -> NDArray[np.float64]:
    """Return the chance that noise leaves texts said `counts` times over the threshold, shape (n,).

    The weighted Gaussian gate is taken with the mean weight of a contribution for every one of them.
    """
    event = gate.event()
    if event.noise == "weighted_gaussian":
        chances = np.asarray(ndtr((mean_weight * counts - event.threshold) / event.noise_scale), dtype=np.float64)
    else:
        missing = math.ceil(event.threshold) - counts
        q = math.exp(-1 / event.noise_scale)
        beyond = q ** (event.truncation + 1) if event.noise == "truncated_geometric" else 0.0
        # The masses q^|z| from |missing| outwards, and from it inwards by symmetry.
        outward = np.maximum(q ** np.maximum(np.abs(missing), 1 - missing) - beyond, 0.0) / (1 + q - 2 * beyond)
        chances = np.where(missing >= 1, outward, 1 - outward)
    return np.where(counts >= gate.floor, chances, 0.0)


def best_gates(
    frequencies: Frequencies, epsilon: float, delta: float, gate_unit: Unit, texts_per_contributor: int | None
) -> tuple[KAnonymityGate, ThresholdGate]:
    """Return the k-anonymity gate of the frontier that lets out most contributions, and the threshold gate."""
    choices = frontier(epsilon, delta, texts_per_contributor=texts_per_contributor or 1)
    gates = [KAnonymityGate(choice.k, choice.sampling_rate, gate_unit, texts_per_contributor) for choice in choices]
    best = max(gates, key=lambda gate: passing(frequencies, gate).contribution_share)
    return best, threshold_gate_at(epsilon, delta, gate_unit, texts_per_contributor)


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
