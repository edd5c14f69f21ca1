"""Next step of a project, what it waits for, and the buttons for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin, User
from django.db.models import Exists, Min, OuterRef, Q, QuerySet, TextChoices
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from annotation import selectors
from annotation.budget import charges
from annotation.choices.policies import labels_of_first_model
from annotation.models import (
    Arrival,
    Assignment,
    AssignmentState,
    Dataset,
    DatasetRole,
    DatasetState,
    GateRun,
    Job,
    Membership,
    Oracle,
    Project,
    ProjectState,
    Query,
    QueryState,
    Role,
    WorkState,
)
from annotation.questions import work_limits
from annotation.questions.work_limits import WorkLimit
from annotation.work.services import jobs
from learner.models import ModelRelease, ReleaseState, Round, StreamBatch, TrainingRun
from learner.pools import records
from learner.pools.selectors import (
    beaten_by,
    newest_release,
    question_counts,
    releases_of,
    training_account,
    training_price,
)
from learner.pools.starts import why_no_version_zero
from learner.rounds import failures
from learner.rounds.next_step import ProjectStatus, Step, project_status
from privacy.accounting.cost import Cost
from privacy.choices import Kind
from privacy.ledger.selectors import can_pay, quota_of
from privacy.wording import as_message, as_plural_message, joined_messages

# Among more people than these somebody is taken to be free: a crowd of thousands is not asked one by one.
ASKED_ONE_BY_ONE = 100


class Blocker(StrEnum):
    DELETED = "deleted"
    ARCHIVED = "archived"
    PAUSED = "paused"
    WORKER = "worker"
    NO_WORKER = "no_worker"
    BUSY = "busy"
    POOL = "pool"
    READING = "reading"
    REFUSED = "refused"
    GATE_FAILED = "gate_failed"
    NOTHING_PASSED = "nothing_passed"
    TOO_FEW_PASSED = "too_few_passed"
    RECORDS = "records"
    NOBODY = "nobody"
    PEOPLE_PAUSED = "people_paused"
    QUIET = "quiet"
    LIMITS = "limits"
    HELD = "held"
    ASSIGNED = "assigned"
    ANOTHER = "another"
    ANSWERS = "answers"
    BLOCK = "block"
    WINDOW = "window"
    FEW_LABELS = "few_labels"
    LABELS_SPENT = "labels_spent"
    BUDGET = "budget"
    FAILED = "failed"
    HELD_BACK = "held_back"
    BEATEN = "beaten"
    VERSIONS = "versions"
    BLOCKS_USED = "blocks_used"
    ALL_ASKED = "all_asked"


class ActKind(TextChoices):
    TAKE_OUT_OF_ARCHIVE = "take_out_of_archive", _("Unarchive")
    RESUME = "resume", _("Resume")
    LOOK_AT_WORK = "look_at_work", _("Work")
    UPLOAD = "upload", _("Upload")
    POST_RECORDS = "post_records", _("Records of the stream")
    SEE_WHAT_PASSES = "see_what_passes", _("What helps")
    SEE_UPLOAD = "see_upload", _("Why it was refused")
    GATE_AGAIN = "gate_again", _("Run the gate again")
    START_ANEW = "start_anew", _("Restart")
    ADD_PEOPLE = "add_people", _("Add people")
    ANSWER_MYSELF = "answer_myself", _("Answer questions myself")
    LET_PEOPLE_GO_ON = "let_people_go_on", _("Resume")
    CHANGE_LIMITS = "change_limits", _("Change the limit")
    CHANGE_HOURS = "change_hours", _("Change the quiet hours")
    ASSIGN_ANEW = "assign_anew", _("Assign")
    SET_ASIDE = "set_aside", _("Set aside")
    SEE_SET_ASIDE = "see_set_aside", _("Show questions set aside")
    PAUSE = "pause", _("Pause")
    LABEL = "label", _("Open the label page")
    CLOSE_BLOCK = "close_block", _("Train now")
    TRAIN_ON_FEW = "train_on_few", _("Train now")
    RAISE_ANSWERS = "raise_answers", _("Change the annotation budget")
    RAISE_LIMIT = "raise_limit", _("Change the limit")
    SEE_POPULATION = "see_population", _("Common limit")
    CHECK_AGAIN = "check_again", _("Check again")
    SEE_RELEASE = "see_release", _("Newest model")
    SEE_VERSION_0 = "see_version_0", _("Version 0")
    BEGIN_WITH_EXPERTS = "begin_with_experts", _("New project")
    PLAN_MORE_VERSIONS = "plan_more_versions", _("Plan")


@dataclass(frozen=True, slots=True)
class Act:
    """Something a manager can do, what pressing it has charged, and what it is about."""

    kind: ActKind
    price: Cost | None = None
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Reason that keeps open questions from being answered, and a remedy; `goes_on_at` is when it ends by itself."""

    blocker: Blocker
    sentence: str
    acts: tuple[Act, ...] = ()
    goes_on_at: datetime | None = None


