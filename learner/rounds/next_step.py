"""The next step of a project: read by the overview, the beat and every page that names it."""

from dataclasses import dataclass

from django.db.models import Max, TextChoices
from django.utils.translation import gettext_lazy as _

from annotation.budget.label_budget import questions_left
from annotation.choices.policies import policy_choice_of
from annotation.choices.rules import hides_selection
from annotation.models import (
    UNFINISHED,
    Arrival,
    Dataset,
    DatasetRole,
    DatasetState,
    Oracle,
    Project,
    ProjectState,
    Selection,
    WorkState,
)
from learner.models import ModelRelease, ReleaseState, Round, TrainingRun
from learner.pools import answers, records
from learner.pools import configuration as stream_configuration
from learner.pools import stream_answers as stream_selectors
from learner.pools.prices import next_round_event
from learner.pools.selectors import (
    QuestionCounts,
    guarantee_accounts,
    next_strategy,
    question_counts,
    training_account,
    training_event,
    training_price,
)
from learner.rounds import failures
from learner.simulation.selectors import coming_questions
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import can_pay, guarantee
from privacy.wording import as_message, as_plural_message, joined_messages


class Step(TextChoices):
    PAUSED = "paused", _("paused")
    CHOOSING = "choosing", _("choosing questions")
    TRAINING = "training", _("training")
    ASK = "ask", _("about to ask")
    TRAIN = "train", _("about to train")
    LABELLING = "labelling", _("labelling")
    FEW_LABELS = "few_labels", _("waiting for a manager's word")
    WAITING_FOR_POOL = "waiting_for_pool", _("waiting for a pool")
    READING = "reading", _("reading rows")
    AT_GATE = "at_gate", _("an upload at the gate")
    LABELS_SPENT = "labels_spent", _("annotation budget spent")
    CANNOT_PAY = "cannot_pay", _("budget spent")
    STUCK = "stuck", _("needs attention")
    FINISHED = "finished", _("finished")


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    step: Step
    sentence: str


def project_status(project: Project) -> ProjectStatus:
    status = _status(project)
    while status.step == Step.CANNOT_PAY:
        before = _newest_entries(project)
        status = _status(project)
        if _newest_entries(project) == before:
            break
    return status


def _newest_entries(project: Project) -> list[int | None]:
    return [account.entries.aggregate(newest=Max("sequence"))["newest"] for account in guarantee_accounts(project)]


def _status(project: Project) -> ProjectStatus:
    if project.state == ProjectState.ARCHIVED:
        return ProjectStatus(Step.PAUSED, as_message("The project is archived."))
    if project.state == ProjectState.DELETED:
        return ProjectStatus(Step.PAUSED, as_message("The project was deleted."))
    if project.state == ProjectState.PAUSED:
        return ProjectStatus(Step.PAUSED, as_message("The project is paused: no questions and no training."))
    training = TrainingRun.objects.filter(project=project, state__in=UNFINISHED).first()
    if training is not None:
        return ProjectStatus(
            Step.TRAINING,
            as_plural_message(
                "Version {version} is being trained on {n} label.",
                "Version {version} is being trained on {n} labels.",
                version=training.version,
                n=training.labels_used,
            ),
        )
    newest = ModelRelease.objects.filter(project=project).order_by("-version").first()
    if newest is not None and newest.state == ReleaseState.CANDIDATE:
        return _candidate_status(newest)
    if project.arrival == Arrival.STREAM:
        return _stream_step(project)
    choosing = Round.objects.filter(project=project, state__in=UNFINISHED).first()
    if choosing is not None and choosing.block is not None:
        return ProjectStatus(
            Step.CHOOSING, as_message("The questions of block {block} are being drawn.", block=choosing.block)
        )
    if choosing is not None:
        return ProjectStatus(
            Step.CHOOSING, as_message("The questions of round {number} are being chosen.", number=choosing.number)
        )
    return _due_step(project, newest)


