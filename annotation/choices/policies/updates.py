"""Batches of a stream's labels, decided from public counts alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Batch:
    """What one update learns from.

    Attributes
    ----------
    number : int
        Its place among the batches, from 1.
    slots : tuple of int
        Slots whose records were selected, in order; possibly none where selection is hidden.
    end : int
        The first slot after it.
    denominator : int or None
        The fixed public number a hidden sum is divided by; None where the number of labels is visible and
        divides.
    """

    number: int
    slots: tuple[int, ...]
    end: int
    denominator: int | None


@dataclass(frozen=True, slots=True)
class BatchState:
    """Where a stream stands between two batches; everything a crash must not lose.

    Attributes
    ----------
    next_slot : int
        The first slot that was not examined: all before it were, each once.
    closed : int
        Batches closed so far.
    open_slots : tuple of int
        Selected slots of the batch that is still open.
    """

    next_slot: int = 0
    closed: int = 0
    open_slots: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"next_slot": self.next_slot, "closed": self.closed, "open_slots": list(self.open_slots)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(int(stored["next_slot"]), int(stored["closed"]), tuple(int(slot) for slot in stored["open_slots"]))


class BatchPolicy(ABC):
    """When the labels of a stream become an update: a function of slots and selections, never of labels.

    Attributes
    ----------
    schedule : {"flsw", "flmb"}
        Whether updates come at fixed slots or after a fixed number of selections, whose times show.
    denominator : int or None
        Set where selection is hidden: then every window makes an update and each divides by it.
    """

    schedule: ClassVar[Literal["flsw", "flmb"]]
    denominator: int | None = None

    @property
    def selection_visible(self) -> bool:
        """Whether counts, times or empty windows can be seen from outside."""
        return self.denominator is None

    def advance(self, state: BatchState, selected: NDArray[np.bool_]) -> tuple[BatchState, list[Batch]]:
        """Take the decisions on the next slots and return the new state and the batches they close.

        Parameters
        ----------
        state : BatchState
            Where the stream stands.
        selected : ndarray of bool, shape (n,)
            The decisions on slots ``state.next_slot`` and following.
        """
        batches: list[Batch] = []
        slots = state.next_slot + np.flatnonzero(selected)
        open_slots, closed, taken = state.open_slots, state.closed, 0
        for end in self._ends(state, slots, state.next_slot + len(selected)):
            upto = int(np.searchsorted(slots, end))
            open_slots += tuple(slots[taken:upto].tolist())
            if open_slots or not self.selection_visible:
                closed += 1
                batches.append(Batch(closed, open_slots, end, self.denominator))
            open_slots, taken = (), upto
        open_slots += tuple(slots[taken:].tolist())
        return BatchState(state.next_slot + len(selected), closed, open_slots), batches

    @abstractmethod
    def asked_at(self, rate: float) -> int:
        """Return about how many are asked in the first batch, where each record is asked about at this rate."""

    def slots_at(self, rate: float) -> int | None:
        """Return about how many slots one more batch takes at this rate; None where nobody can say beforehand."""
        return None

    @abstractmethod
    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        """Return the slots after which batches close, up to `stop`, each as the first slot of the next batch."""
