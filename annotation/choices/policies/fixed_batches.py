"""Batches of a fixed number of questions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from annotation.choices.policies.base import WindowPolicy
from annotation.choices.policies.updates import BatchPolicy, BatchState
from privacy.wording import gettext_noop as _


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
    label: ClassVar[str] = _("stream: batches of a fixed number of questions")

    def batches(self) -> FixedBatches:
        return FixedBatches(self.window_length)