def _stream_step(project: Project) -> ProjectStatus:
    version = stream_selectors.releases_made(project)
    if project.maximum_releases is not None and version >= project.maximum_releases:
        return ProjectStatus(
            Step.FINISHED, as_message("Finished: version {version} is the last planned one.", version=version)
        )
    if stream_selectors.failed_releases(project) >= stream_selectors.MAX_FAILED_RELEASES:
        return ProjectStatus(
            Step.STUCK, as_message("Releasing version {version} failed several times.", version=version + 1)
        )
    stream = stream_selectors.stream_of(project)
    paid = stream is not None and stream.entry_id is not None
    if not paid and not can_pay(project.pool_account, [stream_configuration.stream_event(project)]):
        return ProjectStatus(
            Step.CANNOT_PAY,
            as_message(
                "The budget {word} is too small for the stream: {left} left. A manager can raise its limit.",
                word=project.pool_account.label,
                left=guarantee(project.pool_account).left_said,
            ),
        )
    if stream_selectors.has_work(project):
        return ProjectStatus(Step.CHOOSING, as_message("Records are being examined."))
    if stream is None or not stream_selectors.waits_for_answers(project, stream):
        return ProjectStatus(Step.WAITING_FOR_POOL, as_message("Every record was screened; post more."))
    if questions_left(project) == 0:
        return ProjectStatus(Step.LABELS_SPENT, as_message("The annotation budget is spent; a manager can raise it."))
    if hides_selection(project.settings):
        return ProjectStatus(Step.LABELLING, as_message("The next model update has a public time."))
    counts = question_counts(project)
    return ProjectStatus(
        Step.LABELLING,
        as_plural_message(
            "{n} question is open",
            "{n} questions are open",
            n=counts.open,
        ),
    )


def _candidate_status(candidate: ModelRelease) -> ProjectStatus:
    if candidate.held_back:
        return ProjectStatus(
            Step.STUCK,
            as_message(
                "Version {version} is held back. {reason}", version=candidate.version, reason=candidate.held_back
            ),
        )
    return ProjectStatus(
        Step.TRAINING,
        as_message("Trained; its cost, ledger, mechanism and files are being checked."),
    )


def _due_step(project: Project, newest: ModelRelease | None) -> ProjectStatus:
    version = newest.version if newest else 0
    if project.maximum_releases is not None and version >= project.maximum_releases:
        return ProjectStatus(
            Step.FINISHED, as_message("Finished: version {version} is the last planned one.", version=version)
        )
    if records.labels_in_secret(project):
        return _due_secret_step(project, version)
    counts = question_counts(project)
    affordable = questions_left(project)
    strategy = next_strategy(project)
    if strategy == Selection.REPEAT_VOTES:
        affordable = answers.affordable_repeats(project)
    left = affordable != 0 and (strategy == Selection.REPEAT_VOTES or records.has_candidates(project))
    # Questions done with, not labels agreed on: when a model is trained shows outside, and so does another round before
    # it. Neither may depend on whether a question got an agreed answer, which is up to the record it is about.
    missing = policy_choice_of(project.settings).labels_needed(
        labels_now=counts.done, labels_at_last_release=counts.done_before, labels_per_release=project.labels_per_release
    )
    # A model is made where nothing was agreed on, too: that there is none yet would tell that.
    if not missing:
        return _if_paid(
            project,
            Step.TRAIN,
            as_plural_message(
                "Version {version} can be trained: {n} new label waits.",
                "Version {version} can be trained: {n} new labels wait.",
                version=version + 1,
                n=counts.unused,
            ),
        )
    if counts.newly_done and not counts.open and not left:
        return _if_paid(project, Step.FEW_LABELS, _few_words(project, counts, missing, version))
    if not _round_is_due(project, newest, counts.open):
        return ProjectStatus(Step.LABELLING, _labelling_words(project, counts, missing, version))
    if affordable == 0:
        return ProjectStatus(
            Step.LABELS_SPENT,
            as_message("The annotation budget is spent; a manager can raise it."),
        )
    if not left:
        return _without_candidates(project, version)
    return _if_paid(project, Step.ASK, as_message("The next questions can be chosen."))


def _labelling_words(project: Project, counts: QuestionCounts, missing: int, version: int) -> str:
    """Say when the next model is trained; it is promised only where enough questions are left for it."""
    is_open = as_plural_message("{n} question is open", "{n} questions are open", n=counts.open)
    # Asking again about what was answered counts as well.
    if project.repeat_votes or counts.open + coming_questions(project) >= missing:
        then = as_plural_message(
            "when {n} more is done, version {version} is trained.",
            "when {n} more are done, version {version} is trained.",
            n=missing,
            version=version + 1,
        )
    else:
        then = as_message(
            "too few are left for version {version}, which learns from {wanted} by itself. Upload more, or train it "
            "on fewer when all are done.",
            version=version + 1,
            wanted=counts.newly_done + missing,
        )
    return joined_messages("; ", [is_open, then])


def _few_words(project: Project, counts: QuestionCounts, missing: int, version: int) -> str:
    """Say how little there is to train on and what it would cost; nothing is charged for it without a person's word."""
    cost = training_price(project)
    return as_plural_message(
        "{n} of {wanted} questions are done for version {version}, and none is left. "
        "Train for epsilon {epsilon:.4g}, delta {delta:.2g}, or upload more.",
        "{n} of {wanted} questions are done for version {version}, and none is left. "
        "Train for epsilon {epsilon:.4g}, delta {delta:.2g}, or upload more.",
        n=counts.newly_done,
        version=version + 1,
        wanted=counts.newly_done + missing,
        epsilon=cost.epsilon,
        delta=cost.delta,
    )


