"""The limits of an account as integers, and the rho that a limit of epsilon and delta is worth."""

from dataclasses import dataclass

from privacy.accounting.composition import zcdp_rho_limit
from privacy.accounting.units import atto_spendable, nano_spendable, rho_limit_to_nano


@dataclass(frozen=True, slots=True)
class Limits:
    """What an account may spend; `rho_limit_nano` only under the `zcdp` filter."""

    epsilon_limit_nano: int
    delta_limit_atto: int
    delta_sum_limit_atto: int
    rho_limit_nano: int | None


def rho_limit(*, epsilon_nano: int, delta_atto: int) -> int:
    """Return the rho, in nano-units, that converts into at most this epsilon at this delta."""
    return rho_limit_to_nano(zcdp_rho_limit(nano_spendable(epsilon_nano), atto_spendable(delta_atto)))
