"""Batches ahead, updates per release, and retention of a stream."""

from dataclasses import dataclass
from typing import ClassVar, Final

from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import gettext_noop as _

STREAM: Final = ("stream",)


@dataclass(frozen=True)
class StreamPlan(FreeChoice):
    """What every stream says of the way it runs; a pool keeps the defaults."""

    kind: ClassVar[Kind] = Kind.STREAM
    name: ClassVar[str] = "stream_plan"
    label: ClassVar[str] = _("how a stream runs")
    # A stream pays once, whatever of this is chosen.
    stays: ClassVar[bool] = False

    windows_ahead: int = parameter(
        1,
        at_least=1,
        at_most=10_000,
        arrivals=STREAM,
        label=_("Batches that may wait for answers"),
        help=_("Beyond them, further records wait to be examined by a newer model."),
    )
    updates_per_release: int = parameter(
        1,
        at_least=1,
        at_most=1_000_000,
        arrivals=STREAM,
        label=_("Updates per release"),
        help=_("Releases cost nothing further."),
    )
    drop_unselected: bool = parameter(
        False,
        arrivals=STREAM,
        label=_("Keep no record that nobody is asked about"),
        help=_("It is gone once examined."),
    )