def _due_secret_step(project: Project, version: int) -> ProjectStatus:
    """Walk from block to block; which step is due follows from public times and releases alone."""
    block = records.current_block(project)
    if block is not None and records.is_closed(block):
        return _if_paid(
            project,
            Step.TRAIN,
            as_message(
                "Block {block} is closed: version {version} can be trained.",
                block=block.block,
                version=version + 1,
            ),
        )
    if block is not None:
        left = question_counts(project).open
        return ProjectStatus(
            Step.LABELLING,
            as_plural_message(
                "Block {block} closes and version {version} is trained at {closes_at}, "
                "whatever is answered; {n} question is open.",
                "Block {block} closes and version {version} is trained at {closes_at}, "
                "whatever is answered; {n} questions are open.",
                block=block.block,
                closes_at=block.closes_at,
                version=version + 1,
                n=left,
            ),
        )
    following = records.next_block(project)
    if following is None:
        return ProjectStatus(
            Step.FINISHED,
            as_message("All questions were asked; version {version} is the newest.", version=version),
        )
    if not records.pool_size(project):
        return _pool_step(project, as_message("No questions yet: upload a pool."))
    return _if_paid(project, Step.ASK, as_message("The questions of block {block} can be chosen.", block=following))


def _round_is_due(project: Project, newest: ModelRelease | None, open_questions: int) -> bool:
    """Say whether to ask more: nothing is open, or a newer model than the last round's can choose better."""
    last = Round.objects.filter(project=project, state=WorkState.DONE).order_by("-number").first()
    if last is None or not open_questions:
        return True
    # A round that leaves questions over each time must not pile them up.
    return (
        newest is not None
        and newest.created_at > (last.finished_at or last.created_at)
        and (open_questions < project.round_size)
    )


def _pool_step(project: Project, otherwise: str) -> ProjectStatus:
    """Say that an upload is being read or is at the gate, else what is said where there is none."""
    pools = Dataset.objects.filter(project=project, role=DatasetRole.POOL)
    if pools.filter(state=DatasetState.RECEIVING, job__state__in=UNFINISHED).exists():
        return ProjectStatus(Step.READING, as_message("An upload is being read; questions follow."))
    if pools.filter(gate_job__state__in=UNFINISHED).exists():
        return ProjectStatus(Step.AT_GATE, as_message("An upload is being read; questions follow."))
    return ProjectStatus(Step.WAITING_FOR_POOL, otherwise)


def _without_candidates(project: Project, version: int) -> ProjectStatus:
    if Round.objects.filter(project=project, state=WorkState.DONE).exists():
        return ProjectStatus(
            Step.FINISHED,
            as_message(
                "All questions were asked; version {version} is the newest.",
                version=version,
            ),
        )
    if project.oracle == Oracle.CROWD:
        return _pool_step(project, as_message("No questions yet: upload a pool."))
    return _pool_step(project, as_message("No questions yet: upload a pool."))


def too_little_words(paying: BudgetAccount, step: Step) -> str:
    """Say that an account cannot pay for a step; for asking, that is for the training as well."""
    return as_message(
        "The budget {word} has {left} left, too little for {reason}.",
        word=paying.label,
        left=guarantee(paying).left_said,
        reason=as_message("the next questions and the model trained on them")
        if step == Step.ASK
        else as_message("the next model"),
    )


def _if_paid(project: Project, step: Step, sentence: str) -> ProjectStatus:
    """Return the step, or why the account it needs cannot pay; asking counts the training it is for."""
    stopped = failures.stopping_words(project, Round if step == Step.ASK else TrainingRun)
    if stopped:
        return ProjectStatus(Step.STUCK, stopped)
    events = [training_event(project)]
    paying = training_account(project)
    if step == Step.ASK and project.oracle == Oracle.TRUSTED:
        events.append(next_round_event(project))
    if can_pay(paying, events):
        return ProjectStatus(step, sentence)
    still_open = question_counts(project).open
    sentences = [
        too_little_words(paying, step),
        as_plural_message(
            "Answers are kept; {n} question is open.", "Answers are kept; {n} questions are open.", n=still_open
        )
        if still_open
        else as_message("Answers are kept."),
        as_message("A manager can raise its limit."),
    ]
    return ProjectStatus(Step.CANNOT_PAY, joined_messages(" ", sentences))
