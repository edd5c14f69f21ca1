"""Labels per release, and the most releases."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class ReleasePlan(FreeChoice):
    kind: ClassVar[Kind] = Kind.RELEASES
    name: ClassVar[str] = "release_plan"
    label: ClassVar[str] = _("when a model is released")
    # Each release pays for itself, and those of a stream cost nothing further.
    stays: ClassVar[bool] = False

    labels_per_release: int = parameter(
        40,
        at_least=1,
        at_most=1_000_000,
        label=_("New labels per release"),
        help=_(
            "A model is trained when so many questions are done, agreed on or not; larger numbers make fewer, better "
            "models."
        ),
    )
    maximum_releases: int | None = parameter(
        None,
        at_least=1,
        at_most=2**31 - 1,
        label=_("At most this many releases"),
        help=_("Empty: as many as the budget pays for."),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if settings.get("arrival", "pool") == "stream" or self.labels_per_release > 1:
            return {}
        return {"labels_per_release": as_message("Must be at least {bound:g}, got {got}.", bound=2, got=1)}