def annotators_of(project: Project) -> QuerySet[Membership]:
    return Membership.objects.filter(project=project, role=Role.ANNOTATOR).select_related("user").order_by("pk")


def has_nobody(project: Project) -> bool:
    return not annotators_of(project).exists()


def nobody(project: Project) -> Obstacle:
    sentence = as_message("Add annotators, or answer questions yourself.")
    return Obstacle(Blocker.NOBODY, sentence, (Act(ActKind.ANSWER_MYSELF), Act(ActKind.ADD_PEOPLE)))


def obstacle_for(project: Project) -> Obstacle | None:
    opened = Query.objects.filter(project=project, state=QueryState.OPEN)
    if not opened.exists():
        return None
    members = list(annotators_of(project)[: ASKED_ONE_BY_ONE + 1])
    if not members:
        return nobody(project)
    working = [member for member in members if member.paused_at is None]
    if not working:
        sentence = as_message("Every annotator is paused. Resume one, or add people.")
        return Obstacle(Blocker.PEOPLE_PAUSED, sentence, (Act(ActKind.LET_PEOPLE_GO_ON), Act(ActKind.ADD_PEOPLE)))
    if work_limits.is_quiet(project) and project.quiet_until is not None:
        until = work_limits.next_time(project.quiet_until)
        sentence = as_message("Quiet hours: no questions until {until}.", until=until)
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
        sentence = as_message("All annotators have reached today's limit. They continue tomorrow.")
        return Obstacle(Blocker.LIMITS, sentence, acts, tomorrow)
    return Obstacle(Blocker.LIMITS, as_message("Every annotator has reached a limit. Add people."), acts)


def _shown_to_somebody(opened: QuerySet[Query], people: Iterable[int]) -> QuerySet[Query]:
    had = Assignment.objects.filter(query=OuterRef(OuterRef("pk")), annotator=OuterRef("pk")).exclude(
        state=AssignmentState.EXPIRED
    )
    for_all = Q(assigned_to=None) | Q(open_slots__gt=1)
    somebody = User.objects.filter(~Exists(had), pk__in=people)
    theirs = somebody.filter(pk=OuterRef("assigned_to"))
    return opened.filter(open_slots__gt=0).filter(for_all & Exists(somebody) | Exists(theirs))


def _left_over(project: Project, opened: QuerySet[Query]) -> Obstacle:
    held = Assignment.objects.filter(query__in=opened, state=AssignmentState.LEASED)
    if held.exists():
        back = held.aggregate(at=Min("leased_until"))["at"]
        sentence = as_message("The last questions are being answered; the others return at {back}.", back=back)
        return Obstacle(Blocker.HELD, sentence, (Act(ActKind.LABEL),), back)
    free = opened.filter(open_slots__gt=0)
    waits = free.filter(assigned_to__isnull=False, open_slots=1).count()
    if waits:
        sentence = as_plural_message(
            "{n} question is assigned to someone who is not answering.",
            "{n} questions are assigned to people who are not answering.",
            n=waits,
        )
        return Obstacle(Blocker.ASSIGNED, sentence, (Act(ActKind.ASSIGN_ANEW), Act(ActKind.CHANGE_LIMITS)))
    sentence = as_plural_message(
        "{n} question needs another annotator.",
        "{n} questions need another annotator.",
        n=free.count(),
    )
    # Where answers are randomised, which questions get a response must not follow what was answered.
    by_hand = project.oracle == Oracle.TRUSTED or not project.settings.get(Kind.RANDOMIZER.key)
    more = (Act(ActKind.SET_ASIDE),) if by_hand else ()
    return Obstacle(Blocker.ANOTHER, sentence, (Act(ActKind.ADD_PEOPLE), *more))


