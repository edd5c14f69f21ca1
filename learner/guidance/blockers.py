"""Who is there to answer the open questions, and why nobody does; and what a manager can do about a project."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import Exists, Min, OuterRef, Q, QuerySet, TextChoices
from django.utils.translation import gettext_lazy as _

from annotation import selectors
from annotation.models import (
    Assignment,
    AssignmentState,
    Membership,
    Oracle,
    Project,
    Query,
    QueryState,
    Role,
)
from annotation.questions import work_limits
from annotation.questions.work_limits import WorkLimit
from privacy.accounting.cost import Cost
from privacy.choices import Kind
from privacy.wording import as_message, as_plural_message

# Among more people than these somebody is taken to be free: a crowd of thousands is not asked one by one.
ASKED_ONE_BY_ONE = 100


class Blocker(TextChoices):
    """What a project waits for."""

    DELETED = "deleted", _("nothing: it is deleted")
    ARCHIVED = "archived", _("nothing: it is in the archive")
    PAUSED = "paused", _("the end of its pause")
    WORKER = "worker", _("a worker, who is at it")
    NO_WORKER = "no_worker", _("a worker")
    BUSY = "busy", _("a site that is less busy")
    POOL = "pool", _("a pool")
    READING = "reading", _("the upload to be read")
    REFUSED = "refused", _("an upload that can be read")
    GATE_FAILED = "gate_failed", _("the gate")
    NOTHING_PASSED = "nothing_passed", _("texts that pass the gate")
    TOO_FEW_PASSED = "too_few_passed", _("more texts than its budget lets pass")
    RECORDS = "records", _("records of the stream")
    NOBODY = "nobody", _("annotators")
    PEOPLE_PAUSED = "people_paused", _("annotators who are not paused")
    QUIET = "quiet", _("the end of quiet hours")
    LIMITS = "limits", _("annotators below their limits")
    HELD = "held", _("an answer that somebody is at")
    ASSIGNED = "assigned", _("whom a question was assigned to")
    ANOTHER = "another", _("another annotator")
    ANSWERS = "answers", _("answers")
    BLOCK = "block", _("the block's time")
    WINDOW = "window", _("the window's time")
    FEW_LABELS = "few_labels", _("a manager's word")
    LABELS_SPENT = "labels_spent", _("annotation budget")
    BUDGET = "budget", _("privacy budget")
    FAILED = "failed", _("a new start")
    HELD_BACK = "held_back", _("a check of the newest version")
    BEATEN = "beaten", _("a model worth its price")
    VERSIONS = "versions", _("nothing: the last version is made")
    BLOCKS_USED = "blocks_used", _("nothing: every block is used")
    ALL_ASKED = "all_asked", _("more data")


class ActKind(TextChoices):
    """What a manager can do; each has a button or a page."""

    TAKE_OUT_OF_ARCHIVE = "take_out_of_archive", _("Take it out of the archive")
    RESUME = "resume", _("Resume")
    LOOK_AT_WORK = "look_at_work", _("Look at the work")
    UPLOAD = "upload", _("Upload")
    POST_RECORDS = "post_records", _("How to post records")
    SEE_WHAT_PASSES = "see_what_passes", _("What helps")
    SEE_UPLOAD = "see_upload", _("Why it was refused")
    GATE_AGAIN = "gate_again", _("Send it through the gate again")
    START_ANEW = "start_anew", _("Start anew")
    ADD_PEOPLE = "add_people", _("Add people")
    ANSWER_MYSELF = "answer_myself", _("Answer questions myself")
    LET_PEOPLE_GO_ON = "let_people_go_on", _("Let people go on")
    CHANGE_LIMITS = "change_limits", _("Change the limits")
    CHANGE_HOURS = "change_hours", _("Change the quiet hours")
    ASSIGN_ANEW = "assign_anew", _("Assign the questions anew")
    SET_ASIDE = "set_aside", _("Set the questions aside")
    LABEL = "label", _("Open the label page")
    CLOSE_BLOCK = "close_block", _("Close the block early")
    TRAIN_ON_FEW = "train_on_few", _("Train on what there is")
    RAISE_ANSWERS = "raise_answers", _("Raise the annotation budget")
    RAISE_LIMIT = "raise_limit", _("Change the limit")
    SEE_POPULATION = "see_population", _("The common limit")
    CHECK_AGAIN = "check_again", _("Check again")
    SEE_RELEASE = "see_release", _("Look at the newest version")
    SEE_VERSION_0 = "see_version_0", _("Use version 0")
    BEGIN_WITH_EXPERTS = "begin_with_experts", _("Begin a project of experts")
    PLAN_MORE_VERSIONS = "plan_more_versions", _("Plan more versions")


@dataclass(frozen=True, slots=True)
class Act:
    """Something a manager can do, what pressing it has charged, and what it is about."""

    kind: ActKind
    price: Cost | None = None
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps open questions from being answered, and what helps; `goes_on_at` is when it ends by itself."""

    blocker: Blocker
    sentence: str
    acts: tuple[Act, ...] = ()
    goes_on_at: datetime | None = None


def annotators_of(project: Project) -> QuerySet[Membership]:
    """Return who may answer, paused or not."""
    return Membership.objects.filter(project=project, role=Role.ANNOTATOR).select_related("user").order_by("pk")


