"""The contract of every query strategy: which records to ask about, from whom it hides them, and its cost."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from annotation.choices.selections import SelectionChoice
from learner.linear_model import LinearModel
from learner.strategies.rows import ListedRows, Rows
from privacy.accounting.events import Event
from privacy.errors import UnsoundCombination
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import gettext_noop as _

BEYOND_A_STREAM = _("Streams need a screen, or ask about every record.")
# What rounds that cost are left of a limit where nobody says what a training may cost.
SHARE_OF_ROUNDS = 0.15
OracleName = Literal["trusted", "crowd"]
Series = Literal["single", "opened", "continued"]


class QueryStrategy(ABC):
    """Choose candidates to label.

    Attributes
    ----------
    name : str
        The name under which projects store the strategy.
    needs_model : bool
        Whether `query` scores with the last released model, so that the first round needs another strategy.
    oracles : frozenset of str
        Oracles in front of which the strategy is sound.
    post_processing_only : bool
        Whether the choice is exact and so may look only at what is already public, such as the gate's output.
    fills_batch : bool
        Whether `query` returns min(n, m) records. Where a coin decides about each record, there may be fewer.
    hidden : bool
        Whether ids, number and times of the choice must stay inside; then `query` leaves `n` aside, since
        cutting the choice short would tie one record's part to another's.
    """

    name: ClassVar[str]
    needs_model: ClassVar[bool]
    oracles: ClassVar[frozenset[OracleName]]
    post_processing_only: ClassVar[bool]
    fills_batch: ClassVar[bool] = True
    hidden: ClassVar[bool] = False

    @abstractmethod
    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        """Choose among the candidates.

        Parameters
        ----------
        X : ndarray of float32, shape (rows, d)
            Features, usually a memory map; only candidate rows are read.
        candidates : ndarray of int64, shape (m,)
            Distinct rows that may be asked about; m is public.
        model : LinearModel or None
            The last RELEASED model; never one trained without noise.
        n : int
            How many to choose, >= 0; all candidates where there are no more than n.
        rng : RandomSource
            Source of all randomness.

        Returns
        -------
        ndarray of int64, shape (min(n, m),), or less as `fills_batch` and `hidden` say
            Distinct candidates, in the order to ask.

        Raises
        ------
        ValueError
            If candidates repeat or lie outside `X`, `n` is negative, or a needed model is missing.
        """

    def choose(
        self, X: NDArray[np.float32], rows: Rows, model: LinearModel | None, n: int, rng: RandomSource
    ) -> NDArray[np.int64]:
        """Choose as `query` does among increasing rows that nobody has listed; the same draws choose the same."""
        return self.query(X, rows.at(np.arange(len(rows), dtype=np.int64)), model, n, rng)

    @abstractmethod
    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        """Return the accountant's event of one `query` over `pool_size` candidates.

        `series` says whether the same records are examined in further rounds: "single" never again,
        "opened" for the first round of a series, "continued" for the later ones.
        """

    def check_oracle(self, oracle: OracleName) -> None:
        """Raise `UnsoundCombination` for an oracle in front of which the strategy has no proof."""
        if oracle not in self.oracles:
            raise UnsoundCombination(
                f"selection {self.name} is proved for the {' and '.join(sorted(self.oracles))} oracle, not for {oracle}"
            )

    def check_query(
        self, X: NDArray[np.float32], candidates: NDArray[np.int64], model: LinearModel | None, n: int
    ) -> NDArray[np.int64]:
        rows = np.asarray(candidates, dtype=np.int64)
        if not (rows[1:] > rows[:-1]).all():
            rows = np.sort(rows)
        if n < 0:
            raise ValueError(f"n must be >= 0, got {n}")
        if rows.size and not (rows[0] >= 0 and rows[-1] < len(X)):
            raise ValueError(f"candidates must be rows of the {len(X)} there are")
        if (rows[1:] == rows[:-1]).any():
            raise ValueError("candidates must be distinct")
        if self.needs_model and model is None:
            raise ValueError(f"selection {self.name} needs a released model")
        return rows


class BlockwiseStrategy(QueryStrategy):
    """A strategy that decides a block of rows at a time, so that listed rows are but one kind of rows to it."""

    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        return self.choose(X, ListedRows(self.check_query(X, candidates, model, n)), model, n, rng)

    @abstractmethod
    def choose(
        self, X: NDArray[np.float32], rows: Rows, model: LinearModel | None, n: int, rng: RandomSource
    ) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class StrategyChoice(SelectionChoice):
    """Choice of questions: the parameters of a strategy, declared once.

    Attributes
    ----------
    order : str
        What a crowd project's managers read of the order in which texts are asked, where no page ranks them.
    """

    order: ClassVar[str] = _("The next round chooses among them.")

    @abstractmethod
    def strategy(self) -> QueryStrategy: ...

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, float]:
        """Divide what choosing leaves of the limit evenly over the planned releases, one where nobody says."""
        kept = 0.0
        if self.event(pool_size=2, picks=1).cost(adjacency="null").epsilon > 0:
            kept = SHARE_OF_ROUNDS * settings["pool_epsilon"]
        releases = settings.get("maximum_releases") or 1
        return {
            "training_epsilon": (settings["pool_epsilon"] - kept) / releases,
            "training_delta": settings["pool_delta"] / releases,
        }

    def event(self, *, pool_size: int, picks: int, series: Series = "opened", **circumstances: Any) -> Event:
        return self.strategy().event_for(pool_size=pool_size, picks=picks, series=series)


@runtime_checkable
class AsksBehindRandomness(Protocol):
    """A choice that asks otherwise where answers are randomised."""

    def behind_randomness(self, epsilon: float) -> QueryStrategy:
        """Return the strategy where answers are randomised at `epsilon`."""


def strategy_behind(choice: StrategyChoice, epsilon: float | None) -> QueryStrategy:
    """Return the strategy of a choice where answers are randomised at `epsilon`, or not at all."""
    if epsilon is not None and isinstance(choice, AsksBehindRandomness):
        return choice.behind_randomness(epsilon)
    return choice.strategy()
