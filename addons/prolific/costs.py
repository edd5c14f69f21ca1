"""Costs of places and bonuses with the platform's fee, in whole hundredths of a currency; always rounded up."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True)
class StudyCost:
    promised: int
    so_far: int


def with_fee(cents: int, fee_percent: Decimal) -> int:
    if cents < 0:
        raise ValueError(f"cents must be >= 0, got {cents}")
    return int((cents * (HUNDRED + fee_percent) / HUNDRED).to_integral_value(rounding=ROUND_CEILING))


def hourly_cents(reward_cents: int, minutes: int) -> int:
    """Return what an hour of the work pays, rounded down, so that no page promises more than is paid."""
    if minutes < 1:
        raise ValueError(f"minutes must be >= 1, got {minutes}")
    return reward_cents * 60 // minutes


def cost_of(
    *, reward_cents: int, fee_percent: Decimal, places: int, approved: int, is_over: bool, bonus_cents: int
) -> StudyCost:
    counted = approved if is_over else max(places, approved)
    return StudyCost(
        promised=with_fee(counted * reward_cents + bonus_cents, fee_percent),
        so_far=with_fee(approved * reward_cents + bonus_cents, fee_percent),
    )


def together(costs: Iterable[StudyCost]) -> StudyCost:
    promised = so_far = 0
    for cost in costs:
        promised, so_far = promised + cost.promised, so_far + cost.so_far
    return StudyCost(promised, so_far)


def money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def in_cents(amount: Decimal) -> int:
    """Return hundredths of an amount that has two digits behind the point."""
    cents = amount * HUNDRED
    if cents != cents.to_integral_value():
        raise ValueError(f"amount must have at most two digits behind the point, got {amount}")
    return int(cents)
