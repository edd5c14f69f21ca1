"""Windows of a fixed number of records, whose selection may be hidden."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from annotation.choices.policies.updates import BatchPolicy, BatchState


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

    def asked_at(self, rate: float) -> int:
        """Return so large a share of a window."""
        return asked_of(self.length, rate)

    def slots_at(self, rate: float) -> int | None:
        """Return the length of a window."""
        return self.length

    def _ends(self, state: BatchState, slots: NDArray[np.int64], stop: int) -> Iterable[int]:
        return range((state.next_slot // self.length + 1) * self.length, stop + 1, self.length)


def asked_of(records: int, rate: float) -> int:
    """Return how many of so many records are asked about at a rate, about; at least one."""
    return max(1, round(records * rate))
