"""Exact delta of the sampled k-anonymity gate, and the parameters that reach a wanted delta."""

# Each record is kept with probability beta; a text and its sample count come out iff that count is at least k. One
# record changes the number of records with its text between n and n - 1, so delta is the larger hockey-stick divergence
# between the two gate outputs, maximised over n. Both directions reduce to one candidate for every release threshold t
# >= k (docs/privacy.md, gate): for a fixed threshold the divergence has one peak over n, at a known place, and it is
# bounded by a geometric sequence in t. The maximum is therefore one over a short range of thresholds, and a whole range
# of k is one running maximum from the right.

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, kl_div

from privacy.accounting import checks
from privacy.accounting.composition import composed_epsilon
from privacy.accounting.cost import float_at_least

Floats = NDArray[np.float64]

# ln(n!) minus Stirling's approximation without its series, for n = 0..15.
_SMALL = np.array(
    [0.0, *(math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2 for n in range(1, 16))]
)


def _stirling_error(n: Floats) -> Floats:
    wide = np.maximum(n, 16.0)
    inverse = 1.0 / (wide * wide)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - inverse / 1188) * inverse) * inverse) * inverse) / wide
    return np.where(n < 16, _SMALL[np.minimum(n, 15).astype(np.intp)], series)


def binomial_pmf(j: ArrayLike, n: ArrayLike, probability: float) -> Floats:
    """Return P(Bin(n, probability) = j) by Loader's saddle-point form, accurate far into the tails.

    Parameters
    ----------
    j, n : array_like of integers
        Broadcast against each other; 0 <= j <= n gives the mass, anything else zero.
    probability : float
        In (0, 1).

    References
    ----------
    .. [1] Loader, "Fast and accurate computation of binomial probabilities", 2000.
    """
    j, n = np.broadcast_arrays(np.asarray(j, dtype=np.float64), np.asarray(n, dtype=np.float64))
    inside = (j >= 0) & (j <= n)
    n = np.where(inside, n, 2.0)
    j = np.where(inside, j, 1.0)
    rest = n - j
    edge = (j == 0) | (rest == 0)
    exponent = kl_div(j, n * probability) + kl_div(rest, n * (1 - probability))
    exponent += _stirling_error(j) + _stirling_error(rest) - _stirling_error(n)
    # At an edge the two divergences are the whole exponent: (1-p)^n or p^n.
    spread = np.where(edge, 1.0, n / (2 * math.pi * np.where(edge, 1.0, j * rest)))
    mass = np.where(edge, 0.0, np.exp(-exponent) * np.sqrt(spread))
    mass = np.where(edge & (j == 0), np.exp(n * math.log1p(-probability)), mass)
    mass = np.where(edge & (rest == 0), np.exp(n * math.log(probability)), mass)
    return np.where(inside, mass, 0.0)


def bernoulli_divergence(x: float, y: float) -> float:
    return float(kl_div(x, y) + kl_div(1 - x, 1 - y))


DeltaMethod = Literal["exact", "li2012"]

# Deltas under this are reported as the proven bound instead of being resolved further.
NEGLIGIBLE: Final = 1e-30
CHUNK: Final = 4096
OFFSETS: Final = 48


def _series(first: Floats, up: Floats, down: Floats, odds: float, weight_start: Floats, weight_step: Floats) -> Floats:
    """Sum first * prod(ratios) * (weight_start + i * weight_step) over i = 0, 1, ... for every row.

    The i-th ratio is odds * max(up - i, 0) / (down + i), falling in i, so what is left after a block is at most
    a geometric tail.
    """
    total = np.zeros_like(first)
    mass, offset = first, 0
    while True:
        steps = np.arange(offset, offset + OFFSETS, dtype=np.float64)
        ratios = odds * np.maximum(up[:, None] - steps, 0.0) / (down[:, None] + steps)
        masses = mass[:, None] * np.cumprod(np.column_stack([np.ones_like(mass), ratios[:, :-1]]), axis=1)
        total += (masses * (weight_start[:, None] + steps * weight_step[:, None])).sum(axis=1)
        mass, ratio = masses[:, -1] * ratios[:, -1], ratios[:, -1]
        offset += OFFSETS
        shrink = np.minimum(ratio, 1 - 1e-12)
        weight = np.abs(weight_start + offset * weight_step) + np.abs(weight_step) / (1 - shrink)
        if np.all((ratio < 1) & (mass / (1 - shrink) * weight <= 1e-14 * np.abs(total) + 1e-300)):
            return total


