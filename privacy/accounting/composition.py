r"""Composition of costs: zCDP, Gaussian and numerical (PLD), account limits, and the odds an attacker gets."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost, atto_spendable, float_at_least, nano_spendable, rho_limit_to_nano

Floats = NDArray[np.float64]


def bounded_range_rho(loss_range: float) -> float:
    r"""Return the zCDP cost :math:`t^2/8` of a mechanism whose losses for one pair fill an interval of length `t`.

    References
    ----------
    .. [1] Cesar, Rogers, "Bounding, concentrating, and truncating", 2021.
    """
    if not loss_range >= 0:
        raise ValueError(f"loss_range must be >= 0, got {loss_range}")
    return loss_range * loss_range / 8


def gaussian_rho(sensitivity_l2: float, sigma: float) -> float:
    r"""Return the zCDP cost :math:`\Delta_2^2/(2\sigma^2)` of Gaussian noise."""
    checks.not_negative("sensitivity_l2", sensitivity_l2)
    checks.positive("sigma", sigma)
    return (sensitivity_l2 / sigma) ** 2 / 2


def zcdp_epsilon(rho: float, delta: float) -> float:
    r"""Return the epsilon that `rho`-zCDP guarantees at `delta`.

    Parameters
    ----------
    rho : float
        zCDP cost, >= 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        :math:`\rho + 2\sqrt{\rho \ln(1/\delta)}`, the guarantee an account prints.

    References
    ----------
    .. [1] Bun, Steinke 2016, Proposition 1.3.
    """
    checks.not_negative("rho", rho)
    checks.delta_in_open_interval("delta", delta)
    return rho + 2 * math.sqrt(rho * -math.log(delta))


def zcdp_rho_limit(epsilon: float, delta: float) -> float:
    r"""Return the largest `rho` whose guarantee at `delta` is at most `epsilon`.

    Returns
    -------
    float
        :math:`(\sqrt{\ln(1/\delta) + \varepsilon} - \sqrt{\ln(1/\delta)})^2`, nudged down until
        ``zcdp_epsilon(rho, delta) <= epsilon`` holds in floating point too.
    """
    checks.not_negative("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    log_delta = -math.log(delta)
    rho = (epsilon / (math.sqrt(log_delta + epsilon) + math.sqrt(log_delta))) ** 2
    while rho > 0 and zcdp_epsilon(rho, delta) > epsilon:
        rho = math.nextafter(rho, 0.0) * (1 - 2.0**-50)
    return rho


def gaussian_delta(mu: float, epsilon: float) -> float:
    r"""Return the exact delta of Gaussian noise with sensitivity-to-noise ratio `mu` at `epsilon`.

    Parameters
    ----------
    mu : float
        :math:`\Delta_2/\sigma`, >= 0.
    epsilon : float
        >= 0.

    Returns
    -------
    float
        :math:`\Phi(\mu/2 - \varepsilon/\mu) - e^{\varepsilon}\Phi(-\mu/2 - \varepsilon/\mu)`.

    Notes
    -----
    Both terms share the factor :math:`\varphi(\varepsilon/\mu - \mu/2)`; what is left is a difference of Mills ratios,
    which keeps its relative accuracy far into the tail.

    References
    ----------
    .. [1] Balle, Wang, "Improving the Gaussian mechanism for differential privacy", 2018, Theorem 8.
    """
    checks.not_negative("mu", mu)
    checks.not_negative("epsilon", epsilon)
    if mu == 0:
        return 0.0
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near > -20:
        mills = erfcx(near / math.sqrt(2)) - erfcx(far / math.sqrt(2))
        return float(min(1.0, max(0.0, math.exp(-near * near / 2) * mills / 2)))
    return float(min(1.0, ndtr(-near) - math.exp(-near * near / 2) * erfcx(far / math.sqrt(2)) / 2))


def gaussian_epsilon(mu: float, delta: float) -> float:
    checks.not_negative("mu", mu)
    checks.delta_in_open_interval("delta", delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, zcdp_epsilon(mu * mu / 2, delta)
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if gaussian_delta(mu, middle) <= delta else (middle, high)
    return high


class Priced(Protocol):
    """Anything with a cost; `gaussian_mu` is the sensitivity-to-noise ratio where the noise is Gaussian."""

    def cost(self, *, adjacency: Adjacency = "null") -> Cost: ...

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float | None: ...


def pld_epsilon(events: Iterable[Priced], delta: float, *, adjacency: Adjacency = "null") -> float:
    """Return the epsilon of all events together by privacy loss distributions, for information only.

    Parameters
    ----------
    events : iterable of event
        Gaussian events enter with their own loss distribution, all others with their (epsilon, delta).
    delta : float
        In (0, 1).
    adjacency : {"null", "replace", "add_remove"}
        Neighbouring relation the costs are asked for.

    Returns
    -------
    float
        An upper bound that is valid had all parameters been fixed beforehand; infinite if an event has neither
        a finite epsilon nor Gaussian noise.

    References
    ----------
    .. [1] Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, "Connect the dots", 2022 (the `dp_accounting` library).
    """
    from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415  # slow import

    checks.delta_in_open_interval("delta", delta)
    total = privacy_loss_distribution.identity()
    for event in events:
        mu = event.gaussian_mu(adjacency=adjacency)
        if mu is not None:
            if mu > 0:
                total = total.compose(privacy_loss_distribution.from_gaussian_mechanism(1 / mu))
            continue
        cost = event.cost(adjacency=adjacency)
        if math.isinf(cost.epsilon):
            return math.inf
        if cost.epsilon or cost.delta:
            total = total.compose(
                privacy_loss_distribution.from_privacy_parameters(
                    common.DifferentialPrivacyParameters(cost.epsilon, cost.delta)
                )
            )
    return float(total.get_epsilon_for_delta(delta))


# Beyond it a product of runs says nothing that anybody would promise.
MOST_COMPOSED: Final = 50.0
# What rounding may take off a curve, and off a sum of positive terms.
_MARGIN: Final = 1 + 1e-9


def composed_epsilon(
    profiles: Callable[[Floats], tuple[Floats, Floats]],
    *,
    runs: int,
    epsilon: float,
    delta: float,
    replaced: bool = False,
    resolution: int = 512,
) -> float:
    r"""Return an epsilon of `runs` adaptive runs of one mechanism at the delta that so many of them add up to.

    Parameters
    ----------
    profiles : callable
        Takes losses >= 0 and returns, for one run, :math:`\sup H_\varepsilon(P\|Q)` and
        :math:`\sup H_\varepsilon(Q\|P)` over all neighbours; from some loss on the second one is zero.
    runs : int
        Number of runs, >= 1.
    epsilon, delta : float
        A point of the curve of one run, > 0; the answer is for a delta of `runs` times `delta`.
    replaced : bool
        Whether each run counts twice, once in either direction: a record moves from one text to another.
    resolution : int
        Steps of the grid in `epsilon`, for a single run; a power of two gives no more than a smaller one.

    Returns
    -------
    float
        Between `epsilon` and the sum over all runs, in steps of at most :math:`\varepsilon \sqrt{W}` by the resolution.

    Notes
    -----
    docs/privacy.md, gates, has the proof. One run's curve is convex in :math:`e^\varepsilon`, so the chords between
    points of a grid lie above it, and they are the curve of a pair whose losses lie on that grid [2]_. The pair
    dominates every run, and its product all of them together [1]_. Losses above the range that is kept count as
    infinite, those below it are raised to it. All sums have positive terms, so `_MARGIN` covers their rounding.

    References
    ----------
    .. [1] Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic function", 2022.
    .. [2] Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, "Connect the dots", 2022.
    """
    checks.at_least("runs", runs, 1)
    count = 2 * runs if replaced else runs
    most = float_at_least(Fraction(epsilon) * count)
    if count == 1 or epsilon > MOST_COMPOSED:
        return most
    step = 2.0 ** math.floor(math.log2(epsilon * math.sqrt(runs) / resolution))
    sides = [_power(side, runs, most / step) for side in _pair_on_grid(profiles, step, epsilon)]
    if replaced:
        sides = [sides[0].with_other(sides[1], sides[0].reach)]
    allowed = float(Fraction(delta) * count)
    return min(most, max(epsilon, *(_loss_at(side, step, allowed) for side in sides)))


@dataclass(frozen=True, slots=True)
class _Losses:
    """Mass of each loss on a grid, from `lowest` steps on, and of an infinite one."""

    masses: Floats
    lowest: int
    infinite: float

    @property
    def reach(self) -> int:
        return max(-self.lowest, self.lowest + len(self.masses) - 1)

    def with_other(self, other: "_Losses", kept: int) -> "_Losses":
        """Return the law of the sum, cut to `kept` steps on either side of zero."""
        masses, lowest = np.convolve(self.masses, other.masses), self.lowest + other.lowest
        infinite = self.infinite + other.infinite
        if lowest < -kept:
            masses, lowest = np.append(masses[: 1 - kept - lowest].sum(), masses[1 - kept - lowest :]), -kept
        room = kept + 1 - lowest
        return _Losses(masses[:room], lowest, infinite + float(masses[room:].sum()))


def _pair_on_grid(
    profiles: Callable[[Floats], tuple[Floats, Floats]], step: float, epsilon: float
) -> tuple[_Losses, _Losses]:
    """Return the losses of one run in either direction, on a grid up to three times `epsilon`."""
    last = math.ceil(3 * epsilon / step)
    losses = step * np.arange(-last, last + 1)
    above, below = (np.minimum(1.0, curve * _MARGIN) for curve in profiles(losses[last:].astype(np.float64)))
    # The curve without its part max(0, 1 - ratio), which is known exactly and has its one corner at ratio 1.
    excess = np.concatenate([[0.0], np.exp(losses[:last]) * below[:0:-1], above])
    ratios = np.concatenate([[0.0], np.exp(losses)])
    slopes = np.append(np.diff(excess) / np.diff(ratios), 0.0)
    masses = np.diff(slopes)
    masses[last] += 1
    # Setting to zero what rounding made negative raises the curve.
    masses = np.maximum(masses, 0.0)
    return _Losses(masses * ratios[1:], -last, float(excess[-1])), _Losses(masses[::-1], -last, float(slopes[0]))


def _power(once: _Losses, runs: int, most: float) -> _Losses:
    """Return the law of the sum of `runs` losses; `most` steps are as many as anybody asks about."""
    places = once.lowest + np.arange(len(once.masses))
    mean = float(once.masses @ places)
    spread = math.sqrt(float(once.masses @ (places - mean) ** 2))
    kept = len(once.masses) + math.ceil(min(most, runs * abs(mean) + 8 * math.sqrt(runs) * spread))
    result, square = None, once
    while runs:
        if runs & 1:
            result = square if result is None else result.with_other(square, kept)
        runs >>= 1
        square = square.with_other(square, kept) if runs else square
    assert result is not None
    return result


def _loss_at(losses: _Losses, step: float, delta: float) -> float:
    """Return the first loss on the grid, from 0 on, whose point of the curve is at most `delta`, or infinity."""
    grid = step * (losses.lowest + np.arange(len(losses.masses)))

    def within(loss: float) -> bool:
        larger = grid > loss
        beyond = float(losses.masses[larger] @ -np.expm1(loss - grid[larger]))
        return bool((losses.infinite + beyond) * _MARGIN <= delta)

    low, high = -1, round(grid[-1] / step)
    if not within(step * high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(step * middle) else (middle, high)
    return float(step * high)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an account; `rho_limit_nano` only under the `zcdp` filter."""

    epsilon_limit_nano: int
    delta_limit_atto: int
    delta_sum_limit_atto: int
    rho_limit_nano: int | None


