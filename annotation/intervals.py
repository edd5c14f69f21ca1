"""Confidence intervals of shares."""

import math
from statistics import NormalDist


def wilson_interval(part: int, whole: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson (1927) score interval of a proportion, (0, 1) where nothing was tried; not empty at 0 or 1."""
    if not 0 <= part <= whole:
        raise ValueError(f"part must be in [0, {whole}], got {part}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    if whole == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, weight = part / whole, z * z / whole
    middle = share + weight / 2
    reach = z * math.sqrt(share * (1 - share) / whole + weight / (4 * whole))
    # At the ends the exact value is 0 or 1, which the sum misses by a rounding.
    low = 0.0 if part == 0 else (middle - reach) / (1 + weight)
    return low, 1.0 if part == whole else (middle + reach) / (1 + weight)