# Work that no worker has taken for this long has none to take it.
PATIENCE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Guidance(Obstacle):
    status: ProjectStatus = field(kw_only=True)


def guidance_for(project: Project) -> Guidance:
    status = project_status(project)
    found = _BY_STEP[status.step](project)
    if status.step in (Step.ASK, Step.CHOOSING) and has_nobody(project):
        # Questions will come by themselves; that nobody is there to answer them would be noticed only then.
        found = nobody(project)
    elif status.step in (Step.LABELLING, Step.FEW_LABELS, Step.LABELS_SPENT, Step.FINISHED):
        found = _after_a_failure(project, found)
    if status.step in (Step.ASK, Step.LABELLING, Step.FEW_LABELS, Step.WAITING_FOR_POOL, Step.FINISHED):
        found = _too_few_passed(project, found) or found
    if status.step in (Step.ASK, Step.LABELLING, Step.FEW_LABELS, Step.FINISHED):
        may_pause, coming = status.step in (Step.ASK, Step.LABELLING), status.step != Step.FINISHED
        found = _set_aside(project, found, may_pause=may_pause, coming=coming)
    return Guidance(found.blocker, found.sentence, found.acts, found.goes_on_at, status=status)


def _after_a_failure(project: Project, found: Obstacle) -> Obstacle:
    """Name a training that failed before what else would do: its labels count as used until it is started anew."""
    row = failures.start_anew_of(project)
    if not isinstance(row, TrainingRun):
        return found
    sentence = joined_messages(" ", [failures.failed_words([row]), as_message("Restart it, or continue without it.")])
    again = _anew("training", str(row.pk), failures.price_of(project, row))
    return Obstacle(Blocker.FAILED, sentence, (again, *found.acts), found.goes_on_at)


def _set_aside(project: Project, found: Obstacle, *, may_pause: bool, coming: bool) -> Obstacle:
    """Say which questions were set aside, and that the coming model has no label yet.

    Nothing is held by itself: that a model is missing would tell outsiders that no question was agreed on.
    """
    skipped = Query.objects.filter(project=project, state=QueryState.SET_ASIDE).count()
    counts = question_counts(project)
    said, acts = [], list(found.acts)
    if skipped:
        said.append(as_plural_message("{n} question is set aside.", "{n} questions are set aside.", n=skipped))
        acts.append(Act(ActKind.SEE_SET_ASIDE))
    if coming and counts.newly_done and not counts.unused:
        said.append(
            as_plural_message(
                "{n} question is done without a label; the next model has none.",
                "{n} questions are done without a label; the next model has none.",
                n=counts.newly_done,
            )
        )
        if may_pause:
            said.append(as_message("Pause to stop its training; a pause is visible outside."))
            acts.append(Act(ActKind.PAUSE))
    return replace(found, sentence=joined_messages(" ", [found.sentence, *said]), acts=tuple(acts))


