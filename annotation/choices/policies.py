"""Update policies: when answers become an update or a training."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol, Self, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from annotation.choices.catalogue import chosen_of
from privacy.choices import FreeChoice, Kind, Sound, parameter
from privacy.wording import gettext_noop as _


@dataclass(frozen=True, slots=True)
class Batch:
    """Slots of one update.

    `slots` are the selected ones in order, possibly none where selection is hidden; `end` is the first slot after it.
    A hidden sum is divided by the fixed public `denominator`, a visible one by the number of labels.
    """

    number: int
    slots: tuple[int, ...]
    end: int
    denominator: int | None


@dataclass(frozen=True, slots=True)
class BatchState:
    """State of a stream between two batches; all slots before `next_slot` were examined, each once."""

    next_slot: int = 0
    closed: int = 0
    open_slots: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"next_slot": self.next_slot, "closed": self.closed, "open_slots": list(self.open_slots)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(int(stored["next_slot"]), int(stored["closed"]), tuple(int(slot) for slot in stored["open_slots"]))


class BatchPolicy(ABC):
    """Rule that turns labels of a stream into updates: a function of slots and selections, never of labels.

    `schedule` says whether updates come at fixed slots or after a fixed number of selections, whose times show. A
    `denominator` is set where selection is hidden: then every window makes an update and each divides by it.
    """

    schedule: ClassVar[Literal["flsw", "flmb"]]
    denominator: int | None = None

    @property
    def selection_visible(self) -> bool:
        """True if counts, times or empty windows can be seen from outside."""
        return self.denominator is None

    def advance(self, state: BatchState, selected: NDArray[np.bool_]) -> tuple[BatchState, list[Batch]]:
        """Take the decisions on the slots from ``state.next_slot`` on; return the state and the batches they close."""
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


STREAM: Final = ("stream",)
LONGEST_WINDOW: Final = 10_000_000
NO_ROUNDS: Final = _("A pool trains per round, a stream by windows or batches.")
NO_WINDOWS: Final = _("A pool trains per round, a stream by windows or batches.")
SHOWS_SELECTION: Final = _("Only windows can hide the selection: the time of a batch shows that it is full.")
OF_STREAMS: Final = Sound(oracles=("trusted",), arrivals=STREAM, why_not={"pool": NO_WINDOWS, "crowd": NO_WINDOWS})


@dataclass(frozen=True)
class PolicyChoice(FreeChoice):
    kind: ClassVar[Kind] = Kind.POLICY
    # Each training of a pool pays for itself; of a stream everything stays.
    stays: ClassVar[bool] = False
    hides_selection: ClassVar[bool] = False

    @final
    def labels_for_next_release(self, *, labels_at_last_release: int, labels_per_release: int) -> int:
        if not isinstance(self, TrainsPools):
            raise ValueError(f"no pool trains by {self.name!r}")
        if labels_at_last_release < 0:
            raise ValueError(f"labels_at_last_release must be >= 0, got {labels_at_last_release}")
        if labels_per_release < 1:
            raise ValueError(f"labels_per_release must be >= 1, got {labels_per_release}")
        return self.labels_due(labels_at_last_release, labels_per_release)

    @final
    def labels_needed(self, *, labels_now: int, labels_at_last_release: int, labels_per_release: int) -> int:
        target = self.labels_for_next_release(
            labels_at_last_release=labels_at_last_release, labels_per_release=labels_per_release
        )
        return max(0, target - labels_now)

    def batches(self) -> BatchPolicy:
        raise ValueError(f"no stream updates by {self.name!r}")


@runtime_checkable
class TrainsPools(Protocol):
    """A policy by which a pool trains."""

    def labels_due(self, last: int, each: int) -> int:
        """Return how many labels in total make the next release due, `last` of them in the release before."""


@dataclass(frozen=True)
class WindowPolicy(PolicyChoice):
    sound: ClassVar[Sound] = OF_STREAMS

    window_length: int = parameter(
        None,
        at_least=1,
        at_most=LONGEST_WINDOW,
        label=_("Window or batch"),
        help=_("Records of a window, or answers of a batch (at least 50)."),
    )
    window_hours: int = parameter(
        24,
        at_least=1,
        at_most=10_000,
        arrivals=STREAM,
        label=_("Hours to answer"),
        help=_("The update comes then, whatever is answered."),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        declared = {each.name for each in self.parameters()}
        if "window_denominator" not in declared and settings.get("window_denominator") is not None:
            return {"window_denominator": SHOWS_SELECTION}
        return {}


class FixedBatches(BatchPolicy):
    """FLMB: update after every `length` selected records; the times of updates show.

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

    def asked_at(self, rate: float) -> int:
        return self.length

    def slots_at(self, rate: float) -> int:
        return math.ceil(self.length / rate)

    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        first = self.length - len(state.open_slots) - 1
        return (int(slot) + 1 for slot in slots[first :: self.length])


