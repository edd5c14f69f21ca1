"""Plans that cost nothing: rounds, questions, releases, streams, money, limits on people, checks, suggestions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from typing import Any, ClassVar, Final

from annotation.choices.rules import BINDING_LIMITS, hides_selection
from privacy.choices import FreeChoice, Kind, Sound, parameter
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class QuestionPlan(FreeChoice):
    kind: ClassVar[Kind] = Kind.LABELLING
    name: ClassVar[str] = "question_plan"
    label: ClassVar[str] = "how questions are asked"
    stays: ClassVar[bool] = False

    round_size: int = parameter(
        40,
        at_least=1,
        at_most=100_000,
        label=_("Questions per round"),
        help=_("Asked before records are ranked again."),
    )
    overlap: int = parameter(
        1,
        at_least=1,
        at_most=25,
        label=_("People per question"),
    )
    overlap_limit: int | None = parameter(
        None,
        at_least=1,
        at_most=50,
        label=_("On disagreement, ask up to this many people"),
        help=_("Empty: a manager decides at once."),
    )
    lease_seconds: int = parameter(
        600,
        at_least=30,
        at_most=86_400,
        unit="seconds",
        label=_("Seconds for a question"),
        help=_("Then the question goes to another person."),
    )
    confirm_answers: bool = parameter(
        False,
        label=_("Answers are confirmed"),
    )
    skips_to_set_aside: int = parameter(
        3,
        at_least=1,
        at_most=1000,
        label=_("Skips that set a question aside"),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if self.overlap_limit is None:
            return {}
        if settings.get("oracle") == "crowd":
            rule = _("Not for crowds: annotators would learn that answers differ.")
            return {"overlap_limit": rule}
        if self.overlap_limit < self.overlap:
            return {"overlap_limit": _("At least the number of people per question.")}
        return {}


@dataclass(frozen=True)
class ReleasePlan(FreeChoice):
    kind: ClassVar[Kind] = Kind.RELEASES
    name: ClassVar[str] = "release_plan"
    label: ClassVar[str] = "when a model is released"
    # Each release pays for itself, and those of a stream cost nothing further.
    stays: ClassVar[bool] = False

    labels_per_release: int = parameter(
        40,
        at_least=1,
        at_most=1_000_000,
        label=_("New labels per release"),
        help=_("Larger numbers make fewer, better models."),
    )
    maximum_releases: int | None = parameter(
        None,
        at_least=1,
        at_most=2**31 - 1,
        label=_("At most this many releases"),
        help=_("Empty: no limit."),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if settings.get("arrival", "pool") == "stream" or self.labels_per_release > 1:
            return {}
        return {"labels_per_release": as_message("Must be at least {bound:g}, got {got}.", bound=2, got=1)}


STREAM: Final = ("stream",)


@dataclass(frozen=True)
class StreamPlan(FreeChoice):
    """Pace of a stream; a pool keeps the defaults."""

    kind: ClassVar[Kind] = Kind.STREAM
    name: ClassVar[str] = "stream_plan"
    label: ClassVar[str] = "how a stream runs"
    # A stream pays once, whatever of this is chosen.
    stays: ClassVar[bool] = False

    windows_ahead: int = parameter(
        1,
        at_least=1,
        at_most=10_000,
        arrivals=STREAM,
        label=_("Batches waiting for answers at most"),
    )
    updates_per_release: int = parameter(
        1,
        at_least=1,
        at_most=1_000_000,
        arrivals=STREAM,
        label=_("Updates per release"),
    )
    drop_unselected: bool = parameter(
        False,
        arrivals=STREAM,
        label=_("Delete records that are not asked about"),
    )


MOST_OF_A_SAMPLE: Final = _("No limit with secret selection: reaching it would reveal the size of the sample.")
THREE_LETTERS: Final = _("Three letters, like NOK or EUR.")


@dataclass(frozen=True)
class AnswerBudget(FreeChoice):
    """The most answers, the price of one and the most money; none of it is a privacy budget."""

    kind: ClassVar[Kind] = Kind.BUDGET
    name: ClassVar[str] = "answer_budget"
    label: ClassVar[str] = "what answers may cost"
    stays: ClassVar[bool] = False

    labels_limit: int | None = parameter(None, at_least=0, at_most=2**31 - 1, label=_("Answers at most"))
    price_per_label: Decimal | None = parameter(
        None,
        above=0,
        at_most=999_999,
        decimals=4,
        label=_("Price of an answer"),
    )
    money_limit: Decimal | None = parameter(
        None,
        at_least=0,
        at_most=9_999_999_999,
        decimals=2,
        label=_("Spending limit"),
    )
    currency: str = parameter("", pattern="[A-Za-z]{3}", label=_("Currency"), help=THREE_LETTERS, rule=THREE_LETTERS)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        broken: dict[str, str] = {}
        if hides_selection(settings) and not (self.labels_limit is None and self.money_limit is None):
            broken["labels_limit"] = MOST_OF_A_SAMPLE
        if self.money_limit is not None and self.price_per_label is None:
            broken["price_per_label"] = _("A limit in money needs a price per answer.")
        return broken


MOST: Final = 2**31 - 1
BINDS_RECORDS: Final = _("Not with secret selection: one record could delay another.")


@dataclass(frozen=True)
class PersonLimits(FreeChoice):
    """Limits on one person; they are about collusion and rest, and none of them is a privacy budget."""

    kind: ClassVar[Kind] = Kind.LABELLING
    name: ClassVar[str] = "person_limits"
    label: ClassVar[str] = "how much one person answers and sees"
    stays: ClassVar[bool] = False

    answers_per_person: int | None = parameter(
        None, at_least=1, at_most=MOST, label=_("Answers of one person"), help=_("Empty: no limit.")
    )
    answers_per_day: int | None = parameter(None, at_least=1, at_most=MOST, label=_("Answers of one person a day"))
    encounter_limit: int | None = parameter(
        None,
        at_least=1,
        at_most=MOST,
        label=_("Contributors one annotator may see"),
        help=_("Limits collusion."),
    )
    quiet_from: time | None = parameter(
        None, label=_("Quiet from"), help=_("No questions until the end, in the site's time zone.")
    )
    quiet_until: time | None = parameter(None, label=_("Quiet until"))

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse what binds one record to another in secret, half a span of hours, and one of no length.

        A secret choice is charged as if every record were answered, or not, because of itself. A person who stops at a
        limit answers one record instead of another, and the block or window closes without that other one.
        """
        broken: dict[str, str] = {}
        if hides_selection(settings):
            broken = {name: BINDS_RECORDS for name in BINDING_LIMITS if getattr(self, name) is not None}
        times = {self.quiet_from, self.quiet_until}
        if times != {None} and (None in times or len(times) == 1):
            broken["quiet_until"] = _("Quiet hours need a beginning and a different end.")
        return broken


