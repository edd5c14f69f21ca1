"""Other ways to divide a limit between choosing and training: each strategy says its own, counted from its prices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

SHARES: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)
RATES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
SMALLEST_RATE: Final = 1e-4
# A training that may cost no more than this learns nothing, and one that may cost more than that needs no more.
LEAST_TRAINING: Final = 1e-3
MOST_TRAINING: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """One way to divide a limit.

    Attributes
    ----------
    changes : mapping of str to float
        Parameters of the strategy in place of those that stand.
    choosing : float
        Epsilon of all choosing; 0 where choice and training have one price.
    training : float
        Epsilon of one training.
    rate : float or None
        The rate that is varied where choice and training have one price; elsewhere the share of choosing is.
    asked : tuple of float
        Rates at which the same records are asked about, now and before.
    """

    changes: Mapping[str, Any]
    choosing: float = 0.0
    training: float
    rate: float | None = None
    asked: tuple[float, float] = (1.0, 1.0)


def largest_within(limit: float, price: Callable[[float], float], *, most: float, steps: int) -> float:
    """Return about the largest number up to `most` whose price, which grows with it, is within the limit; 0 if none."""
    least = 0.0
    for _ in range(steps):
        middle = (least + most) / 2
        least, most = (middle, most) if price(middle) <= limit else (least, middle)
    return least


def of_one_price(limit: float, price: Callable[[float], float]) -> float | None:
    """Return what one training may cost where its price holds choosing, too; None where nothing would be learned."""
    training = largest_within(limit, price, most=limit + 20.0, steps=60)
    return None if training < LEAST_TRAINING else min(training, MOST_TRAINING)