@dataclass(frozen=True)
class Batches(WindowPolicy):
    name: ClassVar[str] = "flmb"
    label: ClassVar[str] = _("stream: batches of questions")

    def batches(self) -> FixedBatches:
        return FixedBatches(self.window_length)


class FixedWindows(BatchPolicy):
    """FLSW: update after every `length` slots, with whatever was selected in them, which stays hidden.

    Every window, even an empty one, makes a noisy update divided by the public `denominator`, so that neither counts
    nor times say anything. Labels that are not in when the window's update is due stay out.

    References
    ----------
    .. [1] Ghassemi, Sarwate, Wright, "Differentially private online active learning with applications to
       anomaly detection", 2016, Algorithm 3 (whose empty windows do nothing, which shows).
    """

    schedule = "flsw"

    def __init__(self, length: int, *, denominator: int) -> None:
        for name, number in (("length", length), ("denominator", denominator)):
            if number < 1:
                raise ValueError(f"{name} must be >= 1, got {number}")
        self.length = int(length)
        self.denominator = int(denominator)

    def asked_at(self, rate: float) -> int:
        return max(1, round(self.length * rate))

    def slots_at(self, rate: float) -> int | None:
        return self.length

    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        return range((state.next_slot // self.length + 1) * self.length, stop + 1, self.length)


@dataclass(frozen=True)
class HiddenWindows(WindowPolicy):
    name: ClassVar[str] = "flsw_hidden"
    label: ClassVar[str] = _("stream: windows of records, selection hidden")
    hides_selection: ClassVar[bool] = True

    window_denominator: int = parameter(
        None,
        at_least=1,
        at_most=2**31 - 1,
        label=_("Hidden windows: denominator"),
        help=_("About as many as a window selects; public."),
        rule=_("Hidden windows divide by a fixed public number; the true one is secret."),
    )

    def batches(self) -> FixedWindows:
        return FixedWindows(self.window_length, denominator=self.window_denominator)


@dataclass(frozen=True)
class PerRound(PolicyChoice):
    name: ClassVar[str] = "per_round"
    label: ClassVar[str] = _("pool: after a number of new labels")
    sound: ClassVar[Sound] = Sound(arrivals=("pool",), why_not={"stream": NO_ROUNDS})

    def labels_due(self, last: int, each: int) -> int:
        return last + each


POLICIES: tuple[type[PolicyChoice], ...] = (PerRound, HiddenWindows, Batches)


def chosen_policy(settings: Mapping[str, Any]) -> type[PolicyChoice] | None:
    found = chosen_of(Kind.POLICY, {Kind.POLICY.key: PerRound.name, **settings})
    return found if found is not None and issubclass(found, PolicyChoice) else None


def policy_choice_of(settings: Mapping[str, Any]) -> PolicyChoice:
    found = chosen_policy(settings)
    if found is None:
        raise ValueError(f"nothing is learned by {settings.get(Kind.POLICY.key)!r}")
    return found.of(settings)


def labels_of_first_model(settings: Mapping[str, Any]) -> int:
    policy, each = policy_choice_of(settings), settings["labels_per_release"]
    return policy.labels_needed(labels_now=0, labels_at_last_release=0, labels_per_release=each)


def policy_hides_selection(settings: Mapping[str, Any]) -> bool:
    policy = chosen_policy(settings)
    return policy is not None and policy.hides_selection
