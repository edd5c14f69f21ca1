"""Hidden checks, review and the comparison of answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from annotation.choices.secrecy import hides_selection
from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import gettext_noop as _


def no_share_in_front_of(settings: Mapping[str, Any]) -> str:
    """Say which rule a share of drawn reviews would break under settings; nothing where it breaks none."""
    if settings.get("oracle") == "crowd":
        return _("Not in front of a crowd: its answers stand, but where they have no majority.")
    if hides_selection(settings):
        return _(
            "Not where the choice of questions is secret: a block or window closes without what nobody reviewed in "
            "time, so one record could keep a reviewer from another."
        )
    if settings.get("arrival") == "stream":
        return _("Not in a stream: each answer is learned from once, in its turn, and waits for nobody.")
    return ""


@dataclass(frozen=True)
class QualityChecks(FreeChoice):
    """Questions whose answer is known, what follows from answers to them, and what compares all answers."""

    kind: ClassVar[Kind] = Kind.LABELLING
    name: ClassVar[str] = "quality_checks"
    label: ClassVar[str] = _("how answers are checked")
    stays: ClassVar[bool] = False

    gold_share: float = parameter(
        0.0,
        at_least=0,
        at_most=1,
        label=_("Share of questions that are hidden checks"),
        help=_("Questions with known answers among the others. 0 turns checks off."),
    )
    gold_minimum: int = parameter(
        10,
        at_least=1,
        at_most=1000,
        label=_("Checks before anybody is judged"),
        help=_("Ten or more are fair."),
    )
    gold_warn_below: float | None = parameter(
        None,
        at_least=0,
        at_most=1,
        label=_("Warn below this share right"),
        help=_("Whoever is below is told so, and goes on."),
    )
    gold_pause_below: float | None = parameter(
        None,
        at_least=0,
        at_most=1,
        label=_("Pause below this share right"),
        help=_("Somebody is paused once even the upper end of the 95 % interval lies below."),
    )
    aggregation: str = parameter(
        "majority",
        options={
            "majority": _("majority: every answer counts the same"),
            "dawid_skene": _("Dawid-Skene: learns which classes each person mixes up"),
            "mace": _("MACE: learns who guesses"),
        },
        label=_("Compare answers by"),
        help=_(
            "For your eyes and exports. Trainings always take the majority of each question's own answers: with a "
            "model one answer would move many labels, and the privacy budget pays for one."
        ),
    )
    reviewed: str = parameter(
        "disputed",
        options={
            "disputed": _("answers without a majority"),
            "differing": _("answers that are not all alike"),
            "all": _("all answers"),
        },
        label=_("What is reviewed"),
        help=_("Until a training begins, which takes what is agreed on as it stands."),
    )

    review_share: float = parameter(
        0.0,
        at_least=0,
        at_most=1,
        label=_("Share of agreed questions that a reviewer decides first"),
        help=_(
            "A coin draws them when they are opened, whatever is answered. Each counts once a reviewer has decided it. "
            "0 draws none."
        ),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if self.reviewed != "disputed" and settings.get("oracle") == "crowd":
            return {"reviewed": _("Not in front of a crowd: its answers stand, but where they have no majority.")}
        if self.review_share and (rule := no_share_in_front_of(settings)):
            return {"review_share": rule}
        warn, pause = self.gold_warn_below, self.gold_pause_below
        if warn is not None and pause is not None and pause > warn:
            return {"gold_pause_below": _("Pause below the share that warns, or at it.")}
        return {}
