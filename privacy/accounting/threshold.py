r"""Delta of the threshold gate (private partition selection), and thresholds that reach a wanted delta.

A text is released with its noisy count when that count reaches the threshold; a text with fewer true
contributions than `floor` is never released. Counted from ``floor - 1``, a text that falls under the floor is a
text with no contribution at all, so a floor `f` moves every threshold up by ``f - 1`` and nothing else changes. A
floor put on top of an unmoved threshold would be a second, noiseless gate and has no delta to speak of.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from scipy.special import log_ndtr, ndtri

from privacy.accounting import checks
from privacy.accounting.composition import gaussian_delta
from privacy.accounting.units import float_at_least

ThresholdNoise = Literal["laplace", "discrete_laplace", "truncated_geometric", "weighted_gaussian"]


def unit_scale(epsilon: float) -> float:
    """Return the smallest scale, as a float, of noise whose decay per unit is no more than `epsilon`."""
    checks.positive("epsilon", epsilon)
    return float_at_least(1 / Fraction(epsilon))


def laplace_delta(scale: float, threshold: float, floor: int = 1) -> float:
    r"""Return the chance that a text with `floor` contributions reaches `threshold` under Laplace noise.

    Parameters
    ----------
    scale : float
        Noise scale, 1/epsilon, > 0.
    threshold : float
        Smallest noisy count that is released.
    floor : int
        Smallest true count that can be released, >= 1.

    Returns
    -------
    float
        :math:`\tfrac12 e^{-(T-f)/s}`, the delta of one text under adding or removing one record.
    """
    checks.positive("scale", scale)
    checks.at_least("floor", floor, 1)
    distance = (threshold - floor) / scale
    return math.exp(-distance) / 2 if distance >= 0 else 1 - math.exp(distance) / 2


def laplace_threshold(epsilon: float, delta: float, floor: int = 1) -> float:
    r"""Return the threshold :math:`f + \ln(1/(2\delta))/\varepsilon`, rounded up until `laplace_delta` agrees."""
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    threshold = floor + max(0.0, -math.log(2 * delta) / epsilon)
    while laplace_delta(unit_scale(epsilon), threshold, floor) > delta and delta < 0.5:
        threshold = math.nextafter(threshold, math.inf) * (1 + 2.0**-50)
    return threshold


def discrete_laplace_delta(scale: float, threshold: float, floor: int = 1) -> float:
    r"""Return the same chance for integer noise with mass proportional to :math:`e^{-|z|/s}`.

    Returns
    -------
    float
        :math:`e^{-(T-f)/s}/(1 + e^{-1/s})` for an integer threshold T > f.
    """
    checks.positive("scale", scale)
    checks.at_least("floor", floor, 1)
    steps = math.ceil(threshold) - floor
    if steps >= 1:
        return math.exp(-steps / scale) / (1 + math.exp(-1 / scale))
    return 1 - math.exp(-(1 - steps) / scale) / (1 + math.exp(-1 / scale))


def discrete_laplace_threshold(epsilon: float, delta: float, floor: int = 1) -> int:
    """Return the smallest integer threshold above `floor` whose `discrete_laplace_delta` is at most `delta`."""
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    steps = max(1, math.floor(-math.log(delta * (1 + math.exp(-epsilon))) / epsilon) - 1)
    while discrete_laplace_delta(unit_scale(epsilon), floor + steps, floor) > delta:
        steps += 1
    return floor + steps


def truncated_geometric_delta(epsilon: float, bound: int) -> float:
    r"""Return the mass of the largest value of geometric noise truncated to [-bound, bound].

    Parameters
    ----------
    epsilon : float
        Decay of the noise per unit, > 0.
    bound : int
        Largest noise value, >= 0; a text comes out iff its noisy count exceeds it.

    Returns
    -------
    float
        :math:`q^{b}(1-q)/(1 + q - 2q^{b+1})` with :math:`q = e^{-\varepsilon}`.

    References
    ----------
    .. [1] Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", 2022.
    """
    checks.positive("epsilon", epsilon)
    checks.at_least("bound", bound, 0)
    # 1 + q - 2 q^(b+1) = (1 - q) + 2 q (1 - q^b), a sum of positive terms.
    rest = -math.expm1(-epsilon) + 2 * math.exp(-epsilon) * -math.expm1(-epsilon * bound)
    return math.exp(-epsilon * bound) * -math.expm1(-epsilon) / rest


def truncated_geometric_bound(epsilon: float, delta: float) -> int:
    """Return the smallest truncation whose `truncated_geometric_delta` is at most `delta`."""
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    ratio = (math.expm1(epsilon) + 2 * delta) / ((math.exp(epsilon) + 1) * delta)
    bound = max(0, math.floor(math.log(ratio) / epsilon) - 1)
    while truncated_geometric_delta(1 / unit_scale(epsilon), bound) > delta:
        bound += 1
    return bound


def weighted_gaussian_delta(epsilon: float, sigma: float, threshold: float, texts: int, floor: int = 1) -> float:
    r"""Return the delta of releasing texts by a Gaussian-noised sum of contributor weights.

    Each contributor spreads weight :math:`1/\sqrt{j}` over their `j` <= `texts` texts, an L2 norm of one.

    Parameters
    ----------
    epsilon : float
        Loss at which delta is evaluated, >= 0.
    sigma : float
        Standard deviation of the noise, > 0.
    threshold : float
        Smallest noisy weight that is released.
    texts : int
        Largest number of texts of one contributor, >= 1.
    floor : int
        Smallest number of contributors of a released text, >= 1.

    Returns
    -------
    float
        The Gaussian mechanism's delta at ratio 1/sigma, plus the largest chance over `j` that one of `j` texts
        which stand or fall with this contributor is released.
    """
    checks.positive("sigma", sigma)
    checks.at_least("texts", texts, 1)
    checks.at_least("floor", floor, 1)
    worst = 0.0
    for j in range(1, texts + 1):
        hidden = j * float(log_ndtr((threshold - (floor - 1) - 1 / math.sqrt(j)) / sigma))
        worst = max(worst, -math.expm1(hidden))
    return min(1.0, gaussian_delta(1 / sigma, epsilon) + worst)


@lru_cache(maxsize=256)
def weighted_gaussian_noise(epsilon: float, delta: float, texts: int, floor: int = 1) -> tuple[float, float]:
    """Return (sigma, threshold) with `weighted_gaussian_delta` at most `delta` and a low threshold.

    The split of `delta` between noise and threshold is the best of nineteen equal steps.
    """
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    checks.at_least("texts", texts, 1)
    choices = [_noise_for_split(epsilon, delta, part / 20, texts, floor) for part in range(1, 20)]
    return min(choices, key=lambda choice: choice[1])


def _noise_for_split(epsilon: float, delta: float, share: float, texts: int, floor: int) -> tuple[float, float]:
    low, high = 0.0, 1.0
    while gaussian_delta(1 / high, epsilon) > share * delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(1 / middle, epsilon) <= share * delta else (middle, high)
    sigma, rest = high, (1 - share) * delta
    threshold = max(
        1 / math.sqrt(j) + sigma * -float(ndtri(-math.expm1(math.log1p(-rest) / j))) for j in range(1, texts + 1)
    )
    threshold += floor - 1
    while weighted_gaussian_delta(epsilon, sigma, threshold, texts, floor) > delta:
        threshold += 1e-12 * max(1.0, abs(threshold))
    return sigma, threshold
