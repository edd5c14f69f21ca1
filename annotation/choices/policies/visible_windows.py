"""Windows of a fixed number of records, of which everybody may know what was asked about."""

from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.policies.base import WindowPolicy
from annotation.choices.policies.windows import FixedWindows
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class VisibleWindows(WindowPolicy):
    """Windows of records; which of them were asked about is public."""

    name: ClassVar[str] = "flsw"
    label: ClassVar[str] = _("stream: windows of a fixed number of records, selection visible")

    def batches(self) -> FixedWindows:
        """Return windows of the declared length."""
        return FixedWindows(self.window_length)
