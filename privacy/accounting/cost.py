"""Cost of one operation, the neighbours it is proven for, and the integer amounts that a ledger keeps of it."""

# Epsilon, rho and mutual information are counted in units of 1e-9 (nano), delta in units of 1e-18 (atto), so all four
# fit a signed 64-bit column and sums are exact. A float is converted through the rational number it stands for, never
# through its decimal print: a charge is rounded up, a limit down, and an amount that comes back from the ledger is
# never smaller than the integer it came from.

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, get_args

from privacy.errors import UnsoundCombination

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


Adjacency = Literal["null", "replace", "add_remove"]
Unit = Literal["record", "contributor"]
# Above it `expm1` overflows; a delta grown by so much is certain anyway.
LARGEST_EXPONENT: Final = 700.0
ADJACENCIES: Final[tuple[Adjacency, ...]] = get_args(Adjacency)


class NoProof(UnsoundCombination, ValueError):
    """No proof gives this operation a cost under the adjacency that was asked for."""


@dataclass(frozen=True, slots=True)
class Cost:
    r"""The charge of one operation in every currency an account can use.

    Parameters
    ----------
    epsilon : float
        Privacy loss, >= 0; infinite where the operation has no loss to charge in a `pure` account.
    delta : float
        Probability mass outside the bound, 0 <= delta <= 1, charged by both filters.
    rho : float, optional
        zCDP cost, >= 0 (possibly infinite). Left out, it is :math:`\varepsilon^2 / 2`, which holds for every
        :math:`(\varepsilon, \delta)` mechanism as :math:`\delta`-approximate zCDP [1]_.
    mutual_information : float
        Nats per user, for information only.

    References
    ----------
    .. [1] Bun, Steinke, "Concentrated differential privacy: simplifications, extensions, and lower bounds",
       2016, Proposition 1.4 and Lemma 8.8.
    """

    epsilon: float
    delta: float = 0.0
    rho: float = math.nan
    mutual_information: float = 0.0

    def __post_init__(self) -> None:
        if math.isnan(self.rho):
            object.__setattr__(self, "rho", _half_square(self.epsilon))
        for name in ("epsilon", "rho", "mutual_information"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be >= 0, got {getattr(self, name)}")
        if not 0 <= self.delta <= 1:
            raise ValueError(f"delta must lie in [0, 1], got {self.delta}")

    def times(self, count: int) -> "Cost":
        return Cost(
            _product(self.epsilon, count),
            min(1.0, _product(self.delta, count)),
            _product(self.rho, count),
            _product(self.mutual_information, count),
        )

    def plus(self, other: "Cost") -> "Cost":
        return Cost(
            _sum(self.epsilon, other.epsilon),
            min(1.0, _sum(self.delta, other.delta)),
            _sum(self.rho, other.rho),
            _sum(self.mutual_information, other.mutual_information),
        )

    def of_two_steps(self) -> "Cost":
        r"""Return the cost between datasets two steps apart: replacing a record is removing one and adding another.

        Notes
        -----
        Group privacy of size two: :math:`(2\varepsilon, (1 + e^{\varepsilon})\delta)` and :math:`4\rho`.
        """
        if self.delta == 0:
            return Cost(2 * self.epsilon, 0.0, 4 * self.rho, self.mutual_information)
        grown = outward(self.delta * (1 + math.exp(min(self.epsilon, LARGEST_EXPONENT))))
        # Group privacy of approximate zCDP needs the conditioned pair on both steps, so only the pure part is reused.
        return Cost(2 * self.epsilon, min(1.0, grown), mutual_information=self.mutual_information)

    def of_group(self, size: int) -> "Cost":
        r"""Return the cost between datasets `size` steps apart: all records of one person, where each is a step.

        Notes
        -----
        Group privacy: :math:`m\varepsilon`, :math:`\delta (e^{m\varepsilon} - 1) / (e^{\varepsilon} - 1)` and
        :math:`m^2\rho` [1]_. What bounds one record's information bounds that of several together by nothing.

        References
        ----------
        .. [1] Vadhan, "The complexity of differential privacy", 2017, Lemma 2.2; Bun, Steinke 2016, Proposition 1.9.
        """
        if size < 1:
            raise ValueError(f"size must be >= 1, got {size}")
        if size == 1:
            return self
        information = math.inf if self.mutual_information else 0.0
        if self.delta == 0:
            return Cost(_product(self.epsilon, size), 0.0, _product(self.rho, size * size), information)
        if math.isinf(self.epsilon):
            # Group privacy of approximate zCDP needs the conditioned pair on every step, so rho cannot be reused.
            return Cost(math.inf, 1.0, math.inf, information)
        growth = size if self.epsilon == 0 else _expm1(size * self.epsilon) / _expm1(self.epsilon)
        grown = min(1.0, outward(self.delta * growth))
        return Cost(_product(self.epsilon, size), grown, mutual_information=information)


def _product(amount: float, count: int) -> float:
    """Return the smallest float that is not below `count` times the amount; nothing done costs nothing."""
    exact = amount * count if count else 0.0
    return exact if count <= 1 or math.isinf(exact) else float_at_least(Fraction(amount) * count)


def _sum(one: float, other: float) -> float:
    nearest = one + other
    return nearest if not one or not other or math.isinf(nearest) else float_at_least(Fraction(one) + Fraction(other))


def _half_square(epsilon: float) -> float:
    nearest = epsilon * epsilon / 2
    return nearest if not math.isfinite(nearest) else float_at_least(Fraction(epsilon) ** 2 / 2)


def _expm1(exponent: float) -> float:
    return math.expm1(exponent) if exponent < LARGEST_EXPONENT else math.inf


def no_proof(kind: str, adjacency: str, rule: str) -> NoProof:
    """Return the refusal to price `kind` under `adjacency`; `rule` is what a proof would need."""
    return NoProof(f"{kind} has no proven cost under '{adjacency}' adjacency: {rule}")
