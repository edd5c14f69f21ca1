"""Canary audits: an empirical lower bound on the loss of any mechanism, to hold against what it is charged."""

# `gaussian_audit` asks of the noise what a Gaussian charge promises, at every threshold and not only far out where
# delta lies: it finds noise half as large with a few hundred outputs, where `audit`, which asks nothing, finds nothing.

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from privacy.arrays import CountArray
from privacy.mechanisms.randomness import RandomSource

AuditedData = TypeVar("AuditedData")
# Draw `trials` outputs from `data`, each reduced to one number; shape (trials,).
AuditedBatch = Callable[[AuditedData, int, RandomSource], ArrayLike]
# What so many outputs of either side in an event, of so many trials, at such a chance of error, say about the loss.
Bounds = Callable[[CountArray, CountArray, int, float], NDArray[np.float64]]
# More thresholds than this add time, not power.
MOST_THRESHOLDS = 512


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of one audit.

    Attributes
    ----------
    epsilon_lower_bound : float
        No smaller epsilon is compatible with the trials, at the stated confidence; 0 if nothing was found.
    event : str
        The event that was tested, as a condition on the output.
    more_likely : str
        ``input`` or ``neighbour``: where the event has the larger probability.
    trials : int
        Outputs drawn from each side.
    confidence : float
        Probability, over the trials, that the bound is true.
    """

    epsilon_lower_bound: float
    event: str
    more_likely: str
    trials: int
    confidence: float


@dataclass(frozen=True, slots=True)
class GaussianAudit:
    """The result of one audit of Gaussian differential privacy.

    Attributes
    ----------
    mu_lower_bound : float
        No smaller ratio of sensitivity to noise is compatible with the trials, at the stated confidence; 0 if nothing
        was found.
    event, more_likely, trials, confidence
        As in `Audit`.
    """

    mu_lower_bound: float
    event: str
    more_likely: str
    trials: int
    confidence: float


def one_by_one(mechanism: Callable[[AuditedData, RandomSource], float]) -> AuditedBatch[AuditedData]:
    """Turn a mechanism that draws one number at a time into one that draws many."""

    def batch(data: AuditedData, trials: int, rng: RandomSource) -> NDArray[np.float64]:
        return np.array([mechanism(data, rng) for _ in range(trials)], dtype=np.float64)

    return batch


def audit(
    mechanism: AuditedBatch[AuditedData],
    data: AuditedData,
    neighbour: AuditedData,
    *,
    trials: int,
    confidence: float = 0.95,
    delta: float = 0.0,
    rng: RandomSource,
) -> Audit:
    r"""Look for an event that one input makes much more likely than its neighbour.

    Half of the outputs choose the event, among ``output <= t``, ``output > t`` and ``output == t``
    and both directions; the other half is counted. With the exact Clopper-Pearson bounds
    [1]_ p on the likelier and q on the other side, every :math:`(\varepsilon, \delta)`
    mechanism has :math:`\varepsilon \ge \ln((p - \delta)/q)`. The choice does not weaken the
    confidence, since it never sees the outputs that are counted.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data, trials, rng)`` returns `trials` independent outputs, each reduced to one
        number, shape (trials,). Infinities are allowed. A good reduction is monotone in the
        likelihood ratio of the two inputs; a poor one only weakens the bound.
    data, neighbour : object
        Two neighbouring inputs.
    trials : int
        Outputs drawn from each, >= 4.
    confidence : float
        In (0, 1): probability that the returned bound is true.
    delta : float
        The delta the mechanism is charged beside its epsilon, in [0, 1).
    rng : RandomSource
        Source handed to the mechanism.

    References
    ----------
    .. [1] Clopper, Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934.
    .. [2] Jagielski, Ullman, Oprea, "Auditing differentially private machine learning", 2020, Algorithm 1.
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta}")

    def bounds(likely: CountArray, unlikely: CountArray, counted: int, failure: float) -> NDArray[np.float64]:
        return _bounds(likely, unlikely, counted, failure, delta)

    return Audit(*_strongest(mechanism, data, neighbour, bounds, trials=trials, confidence=confidence, rng=rng))


