"""What a project waits for, and what somebody can do that really moves it on.

`next_step` says what the engine does; this module says, where the engine does nothing, who or what it waits for. Each
act it names is one that a manager can take now, and taking it changes what the project waits for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db.models import Min
from django.db.models.functions import Now

from annotation.choices.policies.catalogue import labels_of_first_model
from annotation.models import (
    Arrival,
    Dataset,
    DatasetRole,
    DatasetState,
    GateRun,
    Job,
    Oracle,
    Project,
    ProjectState,
    Query,
    WorkState,
)
from annotation.statement import charges, gate_runs
from annotation.work.services import jobs
from learner import failures
from learner.guidance import blockers
from learner.guidance.blockers import Act, ActKind, Blocker, Obstacle
from learner.models import ModelRelease, ReleaseState, Round, StreamBatch, TrainingRun
from learner.next_step import ProjectStatus, Step, project_status
from learner.pools import secret_selectors
from learner.selectors import beaten_by, newest_release, releases_of, training_account, training_price
from learner.starts.services.version_zero import why_no_version_zero
from privacy.accounting.cost import Cost
from privacy.selectors import can_pay, quota_of
from privacy.wording import as_message, as_plural_message, joined_messages

# Work that no worker has taken for this long has none to take it.
PATIENCE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Guidance(Obstacle):
    """What a project waits for, and where it stands."""

    status: ProjectStatus = field(kw_only=True)


def guidance_for(project: Project) -> Guidance:
    """Say what a project waits for and what moves it on."""
    status = project_status(project)
    found = _BY_STEP[status.step](project)
    if status.step in (Step.ASK, Step.CHOOSING) and blockers.has_nobody(project):
        # Questions will come by themselves; that nobody is there to answer them would be noticed only then.
        found = blockers.nobody(project)
    elif status.step in (Step.LABELLING, Step.FEW_LABELS, Step.LABELS_SPENT, Step.FINISHED):
        found = _after_a_failure(project, found)
    if status.step in (Step.ASK, Step.LABELLING, Step.FEW_LABELS, Step.WAITING_FOR_POOL, Step.FINISHED):
        found = _too_few_passed(project, found) or found
    return Guidance(found.blocker, found.sentence, found.acts, found.goes_on_at, status=status)


def _after_a_failure(project: Project, found: Obstacle) -> Obstacle:
    """Name a training that failed before what else would do: its labels count as used until it is started anew."""
    row = failures.start_anew_of(project)
    if not isinstance(row, TrainingRun):
        return found
    sentence = joined_messages(" ", [failures.failed_words([row]), as_message("Start it anew, or go on without it.")])
    again = _anew("training", str(row.pk), failures.price_of(project, row))
    return Obstacle(Blocker.FAILED, sentence, (again, *found.acts), found.goes_on_at)


def _too_few_passed(project: Project, found: Obstacle) -> Obstacle | None:
    """Say that too few texts passed for a first model and no further upload can be paid; None where that is not so."""
    if project.oracle != Oracle.CROWD or project.arrival != Arrival.POOL or newest_release(project) is not None:
        return None
    passed = Query.objects.filter(project=project, gate_run__isnull=False).count()
    needed = labels_of_first_model(project.settings)
    if passed >= needed or can_pay(project.pool_account, [gate_runs.coming_run(project)]):
        return None
    sentence = as_plural_message(
        "{n} text passed the gate, the first model needs {needed}, and the budget pays for no further upload.",
        "{n} texts passed the gate, the first model needs {needed}, and the budget pays for no further upload.",
        n=passed,
        needed=needed,
    )
    free = [] if why_no_version_zero(project) else [Act(ActKind.SEE_VERSION_0, subject="0")]
    limit = Act(ActKind.RAISE_LIMIT, subject=str(project.pool_account_id))
    others = [act for act in found.acts if act.kind not in (ActKind.UPLOAD, ActKind.GATE_AGAIN)]
    return Obstacle(Blocker.TOO_FEW_PASSED, sentence, (*free, limit, Act(ActKind.BEGIN_WITH_EXPERTS), *others))


def _closed_or_paused(project: Project) -> Obstacle:
    if project.state == ProjectState.DELETED:
        return Obstacle(Blocker.DELETED, as_message("Nothing moves it on: what it held is gone."))
    if project.state == ProjectState.ARCHIVED:
        sentence = as_message("Take it out of the archive to go on.")
        return Obstacle(Blocker.ARCHIVED, sentence, (Act(ActKind.TAKE_OUT_OF_ARCHIVE),))
    price = None if project.arrival == Arrival.STREAM else training_price(project)
    return Obstacle(Blocker.PAUSED, as_message("Resume the project."), (Act(ActKind.RESUME, price),))


def _at_work(project: Project) -> Obstacle:
    """Say that a worker is at it, or that none is there to take it."""
    waiting: list[Round | TrainingRun] = [
        *Round.objects.filter(project=project, state=WorkState.WAITING, created_at__lt=Now() - PATIENCE),
        *TrainingRun.objects.filter(project=project, state=WorkState.WAITING, created_at__lt=Now() - PATIENCE),
    ]
    if waiting:
        return _no_worker(waiting[0].created_at)
    return Obstacle(Blocker.WORKER, as_message("Nothing is to be done: a worker is at it."))


def _no_worker(since: datetime) -> Obstacle:
    sentence = as_message(
        "No worker has taken this since {since}. Ask whoever runs this site to look at its workers.", since=since
    )
    return Obstacle(Blocker.NO_WORKER, sentence, (Act(ActKind.LOOK_AT_WORK),))


def _due(project: Project) -> Obstacle:
    if jobs.is_busy():
        sentence = as_message("Nothing is to be done: the site is busy, and this begins when others are done.")
        return Obstacle(Blocker.BUSY, sentence)
    return Obstacle(Blocker.WORKER, as_message("Nothing is to be done: it begins by itself within a minute."))


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
        sentence = as_message(
            "No text was said often enough to pass the gate. Upload more at once, or see what else helps."
        )
        return Obstacle(Blocker.NOTHING_PASSED, sentence, (upload, Act(ActKind.SEE_WHAT_PASSES)))
    if pools.exists() and not pools.exclude(state=DatasetState.REFUSED).exists():
        sentence = as_message("The upload was refused. Its page says why; upload the file again once it is mended.")
        newest = pools.order_by("-pk")[0]
        return Obstacle(Blocker.REFUSED, sentence, (upload, Act(ActKind.SEE_UPLOAD, subject=str(newest.pk))))
    sentence = as_message("Upload a pool: the records that questions are asked about.")
    return Obstacle(Blocker.POOL, sentence, (upload,))


def _unread(project: Project, dataset: Dataset) -> Obstacle | None:
    """Say what an upload waits for before anything of it can be asked; None where nothing does."""
    job: Job | None = dataset.job
    if job is not None and job.state == WorkState.DONE:
        job = dataset.gate_job
    if job is None or job.state == WorkState.DONE or dataset.state == DatasetState.REFUSED:
        return None
    if job.state == WorkState.FAILED:
        price = charges.upload_charge(project, dataset.role, dataset)
        if job.pk == dataset.job_id:
            sentence = as_message("Reading the upload was stopped. Start it anew.")
            return Obstacle(Blocker.FAILED, sentence, (_anew("job", str(job.pk), price),))
        sentence = as_message("The gate ended without a result. Send the upload through it again.")
        return Obstacle(Blocker.GATE_FAILED, sentence, (Act(ActKind.GATE_AGAIN, price, str(dataset.pk)),))
    if job.state == WorkState.WAITING and Job.objects.filter(pk=job.pk, created_at__lt=Now() - PATIENCE).exists():
        return _no_worker(job.created_at)
    sentence = as_message("The upload is being read. Questions come by themselves.")
    if blockers.has_nobody(project):
        return blockers.nobody(project)
    return Obstacle(Blocker.READING, sentence)


def _anew(kind: str, key: str, price: Cost | None) -> Act:
    return Act(ActKind.START_ANEW, price, f"{kind} {key}")


def _answers(project: Project) -> Obstacle:
    """Say who has to answer, or which time has to come."""
    block = secret_selectors.open_block(project)
    found = blockers.obstacle_for(project)
    if block is not None:
        # The same offer whatever is answered: when a block is closed shows outside, and must not follow the answers.
        close = Act(ActKind.CLOSE_BLOCK, training_price(project), str(block.block))
        sentence = as_message(
            "Block {block} may be closed before its time: choose the day by the calendar, not by the answers, since it "
            "shows outside.",
            block=block.block,
        )
        if found is None:
            return Obstacle(Blocker.BLOCK, sentence, (close,), block.closes_at)
        both = joined_messages(" ", [found.sentence, sentence])
        return replace(found, sentence=both, acts=(*found.acts, close), goes_on_at=block.closes_at)
    if found is not None:
        return found
    closes = StreamBatch.objects.filter(stream__project=project, closes_at__gt=Now()).aggregate(at=Min("closes_at"))[
        "at"
    ]
    return Obstacle(Blocker.WINDOW, as_message("Nothing is to be done until the window's time comes."), (), closes)


def _few_labels(project: Project) -> Obstacle:
    sentence = as_message("Train a model on what there is, or upload more.")
    upload = Act(ActKind.UPLOAD, charges.upload_charge(project, DatasetRole.POOL))
    return Obstacle(Blocker.FEW_LABELS, sentence, (Act(ActKind.TRAIN_ON_FEW, training_price(project)), upload))


def _labels_spent(project: Project) -> Obstacle:
    sentence = as_message("Raise the annotation budget to ask on.")
    return Obstacle(Blocker.LABELS_SPENT, sentence, (Act(ActKind.RAISE_ANSWERS),))


def _cannot_pay(project: Project) -> Obstacle:
    account = project.pool_account if project.arrival == Arrival.STREAM else training_account(project)
    acts = [Act(ActKind.RAISE_LIMIT, subject=str(account.pk))]
    quota = quota_of(account)
    if quota is not None:
        acts.append(Act(ActKind.SEE_POPULATION, subject=quota.population.slug))
    sentence = as_message("Raise the limit of the budget, if what its people lose then is worth the next model.")
    return Obstacle(Blocker.BUDGET, sentence, tuple(acts))


def _stuck(project: Project) -> Obstacle:
    held = ModelRelease.objects.filter(project=project, state=ReleaseState.CANDIDATE).exclude(held_back="").first()
    if held is not None:
        sentence = as_message("Have version {version} checked again once the reason is mended.", version=held.version)
        return Obstacle(Blocker.HELD_BACK, sentence, (Act(ActKind.CHECK_AGAIN, subject=str(held.version)),))
    row = failures.start_anew_of(project)
    assert row is not None, "what stops a project can be started anew"
    kind = "round" if isinstance(row, Round) else "training"
    sentence = as_message("Start it anew once the reason is mended; nobody else does.")
    return Obstacle(Blocker.FAILED, sentence, (_anew(kind, str(row.pk), failures.price_of(project, row)),))


def _finished(project: Project) -> Obstacle:
    newest = newest_release(project)
    look = () if newest is None else (Act(ActKind.SEE_RELEASE, subject=str(newest.version)),)
    if newest is not None and (loses_to := beaten_by(newest)):
        sentence = (
            as_message("The newest version is no better than always giving one answer. Its page says what would help.")
            if loses_to == "constant"
            else as_message(
                "The newest version is no better than the words about the classes. Its page says what would help."
            )
        )
        return Obstacle(Blocker.BEATEN, sentence, look)
    made = releases_of(project).values_list("version", flat=True).first() or 0
    if project.maximum_releases is not None and made >= project.maximum_releases:
        sentence = as_message("Use the newest version; plan more versions if it should go on.")
        return Obstacle(Blocker.VERSIONS, sentence, (*look, Act(ActKind.PLAN_MORE_VERSIONS)))
    if secret_selectors.labels_in_secret(project):
        sentence = as_message(
            "Use the newest version: every block of this project is used, and more needs another project."
        )
        return Obstacle(Blocker.BLOCKS_USED, sentence, look)
    sentence = as_message("Use the newest version, or upload more to ask about.")
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