def rho_limit(*, epsilon_nano: int, delta_atto: int) -> int:
    return rho_limit_to_nano(zcdp_rho_limit(nano_spendable(epsilon_nano), atto_spendable(delta_atto)))


# Share of innocent people an observer may accuse by mistake in the reading that looks at confident guesses only.
FEW_FALSE_ALARMS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Reading:
    """Bounds of a guarantee on any observer, whatever they know and compute.

    Attributes
    ----------
    advantage : float
        Largest difference between the chance to accuse a member and the chance to accuse somebody else, 0 to 1.
    right : float
        Largest chance to guess rightly whether somebody is in, where both were equally likely before.
    detection : float
        Largest chance to find a member while one innocent person in a hundred is accused.
    odds : float
        Factor by which the odds that somebody is in may grow, except with a chance that delta bounds.
    """

    advantage: float
    right: float
    detection: float
    odds: float


def reading(epsilon: float, delta: float) -> Reading:
    r"""Return what (epsilon, delta) bounds in the words of hypothesis testing.

    Parameters
    ----------
    epsilon : float
        Natural log, >= 0.
    delta : float
        0 <= delta < 1.

    Notes
    -----
    Every test with false alarms :math:`\alpha` and misses :math:`\beta` has
    :math:`\alpha + e^\varepsilon \beta \ge 1 - \delta` and :math:`e^\varepsilon \alpha + \beta \ge 1 - \delta`, so
    :math:`1 - \alpha - \beta \le (e^\varepsilon - 1 + 2\delta) / (e^\varepsilon + 1)`.

    References
    ----------
    .. [1] Wasserman, Zhou, "A statistical framework for differential privacy", 2010, theorem 2.4.
    .. [2] Kairouz, Oh, Viswanath, "The composition theorem for differential privacy", 2015, theorem 2.1.
    """
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon}")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta}")
    # Written with exp(-epsilon), which does not overflow.
    small = math.exp(-epsilon)
    advantage = (1 - small + 2 * delta * small) / (1 + small)
    by_false_alarms = math.exp(min(epsilon, 700.0)) * FEW_FALSE_ALARMS + delta
    by_misses = 1 - small * (1 - delta - FEW_FALSE_ALARMS)
    return Reading(
        advantage=min(1.0, advantage),
        right=min(1.0, (1 + advantage) / 2),
        detection=max(FEW_FALSE_ALARMS, min(1.0, by_false_alarms, by_misses)),
        odds=math.exp(min(epsilon, 700.0)),
    )


def recommended_delta(people: int) -> float:
    """Return the largest delta that published guidance recommends for so many protected units: n to the power -1.1.

    The number is a public estimate, >= 1, since the true one may be private. (Ponomareva et al., "How to DP-fy ML",
    JAIR 77, 2023.)
    """
    if people < 1:
        raise ValueError(f"people must be >= 1, got {people}")
    return math.exp(-1.1 * math.log(people))
