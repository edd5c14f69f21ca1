"""An update after every record that was asked about."""

import math
from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.policies.base import OF_STREAMS, StreamPolicy
from annotation.choices.policies.windows import FixedWindows
from privacy.choices import Sound
from privacy.wording import gettext_noop as _


class ImmediateUpdates(FixedWindows):
    """Update after every selected record: windows of one slot, the baseline of the source."""

    def __init__(self) -> None:
        super().__init__(1)

    def slots_at(self, rate: float) -> int:
        """Return how many slots lie between two selected records."""
        return math.ceil(1 / rate)


@dataclass(frozen=True)
class Immediate(StreamPolicy):
    """After every answer."""

    name: ClassVar[str] = "immediate"
    label: ClassVar[str] = _("stream: after every record that was asked about")
    sound: ClassVar[Sound] = OF_STREAMS
    by_answer: ClassVar[bool] = True

    def batches(self) -> ImmediateUpdates:
        """Return windows of one record."""
        return ImmediateUpdates()