def _too_few_passed(project: Project, found: Obstacle) -> Obstacle | None:
    """Say that too few texts passed for a first model and no further upload can be paid; None where that is not so."""
    if project.oracle != Oracle.CROWD or project.arrival != Arrival.POOL or newest_release(project) is not None:
        return None
    passed = Query.objects.filter(project=project, gate_run__isnull=False).count()
    needed = labels_of_first_model(project.settings)
    if passed >= needed or can_pay(project.pool_account, [charges.coming_run(project)]):
        return None
    sentence = as_plural_message(
        "{n} text passed the gate; the first model needs {needed}, and the budget allows no further upload.",
        "{n} texts passed the gate; the first model needs {needed}, and the budget allows no further upload.",
        n=passed,
        needed=needed,
    )
    free = [] if why_no_version_zero(project) else [Act(ActKind.SEE_VERSION_0, subject="0")]
    limit = Act(ActKind.RAISE_LIMIT, subject=str(project.pool_account_id))
    others = [act for act in found.acts if act.kind not in (ActKind.UPLOAD, ActKind.GATE_AGAIN)]
    return Obstacle(Blocker.TOO_FEW_PASSED, sentence, (*free, limit, Act(ActKind.BEGIN_WITH_EXPERTS), *others))


def _closed_or_paused(project: Project) -> Obstacle:
    if project.state == ProjectState.DELETED:
        return Obstacle(Blocker.DELETED, as_message("The project was deleted."))
    if project.state == ProjectState.ARCHIVED:
        sentence = as_message("Restore the project to continue.")
        return Obstacle(Blocker.ARCHIVED, sentence, (Act(ActKind.TAKE_OUT_OF_ARCHIVE),))
    price = None if project.arrival == Arrival.STREAM else training_price(project)
    return Obstacle(Blocker.PAUSED, as_message("Resume the project."), (Act(ActKind.RESUME, price),))


def _at_work(project: Project) -> Obstacle:
    waiting: list[Round | TrainingRun] = [
        *Round.objects.filter(project=project, state=WorkState.WAITING, created_at__lt=Now() - PATIENCE),
        *TrainingRun.objects.filter(project=project, state=WorkState.WAITING, created_at__lt=Now() - PATIENCE),
    ]
    if waiting:
        return _no_worker(waiting[0].created_at)
    return Obstacle(Blocker.WORKER, as_message("A worker is running it."))


def _no_worker(since: datetime) -> Obstacle:
    sentence = as_message("No worker since {since}. Ask the operator to check the workers.", since=since)
    return Obstacle(Blocker.NO_WORKER, sentence, (Act(ActKind.LOOK_AT_WORK),))


def _due(project: Project) -> Obstacle:
    if jobs.is_busy():
        sentence = as_message("The site is busy; this starts when others finish.")
        return Obstacle(Blocker.BUSY, sentence)
    return Obstacle(Blocker.WORKER, as_message("It starts within a minute."))


def _without_pool(project: Project) -> Obstacle:
    """Find why there is nothing to ask about: no upload, one that is being read, refused, or that nothing passed."""
    if project.arrival == Arrival.STREAM:
        return Obstacle(Blocker.RECORDS, as_message("Post records."), (Act(ActKind.POST_RECORDS),))
    upload = Act(ActKind.UPLOAD, charges.upload_charge(project, DatasetRole.POOL))
    pools = Dataset.objects.filter(project=project, role=DatasetRole.POOL).select_related("job", "gate_job")
    for dataset in pools.order_by("-pk"):
        found = _unread(project, dataset)
        if found is not None:
            return found
    if GateRun.objects.filter(dataset__in=pools, passed_count=0).exists():
        sentence = as_message("No text passed the gate. Upload more at once, or see other options.")
        return Obstacle(Blocker.NOTHING_PASSED, sentence, (upload, Act(ActKind.SEE_WHAT_PASSES)))
    if pools.exists() and not pools.exclude(state=DatasetState.REFUSED).exists():
        sentence = as_message("The upload was refused. Upload a corrected file.")
        newest = pools.order_by("-pk")[0]
        return Obstacle(Blocker.REFUSED, sentence, (upload, Act(ActKind.SEE_UPLOAD, subject=str(newest.pk))))
    sentence = as_message("Upload a pool of records to ask about.")
    return Obstacle(Blocker.POOL, sentence, (upload,))


