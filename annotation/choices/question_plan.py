"""Size of rounds, people per question, and leases."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class QuestionPlan(FreeChoice):
    kind: ClassVar[Kind] = Kind.LABELLING
    name: ClassVar[str] = "question_plan"
    label: ClassVar[str] = _("how questions are asked")
    stays: ClassVar[bool] = False

    round_size: int = parameter(
        40,
        at_least=1,
        at_most=100_000,
        label=_("Questions per round"),
        help=_("Asked before anything is ranked anew; larger rounds follow the model less closely."),
    )
    overlap: int = parameter(
        1,
        at_least=1,
        at_most=25,
        label=_("People per question"),
        help=_("More people agree on better answers and cost as many times the work."),
    )
    overlap_limit: int | None = parameter(
        None,
        at_least=1,
        at_most=50,
        label=_("Where answers disagree, ask up to so many people"),
        help=_("Empty leaves it at once to a manager."),
    )
    lease_seconds: int = parameter(
        600,
        at_least=30,
        at_most=86_400,
        unit="seconds",
        label=_("Seconds for a question"),
        help=_("After that, a question nobody answered goes to somebody else."),
    )
    confirm_answers: bool = parameter(
        False,
        label=_("Answers are confirmed"),
        help=_("Choosing a class is not enough: a second key or button stores it."),
    )
    skips_to_set_aside: int = parameter(
        3,
        at_least=1,
        at_most=1000,
        label=_("Skips that set a question aside"),
        help=_("It leaves the queue, and you find it under Reports. Fewer are enough if all did."),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if self.overlap_limit is None:
            return {}
        if settings.get("oracle") == "crowd":
            rule = _("Not in front of a crowd: whoever is asked as one more would know that the others disagreed.")
            return {"overlap_limit": rule}
        if self.overlap_limit < self.overlap:
            return {"overlap_limit": _("At least as many as are asked at once.")}
        return {}
