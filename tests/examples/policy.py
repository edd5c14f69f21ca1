"""Update policy whose blocks grow: when a stream updates and a pool trains."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from annotation.choices.policies import LONGEST_WINDOW, STREAM, BatchPolicy, BatchState, WindowPolicy
from privacy.choices import Sound, parameter


class GrowingBlocks(BatchPolicy):
    """Blocks that end at `first` slots, at `growth` times as many, and so on."""

    schedule = "flsw"

    def __init__(self, first: int, growth: int) -> None:
        self.first, self.growth = first, growth

    def asked_at(self, rate: float) -> int:
        return max(1, round(self.first * rate))

    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        end = self.first
        while end <= stop:
            if end > state.next_slot:
                yield end
            end *= self.growth


@dataclass(frozen=True)
class Growing(WindowPolicy):
    """What a project chooses of it."""

    name: ClassVar[str] = "growing"
    label: ClassVar[str] = "whenever there is several times as much"
    sound: ClassVar[Sound] = Sound()

    growth: int = parameter(
        3,
        at_least=2,
        at_most=9,
        label="Times as much",
        help="Of labels, or of records.",
        rule="From 2 to 9, not {got}.",
    )
    window_length: int | None = parameter(  # type: ignore[assignment]  # a pool has none
        None, at_least=1, at_most=LONGEST_WINDOW, arrivals=STREAM, label="Window or batch", help="Of the first block."
    )

    def labels_due(self, last: int, each: int) -> int:
        return max(each, self.growth * last)

    def batches(self) -> GrowingBlocks:
        return GrowingBlocks(self.window_length or 1, self.growth)