def gaussian_audit(
    mechanism: AuditedBatch[AuditedData],
    data: AuditedData,
    neighbour: AuditedData,
    *,
    trials: int,
    confidence: float = 0.95,
    rng: RandomSource,
) -> GaussianAudit:
    r"""Look for an event that shows a larger ratio of sensitivity to noise than a Gaussian charge allows.

    A mechanism is :math:`\mu`-Gaussian differentially private if no event has probabilities p on one side and q on the
    other with :math:`\Phi^{-1}(p) - \Phi^{-1}(q) > \mu` [1]_. Gaussian noise of that ratio is, as is whatever is made
    of its output, so an event beyond its ratio shows that the noise is too small [2]_.

    Parameters
    ----------
    mechanism, data, neighbour, trials, confidence, rng
        As in `audit`.

    References
    ----------
    .. [1] Dong, Roth, Su, "Gaussian differential privacy", 2022, Definition 4.
    .. [2] Nasr, Hayes, Steinke, Balle, Tramer, Jagielski, Carlini, Terzis, "Tight auditing of differentially private
       machine learning", 2023, Section 4.
    """
    return GaussianAudit(
        *_strongest(mechanism, data, neighbour, _ratios, trials=trials, confidence=confidence, rng=rng)
    )


def epsilon_lower_bound(
    mechanism: AuditedBatch[AuditedData],
    data: AuditedData,
    neighbour: AuditedData,
    *,
    trials: int,
    confidence: float = 0.95,
    delta: float = 0.0,
    rng: RandomSource,
) -> float:
    return audit(
        mechanism, data, neighbour, trials=trials, confidence=confidence, delta=delta, rng=rng
    ).epsilon_lower_bound


def _strongest(
    mechanism: AuditedBatch[AuditedData],
    data: AuditedData,
    neighbour: AuditedData,
    bounds: Bounds,
    *,
    trials: int,
    confidence: float,
    rng: RandomSource,
) -> tuple[float, str, str, int, float]:
    if trials < 4:
        raise ValueError(f"trials must be >= 4, got {trials}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence}")
    outputs, others = (_outputs(mechanism, side, trials, rng) for side in (data, neighbour))
    half = trials // 2
    failure = (1 - confidence) / 2
    thresholds = _thresholds(np.concatenate([outputs[:half], others[:half]]))
    chosen, counted = (
        (_event_counts(outputs[part], thresholds), _event_counts(others[part], thresholds))
        for part in (slice(half), slice(half, None))
    )
    promises = np.stack([bounds(*pair, half, failure) for pair in (chosen, chosen[::-1])])
    swapped, event = divmod(int(np.argmax(promises)), promises.shape[1])
    first, second = counted[::-1] if swapped else counted
    bound = float(bounds(first[[event]], second[[event]], trials - half, failure)[0])
    relation, place = divmod(event, len(thresholds))
    words = f"output {('<=', '>', '==')[relation]} {thresholds[place]:.6g}"
    return max(0.0, bound), words, "neighbour" if swapped else "input", trials, confidence


def _outputs(
    mechanism: AuditedBatch[AuditedData], data: AuditedData, trials: int, rng: RandomSource
) -> NDArray[np.float64]:
    outputs = np.asarray(mechanism(data, trials, rng), dtype=np.float64)
    if outputs.shape != (trials,) or np.isnan(outputs).any():
        raise ValueError(f"the mechanism must return {trials} numbers, got shape {outputs.shape} or nan")
    return outputs


def _thresholds(values: NDArray[np.float64]) -> NDArray[np.float64]:
    distinct = np.unique(values)
    if len(distinct) <= MOST_THRESHOLDS:
        return distinct
    # Sample quantiles, so that most candidates lie where outputs lie.
    return np.unique(np.quantile(values, np.linspace(0, 1, MOST_THRESHOLDS), method="lower"))


def _event_counts(outputs: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
    ranked = np.sort(outputs)
    up_to = np.searchsorted(ranked, thresholds, side="right")
    return np.concatenate([up_to, len(ranked) - up_to, up_to - np.searchsorted(ranked, thresholds, side="left")])


def _bounds(likely: CountArray, unlikely: CountArray, trials: int, failure: float, delta: float) -> NDArray[np.float64]:
    low, high = _chances(likely, unlikely, trials, failure)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def _ratios(likely: CountArray, unlikely: CountArray, trials: int, failure: float) -> NDArray[np.float64]:
    low, high = _chances(likely, unlikely, trials, failure)
    # A bound of 1 on q says nothing either, and inf - inf would be no number.
    return np.where((low > 0) & (high < 1), special.ndtri(low) - special.ndtri(np.minimum(high, 1 - 2.0**-53)), -np.inf)


def _chances(
    likely: CountArray, unlikely: CountArray, trials: int, failure: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # The beta quantiles are nan at the ends, where the exact bounds are 0 and 1.
    low = np.nan_to_num(stats.beta.ppf(failure, likely, trials - likely + 1), nan=0.0)
    high = np.nan_to_num(stats.beta.ppf(1 - failure, unlikely + 1, trials - unlikely), nan=1.0)
    return low, high
