"""Integer amounts for the ledger: every conversion errs against the spender."""

# Epsilon, rho and mutual information are counted in units of 1e-9 (nano), delta in units of 1e-18 (atto), so all four
# fit a signed 64-bit column and sums are exact. A float is converted through the rational number it stands for, never
# through its decimal print: a charge is rounded up, a limit down, and an amount that comes back from the ledger is
# never smaller than the integer it came from.

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Final

NANO: Final = 10**9
ATTO: Final = 10**18
LARGEST: Final = 2**63 - 1

# What an account may promise: of more, rho = epsilon^2 / 2 no longer fits its column; of less, nothing can be planned.
LEAST_EPSILON_LIMIT: Final = 1e-6
MOST_EPSILON_LIMIT: Final = 100_000.0
MOST_DELTA_LIMIT: Final = 0.5

Amount = float | int | str | Decimal | Fraction


def _exact(value: Amount, name: str) -> Fraction:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    try:
        exact = Fraction(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a number, got {value!r}") from error
    if exact < 0:
        raise ValueError(f"{name} must be >= 0, got {value}")
    return exact


def _integer(value: Amount, scale: int, name: str, rounding: Callable[[Fraction], int]) -> int:
    count = rounding(_exact(value, name) * scale)
    if count > LARGEST:
        raise ValueError(f"{name} must be <= {LARGEST / scale:g}, got {value}")
    return count


def epsilon_to_nano(epsilon: Amount) -> int:
    """Return the charge for `epsilon` in nano-units, rounded up.

    Parameters
    ----------
    epsilon : float, int, str, Decimal or Fraction
        Amount spent, finite and >= 0. A float counts as the exact rational it stores.

    Returns
    -------
    int
        The smallest integer `n` with ``n * 1e-9 >= epsilon`` exactly.

    Raises
    ------
    ValueError
        If the amount is negative, not finite or beyond 64 bits.
    """
    return _integer(epsilon, NANO, "epsilon", math.ceil)


def epsilon_limit_to_nano(epsilon: Amount) -> int:
    """Return the limit `epsilon` in nano-units, rounded down; a form should pass the typed `Decimal`."""
    return _integer(epsilon, NANO, "epsilon limit", math.floor)


def rho_to_nano(rho: Amount) -> int:
    """Return the charge for `rho` (zCDP) in nano-units, rounded up."""
    return _integer(rho, NANO, "rho", math.ceil)


def rho_limit_to_nano(rho: Amount) -> int:
    return _integer(rho, NANO, "rho limit", math.floor)


def mutual_information_to_nano(nats: Amount) -> int:
    return _integer(nats, NANO, "mutual information", math.ceil)


def delta_to_atto(delta: Amount) -> int:
    return _integer(delta, ATTO, "delta", math.ceil)


def delta_limit_to_atto(delta: Amount) -> int:
    return _integer(delta, ATTO, "delta limit", math.floor)


def float_at_least(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _float_at_most(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


def nano_spent(count: int) -> float:
    """Return the smallest float that is not below `count` nano-units: what a statement prints as spent."""
    return float_at_least(_exact(count, "count") / NANO)


def atto_spent(count: int) -> float:
    return float_at_least(_exact(count, "count") / ATTO)


def nano_shown(count: int) -> float:
    """Return the float that prints as so many nano-units do: a typed limit as it was typed, and no sum above it."""
    return count / NANO


def atto_shown(count: int) -> float:
    return count / ATTO


def nano_spendable(count: int) -> float:
    """Return the largest float whose charge is at most `count` nano-units.

    Planners hand this to a mechanism instead of a decimal such as ``0.1``, whose float lies
    just above a tenth and would cost one nano-unit more than a tenth.
    """
    return _float_at_most(_exact(count, "count") / NANO)


def atto_spendable(count: int) -> float:
    return _float_at_most(_exact(count, "count") / ATTO)


def outward(value: float, relative: float = 2.0**-46) -> float:
    """Return `value` raised by `relative`, which exceeds the rounding error of the formula behind it.

    Charges that went through logarithms and exponentials pass through here, so that a computed
    cost is an upper bound on the real number the proof speaks about.
    """
    return value if value == 0.0 or math.isinf(value) else value * (1.0 + relative)