def _unread(project: Project, dataset: Dataset) -> Obstacle | None:
    job: Job | None = dataset.job
    if job is not None and job.state == WorkState.DONE:
        job = dataset.gate_job
    if job is None or job.state == WorkState.DONE or dataset.state == DatasetState.REFUSED:
        return None
    if job.state == WorkState.FAILED:
        price = charges.upload_charge(project, dataset.role, dataset)
        if job.pk == dataset.job_id:
            sentence = as_message("Reading was stopped. Start it again.")
            return Obstacle(Blocker.FAILED, sentence, (_anew("job", str(job.pk), price),))
        sentence = as_message("The gate ended without a result. Run it again.")
        return Obstacle(Blocker.GATE_FAILED, sentence, (Act(ActKind.GATE_AGAIN, price, str(dataset.pk)),))
    if job.state == WorkState.WAITING and Job.objects.filter(pk=job.pk, created_at__lt=Now() - PATIENCE).exists():
        return _no_worker(job.created_at)
    sentence = as_message("An upload is being read; questions follow.")
    if has_nobody(project):
        return nobody(project)
    return Obstacle(Blocker.READING, sentence)


def _anew(kind: str, key: str, price: Cost | None) -> Act:
    return Act(ActKind.START_ANEW, price, f"{kind} {key}")


def _answers(project: Project) -> Obstacle:
    block = records.open_block(project)
    found = obstacle_for(project)
    if block is not None:
        # The same offer whatever is answered: when a block is closed shows outside, and must not follow the answers.
        close = Act(ActKind.CLOSE_BLOCK, training_price(project), str(block.block))
        sentence = as_message(
            "You can close block {block} early. The date becomes public: choose it by "
            "the calendar, not by the answers.",
            block=block.block,
        )
        if found is None:
            answered = as_plural_message(
                "Block {block} is answered: train now (the date becomes public), or wait until {closes_at}.",
                "All {n} questions of block {block} are answered: train now (the date "
                "becomes public), or wait until {closes_at}.",
                n=Query.objects.filter(project=project, round_number=block.number).count(),
                block=block.block,
                closes_at=block.closes_at,
            )
            return Obstacle(Blocker.BLOCK, answered, (close,), block.closes_at)
        both = joined_messages(" ", [found.sentence, sentence])
        return replace(found, sentence=both, acts=(*found.acts, close), goes_on_at=block.closes_at)
    if found is not None:
        return found
    windows = StreamBatch.objects.filter(stream__project=project, closes_at__gt=Now())
    closes = windows.aggregate(at=Min("closes_at"))["at"]
    sentence = (
        as_message("The model is updated after the newest batch.")
        if closes is None
        else as_message("Next model update: {closes_at}.", closes_at=closes)
    )
    return Obstacle(Blocker.WINDOW, sentence, (), closes)


def _few_labels(project: Project) -> Obstacle:
    sentence = as_message("Train now, or upload more.")
    upload = Act(ActKind.UPLOAD, charges.upload_charge(project, DatasetRole.POOL))
    return Obstacle(Blocker.FEW_LABELS, sentence, (Act(ActKind.TRAIN_ON_FEW, training_price(project)), upload))


def _labels_spent(project: Project) -> Obstacle:
    sentence = as_message("Raise the annotation budget to ask more.")
    return Obstacle(Blocker.LABELS_SPENT, sentence, (Act(ActKind.RAISE_ANSWERS),))


def _cannot_pay(project: Project) -> Obstacle:
    account = project.pool_account if project.arrival == Arrival.STREAM else training_account(project)
    acts = [Act(ActKind.RAISE_LIMIT, subject=str(account.pk))]
    quota = quota_of(account)
    if quota is not None:
        acts.append(Act(ActKind.SEE_POPULATION, subject=quota.population.slug))
    sentence = as_message("A higher limit buys the next model for a weaker guarantee.")
    return Obstacle(Blocker.BUDGET, sentence, tuple(acts))