def forward_curve(t: Floats, rate: float, epsilon: float | Floats) -> Floats:
    """Return max over n of HS(P_n || P_{n-1}) restricted to counts >= t, for every threshold t."""
    kept = np.maximum((1 - rate) * np.exp(-epsilon), 1e-300)
    gamma = rate + (1 - rate) * -np.expm1(-epsilon)
    n = np.floor((t - 1) / gamma) + 1
    first = binomial_pmf(t, n, rate)
    return _series(first, n - t, t + 1, rate / (1 - rate), 1 - (n - t) / (n * kept), 1 / (n * kept))


def backward_curve(u: Floats, rate: float, epsilon: float | Floats) -> Floats:
    """Return max over n of HS(P_{n-1} || P_n) on suppression and counts <= u, for every u."""
    gamma = rate - (1 - rate) * np.expm1(np.minimum(epsilon, 700.0))
    if np.all(gamma <= 0):
        return np.zeros_like(u)
    # Where n is beyond 1e12 the mass below u underflows anyway.
    n = np.minimum(np.maximum(np.ceil(u / np.maximum(gamma, 1e-300)), 1.0), 1e12)
    first = np.where(gamma > 0, binomial_pmf(u, n, rate), 0.0)
    start = (n * gamma - u) / (n * (1 - rate))
    return np.maximum(0.0, _series(first, u, n - u + 1, (1 - rate) / rate, start, 1 / (n * (1 - rate))))


def exact_curve(t: Floats, rate: float, epsilon: float) -> Floats:
    """Return the divergence that release threshold `t` can contribute, in its worse direction, for every `t`."""
    return np.maximum(forward_curve(t, rate, epsilon), backward_curve(t - 1, rate, epsilon))


def li_curve(t: Floats, rate: float, epsilon: float) -> Floats:
    """Return the sawtooth peaks P(Bin(n, rate) >= t) at the largest n with gamma n < t."""
    gamma = rate + (1 - rate) * -math.expm1(-epsilon)
    quotient = t / gamma
    # A quotient that is an integer but for rounding counts as the larger n, which errs towards a larger delta.
    n = np.maximum(t, np.ceil(quotient + 1e-12 * quotient) - 1)
    return np.asarray(betainc(t, n - t + 1, rate), dtype=np.float64)


