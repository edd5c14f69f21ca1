"""Cost of one operation, and the neighbours for which it is proven."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from privacy.accounting.units import float_at_least, outward
from privacy.errors import UnsoundCombination

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