def _stuck(project: Project) -> Obstacle:
    held = ModelRelease.objects.filter(project=project, state=ReleaseState.CANDIDATE).exclude(held_back="").first()
    if held is not None:
        sentence = as_message("Once the cause is fixed, check version {version} again.", version=held.version)
        return Obstacle(Blocker.HELD_BACK, sentence, (Act(ActKind.CHECK_AGAIN, subject=str(held.version)),))
    row = failures.start_anew_of(project)
    assert row is not None, "what stops a project can be started anew"
    kind = "round" if isinstance(row, Round) else "training"
    sentence = as_message("Start it again once the cause is fixed.")
    return Obstacle(Blocker.FAILED, sentence, (_anew(kind, str(row.pk), failures.price_of(project, row)),))


def _finished(project: Project) -> Obstacle:
    newest = newest_release(project)
    look = () if newest is None else (Act(ActKind.SEE_RELEASE, subject=str(newest.version)),)
    if newest is not None and (loses_to := beaten_by(newest)):
        sentence = (
            as_message("The newest version is no better than a constant answer; its page says what helps.")
            if loses_to == "constant"
            else as_message("The newest version is no better than version 0; its page says what helps.")
        )
        return Obstacle(Blocker.BEATEN, sentence, look)
    made = releases_of(project).values_list("version", flat=True).first() or 0
    if project.maximum_releases is not None and made >= project.maximum_releases:
        sentence = as_message("Use the newest version, or plan more.")
        return Obstacle(Blocker.VERSIONS, sentence, (*look, Act(ActKind.PLAN_MORE_VERSIONS)))
    if records.labels_in_secret(project):
        sentence = as_message("All blocks are used: use the newest version.")
        return Obstacle(Blocker.BLOCKS_USED, sentence, look)
    sentence = as_message("Use the newest version, or upload more.")
    upload = Act(ActKind.UPLOAD, charges.upload_charge(project, DatasetRole.POOL))
    return Obstacle(Blocker.ALL_ASKED, sentence, (*look, upload))


_BY_STEP: dict[Step, Callable[[Project], Obstacle]] = {
    Step.PAUSED: _closed_or_paused,
    Step.CHOOSING: _at_work,
    Step.TRAINING: _at_work,
    Step.ASK: _due,
    Step.TRAIN: _due,
    Step.LABELLING: _answers,
    Step.FEW_LABELS: _few_labels,
    Step.WAITING_FOR_POOL: _without_pool,
    Step.READING: _without_pool,
    Step.AT_GATE: _without_pool,
    Step.LABELS_SPENT: _labels_spent,
    Step.CANNOT_PAY: _cannot_pay,
    Step.STUCK: _stuck,
    Step.FINISHED: _finished,
}

# Where questions are about to come, whoever answers them may wait on the page on which they appear.
QUESTIONS_COMING = (Step.ASK, Step.CHOOSING, Step.WAITING_FOR_POOL, Step.READING, Step.AT_GATE)
# Where each act that is a page of the project is, and the part of the page.
PAGES = {
    ActKind.LOOK_AT_WORK: ("learner:dashboard", "#jobs"),
    ActKind.UPLOAD: ("annotation:data", "#upload"),
    ActKind.POST_RECORDS: ("annotation:data", ""),
    ActKind.SEE_WHAT_PASSES: ("annotation:data", "#nothing-passed"),
    ActKind.ADD_PEOPLE: ("annotation:people", ""),
    ActKind.LET_PEOPLE_GO_ON: ("annotation:quality", ""),
    ActKind.CHANGE_LIMITS: ("annotation:configuration", ""),
    ActKind.CHANGE_HOURS: ("annotation:configuration", ""),
    ActKind.ASSIGN_ANEW: ("annotation:questions", ""),
    ActKind.SET_ASIDE: ("annotation:questions", ""),
    ActKind.SEE_SET_ASIDE: ("annotation:questions", "?state=set_aside"),
    ActKind.LABEL: ("annotation:label", ""),
    ActKind.CLOSE_BLOCK: ("learner:close_block", ""),
    ActKind.RAISE_ANSWERS: ("annotation:label_budget", ""),
    ActKind.PLAN_MORE_VERSIONS: ("annotation:configuration", ""),
}
# Pages of something in the project.
PAGES_OF = {
    ActKind.SEE_UPLOAD: "annotation:dataset",
    ActKind.RAISE_LIMIT: "annotation:change_limit",
    ActKind.SEE_RELEASE: "learner:release",
    ActKind.SEE_VERSION_0: "learner:release",
}


