"""Windows of a fixed number of records, of which nobody outside learns what was asked about."""

from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.policies.base import WindowPolicy
from annotation.choices.policies.windows import FixedWindows
from privacy.choices import parameter
from privacy.wording import gettext_noop as _


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
        """Return windows of the declared length that all make an update."""
        return FixedWindows(self.window_length, denominator=self.window_denominator)
