"""Limits on what one person answers and sees, and quiet hours."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any, ClassVar, Final

from annotation.choices.secrecy import BINDING_LIMITS, hides_selection
from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import gettext_noop as _

MOST: Final = 2**31 - 1
BINDS_RECORDS: Final = _(
    "Not where the choice is secret: one record would keep another from being answered before its time is up."
)


@dataclass(frozen=True)
class PersonLimits(FreeChoice):
    """Limits on one person; they are about collusion and rest, and none of them is a privacy budget."""

    kind: ClassVar[Kind] = Kind.LABELLING
    name: ClassVar[str] = "person_limits"
    label: ClassVar[str] = _("how much one person answers and sees")
    stays: ClassVar[bool] = False

    answers_per_person: int | None = parameter(
        None, at_least=1, at_most=MOST, label=_("Answers of one person"), help=_("Empty means without a limit.")
    )
    answers_per_day: int | None = parameter(
        None,
        at_least=1,
        at_most=MOST,
        label=_("Answers of one person a day"),
        help=_("A day of the site's time zone."),
    )
    encounter_limit: int | None = parameter(
        None,
        at_least=1,
        at_most=MOST,
        label=_("Contributors one person may see"),
        help=_("Against collusion: contributors, or texts where a gate stands between, that one annotator ever meets."),
    )
    quiet_from: time | None = parameter(
        None,
        label=_("Quiet from"),
        help=_("Between these times nothing is handed out, by the site's time zone."),
    )
    quiet_until: time | None = parameter(
        None, label=_("Quiet until"), help=_("A time before the first one is on the next morning.")
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse what binds one record to another in secret, half a span of hours, and one of no length.

        A secret choice is charged as if every record were answered, or not, because of itself. A person who stops at a
        limit answers one record instead of another, and the block or window closes without that other one.
        """
        broken: dict[str, str] = {}
        if hides_selection(settings):
            broken = {name: BINDS_RECORDS for name in BINDING_LIMITS if getattr(self, name) is not None}
        if (self.quiet_from is None) != (self.quiet_until is None):
            broken["quiet_until"] = _("Quiet hours need a beginning and an end.")
        elif self.quiet_from is not None and self.quiet_from == self.quiet_until:
            broken["quiet_until"] = _("Quiet hours end at another time than they begin.")
        return broken
