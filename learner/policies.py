"""When the next update or training is due, decided from public counts alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray


class PoolSchedule(StrEnum):
    """The schedules that exist.

    PER_ROUND: whenever a fixed number of new labels has come in.
    DOUBLING: whenever labels have doubled since the last release, so that T releases need 2**(T-1) times the first's
    labels and an account that pays for every training lasts long.
    """

    PER_ROUND = "per_round"
    DOUBLING = "doubling"


def labels_for_next_release(policy: PoolSchedule, *, labels_at_last_release: int, labels_per_release: int) -> int:
    """Return how many labels in total make the next release due.

    Parameters
    ----------
    policy : PoolSchedule
        The schedule.
    labels_at_last_release : int
        Labels the last release was trained on, 0 where there is none.
    labels_per_release : int
        Labels of the first release and, per round, of every further one, >= 1.

    Raises
    ------
    ValueError
        If a count is out of range.
    """
    if labels_at_last_release < 0:
        raise ValueError(f"labels_at_last_release must be >= 0, got {labels_at_last_release}")
    if labels_per_release < 1:
        raise ValueError(f"labels_per_release must be >= 1, got {labels_per_release}")
    if PoolSchedule(policy) is PoolSchedule.DOUBLING:
        return max(labels_per_release, 2 * labels_at_last_release)
    return labels_at_last_release + labels_per_release


def labels_needed(
    policy: PoolSchedule, *, labels_now: int, labels_at_last_release: int, labels_per_release: int
) -> int:
    """Return how many more labels make the next release due, 0 where it is due already."""
    target = labels_for_next_release(
        policy, labels_at_last_release=labels_at_last_release, labels_per_release=labels_per_release
    )
    return max(0, target - labels_now)


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
        """Return the state as JSON values."""
        return {"next_slot": self.next_slot, "closed": self.closed, "open_slots": list(self.open_slots)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the state that `to_json` wrote."""
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
    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        """Return the slots after which batches close, up to `stop`, each as the first slot of the next batch."""


class FixedWindows(BatchPolicy):
    """FLSW: update after every `length` slots, with whatever was selected in them.

    Parameters
    ----------
    length : int
        Slots in a window, >= 1.
    denominator : int, optional
        Hide the selection: every window, even an empty one, makes a noisy update divided by this public number, so that
        neither counts nor times say anything. Labels that are not in when the window's update is due stay out.

    Raises
    ------
    ValueError
        If a number is below 1.

    References
    ----------
    .. [1] Ghassemi, Sarwate, Wright, "Differentially private online active learning with applications to
       anomaly detection", 2016, Algorithm 3 (whose empty windows do nothing, which shows).
    """

    schedule = "flsw"

    def __init__(self, length: int, *, denominator: int | None = None) -> None:
        if length < 1:
            raise ValueError(f"length must be >= 1, got {length}")
        if denominator is not None and denominator < 1:
            raise ValueError(f"denominator must be >= 1, got {denominator}")
        self.length = int(length)
        self.denominator = denominator

    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        return range((state.next_slot // self.length + 1) * self.length, stop + 1, self.length)


class ImmediateUpdates(FixedWindows):
    """Update after every selected record: windows of one slot, the baseline of the source."""

    def __init__(self) -> None:
        super().__init__(1)


class FixedBatches(BatchPolicy):
    """FLMB: update after every `length` selected records; the times of updates show.

    Parameters
    ----------
    length : int
        Records in a batch, >= 1; at least 50 where they feed noisy gradient steps.

    Raises
    ------
    ValueError
        If the length is below 1.

    References
    ----------
    .. [1] Ghassemi, Sarwate, Wright, "Differentially private online active learning with applications to
       anomaly detection", 2016, Algorithm 4.
    """

    schedule = "flmb"

    def __init__(self, length: int) -> None:
        if length < 1:
            raise ValueError(f"length must be >= 1, got {length}")
        self.length = int(length)

    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        first = self.length - len(state.open_slots) - 1
        return (int(slot) + 1 for slot in slots[first :: self.length])


class DoublingBlocks(BatchPolicy):
    """Close a block whenever the number of slots has doubled: disjoint blocks, each for one release.

    A release trained on its own block, regularised towards the one before, protects each record as if it were the only
    one; training on everything again would charge every release again.

    Parameters
    ----------
    first : int
        Slots of the first block, >= 1; the following ones have as many, twice as many, four times ...

    Raises
    ------
    ValueError
        If `first` is below 1.
    """

    schedule = "flsw"

    def __init__(self, first: int) -> None:
        if first < 1:
            raise ValueError(f"first must be >= 1, got {first}")
        self.first = int(first)

    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        end = self.first
        while end <= stop:
            if end > state.next_slot:
                yield end
            end *= 2


def policy_for(name: str, *, length: int | None, denominator: int | None = None) -> BatchPolicy:
    """Return the policy of a stream by the name that projects store.

    Parameters
    ----------
    name : {"immediate", "flmb", "flsw", "flsw_hidden", "doubling"}
        Which one.
    length : int or None
        Slots of a window or of the first block, or records of a batch, >= 1; 1 where nothing is said.
    denominator : int or None
        Of hidden windows.

    Raises
    ------
    ValueError
        If nothing has the name or a number is below 1.
    """
    if name == "immediate":
        return ImmediateUpdates()
    if name == "flmb":
        return FixedBatches(length or 1)
    if name == "doubling":
        return DoublingBlocks(length or 1)
    if name in ("flsw", "flsw_hidden"):
        return FixedWindows(length or 1, denominator=denominator)
    raise ValueError(f"no stream updates by {name!r}")
