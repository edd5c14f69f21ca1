"""Windows of a fixed number of records, of which nobody outside learns what was asked about."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from annotation.choices.policies.base import WindowPolicy
from annotation.choices.policies.updates import BatchPolicy, BatchState
from privacy.choices import parameter
from privacy.wording import gettext_noop as _


class FixedWindows(BatchPolicy):
    """FLSW: update after every `length` slots, with whatever was selected in them, which stays hidden.

    Parameters
    ----------
    length : int
        Slots in a window, >= 1.
    denominator : int
        Every window, even an empty one, makes a noisy update divided by this public number, so that neither counts nor
        times say anything. Labels that are not in when the window's update is due stay out. At least 1.

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
    """Windows of records; which of them were asked about stays secret."""

    name: ClassVar[str] = "flsw_hidden"
    label: ClassVar[str] = _("stream: windows of a fixed number of records, selection hidden")
    hides_selection: ClassVar[bool] = True

    window_denominator: int = parameter(
        None,
        at_least=1,
        at_most=2**31 - 1,
        label=_("Hidden windows: denominator"),
        help=_("About as many as a window selects; public, so that the true number stays hidden."),
        rule=_("Hidden windows divide by a fixed public number: dividing by how many were selected would tell it."),
    )

    def batches(self) -> FixedWindows:
        return FixedWindows(self.window_length, denominator=self.window_denominator)
