"""Everything the privacy layer refuses to do, by name."""

from collections.abc import Sequence
from dataclasses import dataclass


class PrivacyError(Exception):
    """Base of all refusals of the privacy layer."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Spending of one mechanism, subject or person; `share` is its part of all that is spent."""

    name: str
    operations: int
    epsilon_nano: int
    delta_atto: int
    rho_nano: int
    share: float


class BudgetExceeded(PrivacyError):
    """The account cannot pay for the operation; nothing was read. `top_spenders` says what the budget went to."""

    def __init__(self, message: str, *, top_spenders: Sequence[Spending] = ()) -> None:
        super().__init__(message)
        self.top_spenders = tuple(top_spenders)


class KeyReused(PrivacyError):
    """The idempotency key already stands for a different operation."""


class AlreadySettled(PrivacyError):
    """The reservation has been committed, charged or voided before."""


class NotCommitted(PrivacyError):
    """A post-processing entry must descend from a committed entry."""


class UnsoundCombination(PrivacyError):
    """No proof covers the combination; the message names the rule it breaks."""


class CertificateMissed(PrivacyError):
    """The solver did not reach its public gradient certificate; nothing may be output."""


class SimulationNotReleasable(PrivacyError):
    """Output drawn from a seeded generator carries no guarantee and cannot be released."""


class RollbackDetected(PrivacyError):
    """The database holds fewer ledger entries than the counter kept outside it."""


class CounterMissing(RollbackDetected):
    """The counter outside the database is not there, or does not know an account: nobody can say what was spent."""


class NoSuchEntry(PrivacyError):
    status = 422


class PoolDamaged(PrivacyError):
    """A file of a pool is not the one that was written, so no row of it counts."""


class EngineFailed(PrivacyError):
    """The cluster that should count a pool is missing, is away, or ended without an answer."""