@dataclass(frozen=True, slots=True)
class Button:
    kind: str
    label: str
    address: str
    price: Cost | None
    sends: bool = False
    fields: dict[str, str] = field(default_factory=dict)


def next_step_context(project: Project, viewer: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    guidance = guidance_for(project)
    answers = annotators_of(project).filter(user=viewer.pk, paused_at=None).exists()
    return {
        "project": project,
        "guidance": guidance,
        "buttons": buttons(project, guidance, viewer=viewer, answers=answers),
    }


def buttons(
    project: Project, guidance: Guidance, *, viewer: AbstractBaseUser | AnonymousUser, answers: bool
) -> list[Button]:
    opens = isinstance(viewer, PermissionsMixin) and viewer.has_perm("annotation.add_project")
    may = {ActKind.LABEL: answers, ActKind.BEGIN_WITH_EXPERTS: opens}
    acts = [act for act in guidance.acts if may.get(act.kind, True)]
    if answers and guidance.status.step in QUESTIONS_COMING:
        acts.append(Act(ActKind.LABEL))
    return [button_of(project, act, viewer) for act in acts]


def button_of(project: Project, act: Act, viewer: AbstractBaseUser | AnonymousUser) -> Button:
    label = str(act.kind.label)
    if act.kind in PAGES:
        name, part = PAGES[act.kind]
        return Button(act.kind, label, reverse(name, args=[project.slug]) + part, act.price)
    if act.kind in PAGES_OF:
        return Button(act.kind, label, reverse(PAGES_OF[act.kind], args=[project.slug, act.subject]), act.price)
    if act.kind == ActKind.SEE_POPULATION:
        return Button(act.kind, label, reverse("annotation:population", args=[act.subject]), act.price)
    if act.kind == ActKind.BEGIN_WITH_EXPERTS:
        return Button(act.kind, label, reverse("annotation:new_project"), act.price)
    address, fields = SENT[act.kind](project.slug, act.subject, viewer)
    if act.price is not None:
        fields = fields | {charges.AGREED: charges.token_of(act.price)}
    return Button(act.kind, label, address, act.price, sends=True, fields=fields)


def _to(name: str, *more: object) -> tuple[str, dict[str, str]]:
    return reverse(name, args=more), {}


# What is sent by a button: where to, and with which fields.
SENT: dict[ActKind, Callable[[str, str, AbstractBaseUser | AnonymousUser], tuple[str, dict[str, str]]]] = {
    ActKind.TAKE_OUT_OF_ARCHIVE: lambda slug, _s, _v: (_to("learner:set_archived", slug)[0], {"archived": "no"}),
    ActKind.RESUME: lambda slug, _s, _v: (_to("annotation:set_state", slug)[0], {"state": "active"}),
    ActKind.PAUSE: lambda slug, _s, _v: (_to("annotation:set_state", slug)[0], {"state": "paused"}),
    ActKind.GATE_AGAIN: lambda slug, dataset, _v: _to("annotation:start_gate", slug, dataset),
    ActKind.START_ANEW: lambda slug, row, _v: _to("learner:retry_work", slug, *row.split(" ")),
    ActKind.ANSWER_MYSELF: lambda slug, _s, viewer: (
        _to("annotation:people", slug)[0],
        {"username": viewer.get_username(), "role": "annotator"},
    ),
    ActKind.TRAIN_ON_FEW: lambda slug, _s, _v: _to("learner:train_on_few", slug),
    ActKind.CHECK_AGAIN: lambda slug, version, _v: _to("learner:check_again", slug, version),
}