def has_nobody(project: Project) -> bool:
    """Say whether there is no annotator at all."""
    return not annotators_of(project).exists()


def nobody(project: Project) -> Obstacle:
    """Say that there is nobody to answer."""
    sentence = as_message("Nobody can answer yet. Add annotators, invite them, or begin by yourself.")
    return Obstacle(Blocker.NOBODY, sentence, (Act(ActKind.ANSWER_MYSELF), Act(ActKind.ADD_PEOPLE)))


def obstacle_for(project: Project) -> Obstacle | None:
    """Say what the open questions wait for; None where none is open."""
    opened = Query.objects.filter(project=project, state=QueryState.OPEN)
    if not opened.exists():
        return None
    members = list(annotators_of(project)[: ASKED_ONE_BY_ONE + 1])
    if not members:
        return nobody(project)
    working = [member for member in members if member.paused_at is None]
    if not working:
        sentence = as_message("Every annotator is paused. Let somebody go on, or add people.")
        return Obstacle(Blocker.PEOPLE_PAUSED, sentence, (Act(ActKind.LET_PEOPLE_GO_ON), Act(ActKind.ADD_PEOPLE)))
    if work_limits.is_quiet(project) and project.quiet_until is not None:
        until = work_limits.next_time(project.quiet_until)
        sentence = as_message("These are quiet hours: nothing is handed out until {until}.", until=until)
        return Obstacle(Blocker.QUIET, sentence, (Act(ActKind.CHANGE_HOURS),), until)
    if len(members) > ASKED_ONE_BY_ONE:
        return _going_on(opened.count())
    limits = {member.user_id: work_limits.limit_reached(project, member.user) for member in working}
    able = [user_id for user_id, limit in limits.items() if limit is None]
    if not able:
        return _at_their_limits({limit for limit in limits.values() if limit is not None})
    if _shown_to_somebody(opened, able).exists():
        return _going_on(opened.count())
    return _left_over(project, opened)


def _going_on(n: int) -> Obstacle:
    sentence = as_plural_message("{n} question waits for an answer.", "{n} questions wait for answers.", n=n)
    return Obstacle(Blocker.ANSWERS, sentence, (Act(ActKind.LABEL),))


def _at_their_limits(reached: set[WorkLimit]) -> Obstacle:
    acts = (Act(ActKind.CHANGE_LIMITS), Act(ActKind.ADD_PEOPLE))
    if reached == {WorkLimit.ANSWERS_PER_DAY}:
        tomorrow = selectors.site_midnight() + timedelta(days=1)
        sentence = as_message("Every annotator has given as many answers today as one may. They go on tomorrow.")
        return Obstacle(Blocker.LIMITS, sentence, acts, tomorrow)
    return Obstacle(
        Blocker.LIMITS, as_message("Every annotator has reached a limit of this project. Add people."), acts
    )


def _shown_to_somebody(opened: QuerySet[Query], people: Iterable[int]) -> QuerySet[Query]:
    """Return the open questions with a free slot that one of these people has not had yet."""
    had = Assignment.objects.filter(query=OuterRef(OuterRef("pk")), annotator=OuterRef("pk")).exclude(
        state=AssignmentState.EXPIRED
    )
    for_all = Q(assigned_to=None) | Q(open_slots__gt=1)
    somebody = User.objects.filter(~Exists(had), pk__in=people)
    theirs = somebody.filter(pk=OuterRef("assigned_to"))
    return opened.filter(open_slots__gt=0).filter(for_all & Exists(somebody) | Exists(theirs))


def _left_over(project: Project, opened: QuerySet[Query]) -> Obstacle:
    """Say what questions wait for that nobody who works now can be shown."""
    held = Assignment.objects.filter(query__in=opened, state=AssignmentState.LEASED)
    if held.exists():
        back = held.aggregate(at=Min("leased_until"))["at"]
        sentence = as_message(
            "Somebody is at the last open questions. What they leave comes back by itself at {back}.", back=back
        )
        return Obstacle(Blocker.HELD, sentence, (Act(ActKind.LABEL),), back)
    free = opened.filter(open_slots__gt=0)
    waits = free.filter(assigned_to__isnull=False, open_slots=1).count()
    if waits:
        sentence = as_plural_message(
            "{n} question waits for the one person it was assigned to, who answers nothing now.",
            "{n} questions wait for the people they were assigned to, who answer nothing now.",
            n=waits,
        )
        return Obstacle(Blocker.ASSIGNED, sentence, (Act(ActKind.ASSIGN_ANEW), Act(ActKind.CHANGE_LIMITS)))
    sentence = as_plural_message(
        "{n} question waits for somebody who has neither answered nor skipped it.",
        "{n} questions wait for somebody who has neither answered nor skipped them.",
        n=free.count(),
    )
    # Where answers are randomised, which questions get a response must not follow what was answered.
    by_hand = project.oracle == Oracle.TRUSTED or not project.settings.get(Kind.RANDOMIZER.key)
    more = (Act(ActKind.SET_ASIDE),) if by_hand else ()
    return Obstacle(Blocker.ANOTHER, sentence, (Act(ActKind.ADD_PEOPLE), *more))
