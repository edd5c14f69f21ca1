"""Plans that cost nothing: rounds, questions, releases, streams, money, limits on people, checks, suggestions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from typing import Any, ClassVar, Final

from annotation.choices.rules import BINDING_LIMITS, hides_selection
from annotation.choices.selections import asks_in_secret
from privacy.choices import FreeChoice, Kind, Sound, parameter
from privacy.wording import as_message
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


STREAM: Final = ("stream",)


@dataclass(frozen=True)
class StreamPlan(FreeChoice):
    """Pace of a stream; a pool keeps the defaults."""

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


MOST_OF_A_SAMPLE: Final = _("How many a secret sample asks is secret, and stopping at a limit would tell it.")
MOST_LABELS_LOST: Final = _("Stopping at a limit would tell how many records a hidden window selected.")
THREE_LETTERS: Final = _("Three letters, like NOK or EUR.")


@dataclass(frozen=True)
class AnswerBudget(FreeChoice):
    """The most answers, the price of one and the most money; none of it is a privacy budget."""

    kind: ClassVar[Kind] = Kind.BUDGET
    name: ClassVar[str] = "answer_budget"
    label: ClassVar[str] = _("what answers may cost")
    stays: ClassVar[bool] = False

    labels_limit: int | None = parameter(
        None, at_least=0, at_most=2**31 - 1, label=_("Answers at most"), help=_("Of all people together.")
    )
    price_per_label: Decimal | None = parameter(
        None,
        above=0,
        at_most=999_999,
        decimals=4,
        label=_("Price of an answer"),
        help=_("What accepted answers earn, and what a limit in money counts with."),
    )
    money_limit: Decimal | None = parameter(
        None,
        at_least=0,
        at_most=9_999_999_999,
        decimals=2,
        label=_("Money at most"),
        help=_("Nothing further is asked that would cost more; it needs a price."),
    )
    currency: str = parameter("", pattern="[A-Za-z]{3}", label=_("Currency"), help=THREE_LETTERS, rule=THREE_LETTERS)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        broken: dict[str, str] = {}
        if hides_selection(settings) and not (self.labels_limit is None and self.money_limit is None):
            broken["labels_limit"] = MOST_OF_A_SAMPLE if asks_in_secret(settings) else MOST_LABELS_LOST
        if self.money_limit is not None and self.price_per_label is None:
            broken["price_per_label"] = _("A limit in money needs the price of an answer.")
        return broken


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
        None, at_least=1, at_most=MOST, label=_("Answers of one person a day"), help=_("A day of the site's time zone.")
    )
    encounter_limit: int | None = parameter(
        None,
        at_least=1,
        at_most=MOST,
        label=_("Contributors one person may see"),
        help=_("Against collusion: contributors, or texts where a gate stands between, that one annotator ever meets."),
    )
    quiet_from: time | None = parameter(
        None, label=_("Quiet from"), help=_("Between these times nothing is handed out, by the site's time zone.")
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
        10, at_least=1, at_most=1000, label=_("Checks before anybody is judged"), help=_("Ten or more are fair.")
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


@dataclass(frozen=True)
class ReleasedModelSuggests(FreeChoice):
    """The class the newest released model would give stands beside the question, except where a coin leaves it out."""

    kind: ClassVar[Kind] = Kind.SUGGESTIONS
    name: ClassVar[str] = "released_model"
    label: ClassVar[str] = _("what the newest released model takes it for, with how sure it is")
    help: ClassVar[str] = _("Made of a released model and of what annotators see anyway, so it costs nothing.")
    sound: ClassVar[Sound] = Sound(
        arrivals=("pool",),
        why_not={"stream": _("A stream asks before it learns; where its model guesses, annotators confirm that.")},
    )
    # It reads nothing and changes no price, so it may come and go.
    stays: ClassVar[bool] = False

    blind_share: float = parameter(
        0.2,
        at_least=0.05,
        at_most=0.95,
        label=_("Share of questions without a suggestion"),
        help=_(
            "Chosen by coins. Only beside these can be measured what suggestions save in time, and how far they draw "
            "answers towards the model."
        ),
    )


def suggests(settings: Any) -> ReleasedModelSuggests | None:
    if settings.get(Kind.SUGGESTIONS.key) != ReleasedModelSuggests.name:
        return None
    return ReleasedModelSuggests.of(settings)
