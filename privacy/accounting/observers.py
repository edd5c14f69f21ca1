"""What (epsilon, delta) lets an observer conclude, and how small delta should be."""

import math
from dataclasses import dataclass
from typing import Final

# Share of innocent people an observer may accuse by mistake in the reading that looks at confident guesses only.
FEW_FALSE_ALARMS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Reading:
    """What a guarantee bounds, whatever the observer knows and computes.

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

    Raises
    ------
    ValueError
        If a number is out of range.

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

    Parameters
    ----------
    people : int
        Number of protected units (records or contributors), >= 1; a public estimate, since the number may be private.

    References
    ----------
    .. [1] Ponomareva et al., "How to DP-fy ML", JAIR 77, 2023.
    """
    if people < 1:
        raise ValueError(f"people must be >= 1, got {people}")
    return math.exp(-1.1 * math.log(people))
