"""The guarantee of a release, as its signed privacy.json states it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpal.errors import DpalError


@dataclass(frozen=True)
class Budget:
    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})"


@dataclass(frozen=True)
class Account:
    """Guarantee of one account: its unit, neighbours, limit and spending.

    `limit` is the guarantee: it holds for everything the account pays for together, this release among it; `spent` is
    what was spent of it when the release was made. Neighbouring data sets differ in one `unit`, such as a record or a
    contributor. `chain_head` is the hash of the ledger's last entry when the files were written.
    """

    protects: str
    limit: Budget
    spent: Budget
    unit: str
    neighbours: str
    chain_head: str

    def __str__(self) -> str:
        return f"{self.limit}-differential privacy for {self.neighbours}; {self.spent} of it was spent at the release"


@dataclass(frozen=True)
class Guarantee:
    """All accounts behind a release; with one account, its limit, spending and unit by their own names.

    `adversary` says against whom it holds, `not_covered` what it does not speak about, `issued_at` the day on which
    these limits were current.
    """

    accounts: tuple[Account, ...]
    adversary: str
    not_covered: tuple[str, ...]
    issued_at: str

    @classmethod
    def from_document(cls, body: Mapping[str, Any]) -> "Guarantee":
        accounts = tuple(
            Account(
                one["protects"],
                Budget(one["guarantee"]["epsilon"], one["guarantee"]["delta"]),
                Budget(one["spent_when_released"]["epsilon"], one["spent_when_released"]["delta"]),
                one["unit_of_privacy"],
                one["neighbouring_data_sets"],
                one["chain_head"],
            )
            for one in body["accounts"]
        )
        return cls(accounts, "; ".join(body["covered"]), tuple(body["not_covered"]), body["issued_at"])

    @property
    def limit(self) -> Budget:
        """The guarantee of the only account."""
        return self._only.limit

    @property
    def spent(self) -> Budget:
        """Spending of the only account."""
        return self._only.spent

    @property
    def unit(self) -> str:
        """Unit of the only account."""
        return self._only.unit

    @property
    def _only(self) -> Account:
        if len(self.accounts) != 1:
            named = ", ".join(account.protects for account in self.accounts)
            raise DpalError(f"This release has several guarantees ({named}): look at each of `guarantee.accounts`.")
        return self.accounts[0]

    def __iter__(self) -> Iterator[Account]:
        return iter(self.accounts)

    def __str__(self) -> str:
        accounts = "\n".join(f"{account.protects}: {account}" for account in self.accounts)
        return f"{accounts}\nagainst {self.adversary}, as of {self.issued_at}"
