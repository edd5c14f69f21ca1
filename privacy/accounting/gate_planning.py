"""What a planner asks about the k-anonymity gate: the best (k, rate), and what a missing cap would cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from privacy.accounting import checks
from privacy.accounting.binomial import bernoulli_divergence, binomial_pmf
from privacy.accounting.gate import DeltaMethod, gate_minimum_k
from privacy.wording import as_message

SMALLEST_K: Final = 2
RATES: Final = tuple(step / 100 for step in range(1, 100))


@dataclass(frozen=True, slots=True)
class PlannedGate:
    """A gate and the number of records a text needs, on average, to pass it."""

    k: int
    sampling_rate: float

    @property
    def records_needed(self) -> float:
        """`k / sampling_rate`: what a planner minimises, since only frequent enough texts come out."""
        return self.k / self.sampling_rate


def best_gate(
    epsilon: float, delta: float, *, rates: tuple[float, ...] = RATES, method: DeltaMethod = "exact"
) -> PlannedGate:
    """Return the gate that lets out the rarest texts at a given privacy loss.

    Parameters
    ----------
    epsilon : float
        Privacy loss for one text, > 0.
    delta : float
        Wanted delta for one text, in (0, 1).
    rates : tuple of float
        Sampling rates to choose from, each in (0, 1).
    method : {"exact", "li2012"}
        See `privacy.accounting.gate.gate_delta`; rates that `li2012` cannot price are passed over.

    Returns
    -------
    GateChoice
        The smallest `k / rate`; of equal ones the larger rate. More sampling is not more output: a higher rate
        needs a `k` that grows faster.

    Raises
    ------
    ValueError
        If an argument is out of range or no rate can be priced.
    """
    choices = [
        PlannedGate(gate_minimum_k(epsilon, delta, rate, method), rate)
        for rate in rates
        if method == "exact" or epsilon >= -math.log1p(-rate)
    ]
    if not choices:
        raise ValueError(
            as_message(
                "no sampling rate can be priced by {method} at epsilon={epsilon}", method=method, epsilon=epsilon
            )
        )
    return min(choices, key=lambda choice: (choice.records_needed, -choice.sampling_rate))


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


def gate_delta_without_cap(k: int, sampling_rate: float, epsilon: float, records: int) -> float:
    """Return the delta of one text when one person may have put up to `records` records into it.

    Parameters
    ----------
    k : int
        Smallest sample count that is released, >= 1.
    sampling_rate : float
        Probability with which each record is kept, in (0, 1).
    epsilon : float
        Privacy loss of the whole text, > 0.
    records : int
        Records of one person under the text, >= 1; 1 gives `gate_delta`.

    Returns
    -------
    float
        The larger hockey-stick divergence between n and n - records, maximised over n. For reports: a live gate counts
        each contributor once.
    """
    checks.at_least("k", k, 1)
    checks.at_least("records", records, 1)
    checks.positive("epsilon", epsilon)
    if not 0 < sampling_rate < 1:
        raise ValueError(
            as_message("sampling_rate must lie in (0, 1), got {sampling_rate}", sampling_rate=sampling_rate)
        )
    worst, n = 0.0, max(k, records)
    while n <= k or _tail_bound(n, sampling_rate, epsilon, records) > max(worst, 1e-30):
        worst = max(worst, _group_divergence(n, k, sampling_rate, epsilon, records))
        n += 1
    return worst


def _group_divergence(n: int, k: int, rate: float, epsilon: float, records: int) -> float:
    counts = np.arange(n + 1, dtype=np.float64)
    more, fewer = binomial_pmf(counts, n, rate), binomial_pmf(counts, n - records, rate)
    more = np.append(more[k:], more[:k].sum())
    fewer = np.append(fewer[k:], fewer[:k].sum())
    factor = math.exp(epsilon)
    forward = np.maximum(more - factor * fewer, 0.0).sum()
    backward = np.maximum(fewer - factor * more, 0.0).sum()
    return float(max(forward, backward))


def _tail_bound(n: int, rate: float, epsilon: float, records: int) -> float:
    """Return a falling bound on the divergence at this and every larger number of records.

    A likelihood ratio above e^epsilon over `records` steps needs one above e^(epsilon / records) in some step, so
    the count must exceed gamma (n - records + 1), or lie under gamma' n in the other direction: Chernoff on both.
    """
    step = epsilon / records
    above = rate + (1 - rate) * -math.expm1(-step)
    below = rate - (1 - rate) * math.expm1(step)
    forward = _chernoff(n, above * (n - records + 1) / n, rate, upper=True)
    if below <= 0:
        return forward
    return forward + (_chernoff(n - records, below * n / (n - records), rate, upper=False) if n > records else 1.0)


def _chernoff(n: int, share: float, rate: float, *, upper: bool) -> float:
    """Return a bound on the mass of Bin(n, rate) beyond the count `share` n."""
    if (share <= rate) if upper else (share >= rate):
        return 1.0
    return math.exp(-n * bernoulli_divergence(share, rate))
