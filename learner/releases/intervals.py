"""How sure an accuracy measured on a few examples is."""

import math
from statistics import NormalDist


def wilson_interval(correct: int, examples: int, *, confidence: float = 0.95) -> tuple[float, float]:
    r"""Return the Wilson score interval of a proportion.

    Parameters
    ----------
    correct : int
        Successes, 0 <= correct <= examples.
    examples : int
        Trials, >= 1.
    confidence : float
        Coverage, 0 < confidence < 1.

    Returns
    -------
    tuple of float
        Lower and upper end, within [0, 1]; unlike the normal interval it is never empty at 0 or 1.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    .. [1] Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if examples < 1 or not 0 <= correct <= examples:
        raise ValueError(f"correct must lie within 0 and examples >= 1, got {correct} of {examples}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = correct / examples
    centre = share + z * z / (2 * examples)
    reach = z * math.sqrt(share * (1 - share) / examples + (z / (2 * examples)) ** 2)
    scale = 1 + z * z / examples
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)