def _first_below(log_target: float, log_bound: Callable[[float], float], low: float, high: float) -> float:
    if low >= high or log_bound(low) <= log_target:
        return min(low, high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if log_bound(middle) <= log_target else (middle, high)
    return high


def _fall(share: float, rate: float, distance: float) -> float:
    """Return a lower bound on the Chernoff exponent per threshold, `distance` being the gap of share and rate."""
    # Close together the two entropies cancel: what rounding may add is taken off, and Pinsker's bound stays.
    divergence = (
        max(bernoulli_divergence(share, rate) - 1e-15, 2 * distance * distance) if share < 1 else -math.log(rate)
    )
    return max(divergence / share, 1e-300)


def last_threshold(target: float, rate: float, epsilon: float, method: DeltaMethod) -> float:
    """Return a threshold beyond which every candidate is proven to be at most `target`.

    The bounds are those of docs/privacy.md, gate: a Chernoff bound, one from the total variation of neighbouring
    binomials (which needs no distance from the mean), and a sharper one by Stirling's formula and a geometric series.
    """
    if method == "li2012":
        gamma = rate + (1 - rate) * -math.expm1(-epsilon)
        return max(0.0, -math.log(target) / _fall(gamma, rate, (1 - rate) * -math.expm1(-epsilon)))
    return 1 + max(_last_forward(target, rate, epsilon), _last_backward(target, rate, epsilon))


def _last_forward(target: float, rate: float, epsilon: float) -> float:
    kept = max((1 - rate) * math.exp(-epsilon), 1e-300)
    gamma = rate + (1 - rate) * -math.expm1(-epsilon)
    fall = _fall(gamma, rate, (1 - rate) * -math.expm1(-epsilon))
    goal = math.log(target)
    odds = kept / gamma * rate / (1 - rate)
    smooth = 1 + rate / (2 * math.e * (1 - rate) * target * target)
    last = min(max(0.0, (math.log(rate) - goal) / fall), gamma * smooth)

    def log_forward(j: float) -> float:
        spread = (j - gamma) / (2 * math.pi * j * (j * (1 - gamma) - gamma))
        return math.log(rate / ((j + 1) * kept * (1 - odds) ** 2)) + math.log(spread) / 2 - j * fall

    if gamma < 1 - 1e-9 and odds < 1 - 1e-6:
        last = _first_below(goal, log_forward, 1 + 2 * gamma / (1 - gamma), last)
    return last


def _last_backward(target: float, rate: float, epsilon: float) -> float:
    gamma = rate - (1 - rate) * math.expm1(min(epsilon, 700.0))
    if gamma <= 0:
        return 0.0
    fall = _fall(gamma, rate, (1 - rate) * math.expm1(epsilon))
    goal = math.log(target)
    odds = gamma / (1 - gamma) * (1 - rate) / rate
    smooth = 1 + rate / (2 * math.e * (1 - rate) * target * target)
    last = min(max(0.0, (math.log(gamma / (1 - rate)) - goal) / fall), gamma * smooth)

    def log_backward(u: float) -> float:
        spread = 1 / (2 * math.pi * u * (1 - gamma))
        return math.log(gamma / (u * (1 - rate) * (1 - odds) ** 2)) + math.log(spread) / 2 - u * fall

    return _first_below(goal, log_backward, 1.0, last) if odds < 1 - 1e-6 else last


def _curve(k_low: int, k_high: int, rate: float, epsilon: float, method: DeltaMethod) -> tuple[Floats, float]:
    evaluate = exact_curve if method == "exact" else li_curve
    parts: list[Floats] = []
    best, done = 0.0, k_low
    stop = k_high + 1
    while done < stop:
        upto = min(stop, done + CHUNK)
        values = evaluate(np.arange(done, upto, dtype=np.float64), rate, epsilon)
        parts.append(values)
        if upto > k_high:
            best = max(best, float(values[max(0, k_high - done) :].max()))
            last = last_threshold(max(best, NEGLIGIBLE), rate, epsilon, method)
            stop = max(k_high + 1, math.floor(last) + 2)
        done = upto
    return np.concatenate(parts), 0.0 if best >= NEGLIGIBLE else NEGLIGIBLE


def _check(rate: float, epsilon: float, method: DeltaMethod) -> None:
    checks.rate("sampling_rate", rate)
    checks.positive("epsilon", epsilon)
    checks.one_of("method", method, ("exact", "li2012"))
    if method == "li2012" and rate < 1 and epsilon < -math.log1p(-rate) * (1 - 1e-12):
        raise ValueError(f"epsilon must be >= -ln(1 - sampling_rate) = {-math.log1p(-rate)} for li2012, got {epsilon}")


def check_gate(k: int, sampling_rate: float, epsilon: float, method: DeltaMethod) -> None:
    """Raise `ValueError` unless the parameters describe a gate that `gate_delta` can price."""
    _check(sampling_rate, epsilon, method)
    checks.at_least("k", k, 1)


def gate_delta(
    k: ArrayLike, sampling_rate: ArrayLike, epsilon: ArrayLike, method: DeltaMethod = "exact"
) -> float | Floats:
    r"""Return the delta of the k-anonymity gate for one record with one text.

    Parameters
    ----------
    k : int or array_like of int
        Smallest sample count that is released, >= 1.
    sampling_rate : float or array_like
        Probability `beta` with which each record is kept, in (0, 1].
    epsilon : float or array_like
        Privacy loss at which delta is evaluated, > 0.
    method : {"exact", "li2012"}
        `exact`: the two-sided hockey-stick divergence, suppression counted as an outcome; this one charges.
        `li2012`: the published tail bound, valid for ``epsilon >= -ln(1 - beta)`` only.

    Returns
    -------
    float or ndarray of float64
        Delta under adding or removing one record; the shape is that of the broadcast arguments.

    References
    ----------
    .. [1] Li, Qardaji, Su, "On sampling, anonymization, and differential privacy", 2012, Theorem 5.
    """
    ks, rates, epsilons = np.broadcast_arrays(
        np.asarray(k), np.asarray(sampling_rate, dtype=np.float64), np.asarray(epsilon, dtype=np.float64)
    )
    result = np.ones(ks.shape)
    groups: dict[tuple[float, float], list[int]] = {}
    flat = result.reshape(-1)
    for index, (one_k, rate, loss) in enumerate(zip(ks.flat, rates.flat, epsilons.flat, strict=True)):
        check_gate(one_k, float(rate), float(loss), method)
        groups.setdefault((float(rate), float(loss)), []).append(index)
    for (rate, loss), members in groups.items():
        if rate == 1:
            continue
        wanted = ks.reshape(-1)[members].astype(np.int64)
        low = int(wanted.min())
        values, tail = _curve(low, int(wanted.max()), rate, loss, method)
        running = np.maximum.accumulate(values[::-1])[::-1]
        flat[members] = np.clip(np.maximum(running[wanted - low], tail), 0.0, 1.0)
    return float(result) if result.ndim == 0 else result


def gate_profiles(k: int, sampling_rate: float, epsilons: Floats) -> tuple[Floats, Floats]:
    r"""Return the divergences of the gate in either direction, each maximised over the size of a text.

    Parameters
    ----------
    k : int
        Smallest sample count that is released, >= 1.
    sampling_rate : float
        In (0, 1).
    epsilons : ndarray of float64, shape (n,)
        Privacy losses, each >= 0.

    Returns
    -------
    (forward, backward) : tuple of ndarray, shape (n,)
        :math:`\sup_n H_\varepsilon(P_n\|P_{n-1})` and :math:`\sup_n H_\varepsilon(P_{n-1}\|P_n)`; `gate_delta` is the
        larger one.
    """
    sides = (forward_curve, 0, _last_forward), (backward_curve, 1, _last_backward)
    found = []
    for curve, below, last in sides:
        start = np.maximum(curve(np.full_like(epsilons, k - below), sampling_rate, epsilons), NEGLIGIBLE)
        ends = [last(float(value), sampling_rate, float(loss)) for value, loss in zip(start, epsilons, strict=True)]
        counts = np.maximum(1, np.floor(ends).astype(np.intp) + 2 - k)
        firsts = np.cumsum(counts) - counts
        t = np.arange(counts.sum()) - np.repeat(firsts, counts) + float(k - below)
        values = np.maximum.reduceat(curve(t, sampling_rate, np.repeat(epsilons, counts)), firsts)
        found.append(np.maximum(values, NEGLIGIBLE))
    return found[0], np.where(epsilons >= -math.log1p(-sampling_rate), 0.0, found[1])


# Beyond these a curve takes longer than a page may, and the sum of the runs is charged.
_MOST_COMPOSED_K: Final = 500
_MOST_COMPOSED_RATE: Final = 0.9


@lru_cache(maxsize=1024)
def runs_epsilon(
    k: int, rate: float, epsilon: float, delta: float, runs: int, *, replaced: bool = False, resolution: int = 512
) -> float:
    """Return what `runs` runs, or texts of one contributor, cost together; see `composed_epsilon`."""
    if k > _MOST_COMPOSED_K or rate > _MOST_COMPOSED_RATE:
        return float_at_least(Fraction(epsilon) * runs * (2 if replaced else 1))
    profiles = partial(gate_profiles, k, rate)
    return composed_epsilon(profiles, runs=runs, epsilon=epsilon, delta=delta, replaced=replaced, resolution=resolution)


def gate_minimum_k(epsilon: float, delta: float, sampling_rate: float, method: DeltaMethod = "exact") -> int:
    """Return the smallest `k` whose gate has at most `delta` at `epsilon`.

    Parameters
    ----------
    epsilon : float
        Privacy loss, > 0.
    delta : float
        Wanted delta, in (0, 1) and at least 1e-30.
    sampling_rate : float
        Probability with which each record is kept, in (0, 1).
    method : {"exact", "li2012"}
        See `gate_delta`.

    Returns
    -------
    int
        Every larger `k` meets the wanted delta too.

    Raises
    ------
    ValueError
        If an argument is out of range, or the sampling rate is 1 (no `k` suffices).
    """
    _check(sampling_rate, epsilon, method)
    checks.delta_in_open_interval("delta", delta)
    if delta < NEGLIGIBLE:
        raise ValueError(f"delta must be >= {NEGLIGIBLE}, got {delta}")
    if sampling_rate == 1:
        raise ValueError("sampling_rate must be < 1: without sampling every k has delta 1, got 1.0")
    evaluate = exact_curve if method == "exact" else li_curve
    high, step = math.floor(last_threshold(delta, sampling_rate, epsilon, method)) + 1, 256
    while high >= 1:
        # The stopping threshold is a few per cent above the answer, so the first steps are short.
        low = max(1, high - step + 1)
        step = min(CHUNK, 2 * step)
        too_much = np.flatnonzero(evaluate(np.arange(low, high + 1, dtype=np.float64), sampling_rate, epsilon) > delta)
        if too_much.size:
            return low + 1 + int(too_much[-1])
        high = low - 1
    return 1


def amplify_by_sampling(epsilon: float, delta: float, from_rate: float, to_rate: float) -> tuple[float, float]:
    r"""Return the guarantee at a lower sampling rate of a mechanism proven at a higher one.

    Parameters
    ----------
    epsilon, delta : float
        Guarantee under sampling at `from_rate`.
    from_rate, to_rate : float
        0 < to_rate <= from_rate <= 1.

    Returns
    -------
    (epsilon, delta) : tuple of float
        :math:`\ln(1 + r(e^{\varepsilon} - 1))` and :math:`r\delta` with `r` the ratio of the rates.

    References
    ----------
    .. [1] Li, Qardaji, Su 2012, Theorem 1.
    """
    checks.not_negative("epsilon", epsilon)
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must lie in [0, 1], got {delta}")
    if not 0 < to_rate <= from_rate <= 1:
        raise ValueError(f"rates must fall within (0, 1], got {from_rate} to {to_rate}")
    ratio = to_rate / from_rate
    if epsilon > 500:
        return epsilon + math.log(ratio + (1 - ratio) * math.exp(-epsilon)), ratio * delta
    return math.log1p(ratio * math.expm1(epsilon)), ratio * delta


SMALLEST_K: Final = 2
RATES: Final = tuple(step / 100 for step in range(1, 100))


@dataclass(frozen=True, slots=True)
class PlannedGate:
    """A gate, the loss of one text, and the number of records a text needs, on average, to pass it."""

    k: int
    sampling_rate: float
    epsilon: float


def frontier(
    epsilon: float, delta: float, *, texts_per_contributor: int = 1, rates: Sequence[float] = RATES
) -> list[PlannedGate]:
    """Return the gates that cost (epsilon, delta) and that no other one beats in both k and sampling rate.

    Parameters
    ----------
    epsilon, delta : float
        Cost of the whole release for one record, or for one contributor of `texts_per_contributor` texts.
    texts_per_contributor : int
        Cap m, >= 1: m texts together cost both, by their product.
    rates : sequence of float
        Sampling rates to choose from, in (0, 1).

    Returns
    -------
    list of GateChoice
        By rising k, the smallest for its rate; at least 2.
    """
    if texts_per_contributor < 1:
        raise ValueError(f"texts_per_contributor must be >= 1, got {texts_per_contributor}")
    choices: dict[int, PlannedGate] = {}
    share = 1.0
    for rate in sorted(rates):
        planned = _planned(epsilon, delta, texts_per_contributor, rate, share)
        share = min(1.0, planned.epsilon / epsilon / SHARE_STEP)
        choices[planned.k] = planned
    ordered = [choices[k] for k in sorted(choices)]
    return [
        choice
        for place, choice in enumerate(ordered)
        if all(choice.sampling_rate > smaller.sampling_rate for smaller in ordered[:place])
    ]


# A text's share of epsilon is looked for in steps of this factor, on a coarser grid than the charge, which is no more.
SHARE_STEP: Final = 0.95
PLANNED_RESOLUTION: Final = 64


def _planned(epsilon: float, delta: float, texts: int, rate: float, share: float) -> PlannedGate:
    """Return a gate whose `texts` texts cost (epsilon, delta) together, each at most this share of epsilon."""
    while True:
        share = max(share, 1 / texts)
        one = epsilon * share
        k = max(SMALLEST_K, gate_minimum_k(one, delta / texts, rate))
        found = float(gate_delta(k, rate, one))
        if share * texts <= 1 or runs_epsilon(k, rate, one, found, texts, resolution=PLANNED_RESOLUTION) <= epsilon:
            return PlannedGate(k, rate, one)
        share *= SHARE_STEP


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
        raise ValueError(f"sampling_rate must lie in (0, 1), got {sampling_rate}")
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
    if (share <= rate) if upper else (share >= rate):
        return 1.0
    return math.exp(-n * bernoulli_divergence(share, rate))