def no_share_in_front_of(settings: Mapping[str, Any]) -> str:
    """Say which rule a share of drawn reviews would break under settings; nothing where it breaks none."""
    if settings.get("oracle") == "crowd":
        return _("Not for crowds, except for answers without a majority.")
    if hides_selection(settings):
        return _("Not with secret selection: one record could delay another.")
    if settings.get("arrival") == "stream":
        return _("Not for streams.")
    return ""


@dataclass(frozen=True)
class QualityChecks(FreeChoice):
    """Questions whose answer is known, what follows from answers to them, and what compares all answers."""

    kind: ClassVar[Kind] = Kind.LABELLING
    name: ClassVar[str] = "quality_checks"
    label: ClassVar[str] = "how answers are checked"
    stays: ClassVar[bool] = False

    gold_share: float = parameter(
        0.0,
        at_least=0,
        at_most=1,
        label=_("Share of questions that are hidden checks"),
        help=_("0: none."),
    )
    gold_minimum: int = parameter(10, at_least=1, at_most=1000, label=_("Hidden checks before judging"))
    gold_warn_below: float | None = parameter(
        None,
        at_least=0,
        at_most=1,
        label=_("Warn below this share of right answers"),
    )
    gold_pause_below: float | None = parameter(
        None,
        at_least=0,
        at_most=1,
        label=_("Pause below this share of right answers"),
        help=_("The whole 95 % interval must lie below."),
    )
    aggregation: str = parameter(
        "majority",
        options={
            "majority": _("majority: every answer counts the same"),
            "dawid_skene": _("Dawid-Skene: learns which classes each person mixes up"),
            "mace": _("MACE: learns who guesses"),
        },
        label=_("Compare answers by"),
        help=_("For review and exports; training uses the majority."),
    )
    reviewed: str = parameter(
        "disputed",
        options={
            "disputed": _("answers without a majority"),
            "differing": _("disagreeing answers"),
            "all": _("all answers"),
        },
        label=_("Reviewed answers"),
    )

    review_share: float = parameter(
        0.0,
        at_least=0,
        at_most=1,
        label=_("Share of agreed questions to review"),
        help=_("0: none."),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if self.reviewed != "disputed" and settings.get("oracle") == "crowd":
            return {"reviewed": _("Not for crowds, except for answers without a majority.")}
        if self.review_share and (rule := no_share_in_front_of(settings)):
            return {"review_share": rule}
        warn, pause = self.gold_warn_below, self.gold_pause_below
        if warn is not None and pause is not None and pause > warn:
            return {"gold_pause_below": _("Pause at or below the warning share.")}
        return {}


@dataclass(frozen=True)
class ReleasedModelSuggests(FreeChoice):
    """The class the newest released model would give stands beside the question, except where a coin leaves it out."""

    kind: ClassVar[Kind] = Kind.SUGGESTIONS
    name: ClassVar[str] = "released_model"
    label: ClassVar[str] = _("the newest model's class and its probability")
    help: ClassVar[str] = _("Free: uses only released models.")
    sound: ClassVar[Sound] = Sound(
        arrivals=("pool",),
        why_not={"stream": _("Not for streams.")},
    )
    # It reads nothing and changes no price, so it may come and go.
    stays: ClassVar[bool] = False

    blind_share: float = parameter(
        0.2,
        at_least=0.05,
        at_most=0.95,
        label=_("Share of questions without a suggestion"),
        help=_("Drawn at random, to measure saved time and bias."),
    )


def suggests(settings: Any) -> ReleasedModelSuggests | None:
    if settings.get(Kind.SUGGESTIONS.key) != ReleasedModelSuggests.name:
        return None
    return ReleasedModelSuggests.of(settings)
