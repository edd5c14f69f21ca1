"""What was released, who may see it, and what a project does next and why."""

from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum, TextChoices
from django.utils.translation import gettext_lazy as _

from annotation import selectors as annotation_selectors
from annotation.label_budget import questions_left
from annotation.models import (
    Arrival,
    Consensus,
    Dataset,
    Features,
    Oracle,
    Project,
    ProjectState,
    Query,
    QueryState,
    Role,
    Selection,
    WorkState,
)
from annotation.sheets import start_account
from learner import pool_selectors, repeat_selectors, secret_selectors, stream_configuration, stream_selectors
from learner.blocks import block_rates
from learner.configuration import (
    estimator_of,
    featurizer_of,
    first_block_rate,
    projection_event,
    screen_of,
    secret_sample_of,
    strategy_of,
)
from learner.models import FeatureProjection, ModelRelease, ReleaseState, Round, TrainingRun, WarmStart
from learner.policies import UpdatePolicy, labels_needed
from learner.secret_selectors import TrainedOn
from privacy.accounting.event import Event
from privacy.accounting.events import ExposureCappedScreenEvent, ScreenRoundEvent
from privacy.charges import price
from privacy.models import BudgetAccount, EntryKind, Filter, LedgerEntry
from privacy.selectors import guarantee, last_entry
from privacy.wording import say

Person = AbstractBaseUser | AnonymousUser
UNFINISHED = (WorkState.WAITING, WorkState.RUNNING)
# Questions in these states have no agreed answer, unless one was emptied later.
GIVEN_UP = (QueryState.DISPUTED, QueryState.SET_ASIDE, QueryState.WITHDRAWN)
# A round that keeps failing waits for a person instead of trying for ever.
MAX_FAILED_ROUNDS = 3
# Who may see a project's releases.
MODEL_ROLES = (Role.ENGINEER, Role.MANAGER)


class Step(TextChoices):
    """What a project does now, or what is to be done next."""

    PAUSED = "paused", _("paused")
    CHOOSING = "choosing", _("choosing questions")
    TRAINING = "training", _("training")
    ASK = "ask", _("about to ask")
    TRAIN = "train", _("about to train")
    LABELLING = "labelling", _("labelling")
    WAITING_FOR_POOL = "waiting_for_pool", _("waiting for a pool")
    LABELS_SPENT = "labels_spent", _("annotation budget spent")
    CANNOT_PAY = "cannot_pay", _("budget spent")
    STUCK = "stuck", _("needs attention")
    FINISHED = "finished", _("finished")


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """Where a project stands: the step, and a sentence that says so to a person."""

    step: Step
    sentence: str


def projects_with_models(person: Person) -> QuerySet[Project]:
    """Return the projects whose releases the person may see, as engineer or as manager."""
    return annotation_selectors.projects_of(person, roles=MODEL_ROLES)


def accounts_of(project: Project) -> list[BudgetAccount]:
    """Return the accounts whose limits are a release's guarantee: the pool's, any labellers', any private start's."""
    own = (project.pool_account, project.labels_account, start_account(project))
    return [account for account in own if account is not None]


def releases_of(project: Project) -> QuerySet[ModelRelease]:
    """Return the releases of a project, newest first."""
    related = ("project", "entry", "training_run__project", "training_run__block")
    found = ModelRelease.objects.filter(project=project).select_related(*related)
    return found.prefetch_related("evaluations__dataset").order_by("-version")


def latest_release(project: Project) -> ModelRelease | None:
    """Return the newest release that is not retired."""
    return releases_of(project).filter(state=ReleaseState.RELEASED).first()


def find_release(project: Project, version: str) -> ModelRelease | None:
    """Return the release of that number, or the newest that is not retired for `latest`; None if there is none."""
    number = version_number(version)
    return latest_release(project) if number is None else releases_of(project).filter(version=number).first()


def version_number(version: str) -> int | None:
    """Return the number an address names, 0 where it names none there can be; None for `latest`."""
    if version == "latest":
        return None
    # No column holds more digits than that.
    return int(version) if version.isdecimal() and len(version) < 10 else 0


def trained_on(run: TrainingRun) -> TrainedOn:
    """Return what may be said outside of what a training used.

    Visible rounds: the questions asked when it was started; how many of them got an agreed answer depends on what the
    records hold. A secret block: the size of the pool and the rate of the coins, which are public, and nothing else.
    """
    if run.stream_batches is not None:
        return stream_selectors.trained_on(run)
    if run.block is not None:
        sample = secret_sample_of(run.project, block=run.block.block or 0)
        return TrainedOn(pool_size=run.block.requested, rate=sample.rate)
    asked = Round.objects.filter(project=run.project_id, state=WorkState.DONE, finished_at__lte=run.created_at)
    return TrainedOn(questions=int(asked.aggregate(questions=Sum("selected", default=0))["questions"]))


def rounds_behind(run: TrainingRun) -> list[int]:
    """Return the numbers of the rounds whose questions a training used; none of a stream, which has no rounds."""
    if run.stream_batches is not None:
        return []
    done = Round.objects.filter(project=run.project_id, state=WorkState.DONE)
    # The numbers say nothing about answers: rounds are listed for whoever may see a release.
    used = (
        done.filter(block__lte=run.block.block)
        if run.block is not None
        else done.filter(finished_at__lte=run.created_at)
    )
    return list(used.order_by("number").values_list("number", flat=True))


def asked_in(chosen: Round) -> dict[str, int | float | None]:
    """Return what may be said outside of how many questions a round asks."""
    if chosen.block is None:
        return {"requested": chosen.requested, "selected": chosen.selected, "pool_size": None, "sampling_rate": None}
    rate = secret_sample_of(chosen.project, block=chosen.block).rate
    return {"requested": None, "selected": None, "pool_size": chosen.requested, "sampling_rate": rate}


def rounds_of(project: Project) -> QuerySet[Round]:
    """Return the rounds of a project, newest first."""
    related = ("project", "model", "committed_entry")
    return Round.objects.filter(project=project).select_related(*related).order_by("-number")


def lineage_of(release: ModelRelease) -> QuerySet[LedgerEntry]:
    """Return the ledger entries a release descends from, its own among them."""
    return release.lineage.select_related("account", "parent").order_by("account_id", "sequence")


@dataclass(frozen=True, slots=True)
class QuestionCounts:
    """How many questions of a project are where.

    `unagreed` holds those that were given up without an agreed answer, disputed ones among them, and `unagreed_before`
    how many those were when the newest training began.
    """

    open: int
    agreed: int
    disputed: int
    unagreed: int
    unused: int
    unagreed_before: int

    @property
    def done(self) -> int:
        """Questions that nobody is asked any more, whatever came of them."""
        return self.agreed + self.unagreed

    @property
    def done_before(self) -> int:
        """Those that were done when the newest training began."""
        return self.agreed - self.unused + self.unagreed_before

    @property
    def newly_done(self) -> int:
        """Those that were done since; fewer than nothing where some were asked again."""
        return max(0, self.done - self.done_before)


def question_counts(project: Project) -> QuestionCounts:
    """Count the questions people work on, what they agreed on, and what of that no training has used."""
    agreed_on = Exists(Consensus.objects.filter(query=OuterRef("pk")))
    # One statement for each table: numbers that are compared must come from the same moment.
    asked = Query.objects.filter(project=project).aggregate(
        open=Count("pk", filter=Q(state=QueryState.OPEN)),
        disputed=Count("pk", filter=Q(state=QueryState.DISPUTED)),
        unagreed=Count("pk", filter=Q(state__in=GIVEN_UP, round_number__isnull=False) & ~Q(agreed_on)),
    )
    answered = Consensus.objects.filter(project=project).aggregate(
        agreed=Count("pk"), unused=Count("pk", filter=Q(pk__gt=project.labels_used_through))
    )
    newest = TrainingRun.objects.filter(project=project).order_by("-created_at").first()
    return QuestionCounts(**asked, **answered, unagreed_before=newest.unagreed if newest else 0)


def project_status(project: Project) -> ProjectStatus:
    """Say what a project does now, or which step is due."""
    if project.state == ProjectState.ARCHIVED:
        return ProjectStatus(Step.PAUSED, say("The project is archived: it can only be read."))
    if project.state == ProjectState.DELETED:
        return ProjectStatus(Step.PAUSED, say("The project is deleted; what is left of it can only be read."))
    if project.state == ProjectState.PAUSED:
        return ProjectStatus(
            Step.PAUSED, say("The project is paused: no question is handed out and nothing is trained.")
        )
    training = TrainingRun.objects.filter(project=project, state__in=UNFINISHED).first()
    if training is not None:
        return ProjectStatus(
            Step.TRAINING,
            say(
                "Version {version} is being trained on {labels} labels.",
                version=training.version,
                labels=training.labels_used,
            ),
        )
    newest = releases_of(project).first()
    if newest is not None and newest.state == ReleaseState.CANDIDATE:
        return _candidate_status(newest)
    if project.arrival == Arrival.STREAM:
        return _stream_step(project)
    choosing = Round.objects.filter(project=project, state__in=UNFINISHED).first()
    if choosing is not None and choosing.block is not None:
        return ProjectStatus(
            Step.CHOOSING, say("Secret coins choose the questions of block {block}.", block=choosing.block)
        )
    if choosing is not None:
        return ProjectStatus(
            Step.CHOOSING, say("The questions of round {number} are being chosen.", number=choosing.number)
        )
    return _due_step(project)


def _stream_step(project: Project) -> ProjectStatus:
    """Say what a stream waits for; a worker does whatever is due by itself."""
    version = stream_selectors.releases_made(project)
    if project.maximum_releases is not None and version >= project.maximum_releases:
        return ProjectStatus(
            Step.FINISHED, say("Finished: version {version} is the last one planned.", version=version)
        )
    if stream_selectors.failed_releases(project) >= stream_selectors.MAX_FAILED_RELEASES:
        return ProjectStatus(Step.STUCK, say("Releasing version {version} failed several times.", version=version + 1))
    stream = stream_selectors.stream_of(project)
    paid = stream is not None and stream.entry_id is not None
    if not paid and not can_pay(project.pool_account, [stream_configuration.stream_event(project)]):
        return ProjectStatus(
            Step.CANNOT_PAY,
            say(
                "The whole stream pays once, and the budget {label} is too small for that: {left} left. "
                "Records wait. A manager can raise its limit.",
                label=project.pool_account.label,
                left=guarantee(project.pool_account).left_wording,
            ),
        )
    if stream_selectors.has_work(project):
        return ProjectStatus(Step.CHOOSING, say("Records are being examined."))
    if stream is None or not stream_selectors.waits_for_answers(project, stream):
        return ProjectStatus(Step.WAITING_FOR_POOL, say("Every record that came was examined; post more."))
    if questions_left(project) == 0:
        return ProjectStatus(Step.LABELS_SPENT, say("The annotation budget is spent. A manager can raise its limit."))
    if project.hides_selection:
        return ProjectStatus(Step.LABELLING, say("A window waits for its public time; its update is made then."))
    counts = question_counts(project)
    return ProjectStatus(
        Step.LABELLING, say("{open} questions are open; batches update the model in their order.", open=counts.open)
    )


def _candidate_status(candidate: ModelRelease) -> ProjectStatus:
    if candidate.held_back:
        return ProjectStatus(
            Step.STUCK,
            say("Version {version} is held back. {reason}", version=candidate.version, reason=candidate.held_back),
        )
    return ProjectStatus(
        Step.TRAINING, say("Version {version} is trained and being checked.", version=candidate.version)
    )


def _due_step(project: Project) -> ProjectStatus:
    newest = releases_of(project).first()
    version = newest.version if newest else 0
    if project.maximum_releases is not None and version >= project.maximum_releases:
        return ProjectStatus(
            Step.FINISHED, say("Finished: version {version} is the last one planned.", version=version)
        )
    if secret_selectors.labels_in_secret(project):
        return _due_secret_step(project, version)
    counts = question_counts(project)
    affordable = questions_left(project)
    strategy = next_strategy(project)
    if strategy == Selection.REPEAT_VOTES:
        affordable = repeat_selectors.affordable_repeats(project)
    screened = screen_of(project) is not None and strategy == project.selection
    left = affordable != 0 and (
        strategy == Selection.REPEAT_VOTES or pool_selectors.has_candidates(project, screened=screened)
    )
    # Questions done with, not labels agreed on: when a model is trained shows outside, and so does another round before
    # it. Neither may depend on whether a question got an agreed answer, which is up to the record it is about.
    missing = labels_needed(
        UpdatePolicy(project.update_policy),
        labels_now=counts.done,
        labels_at_last_release=counts.done_before,
        labels_per_release=project.labels_per_release,
    )
    # Of nothing at all no model can be made.
    if counts.agreed and (not missing or (counts.newly_done and not counts.open and not left)):
        return _if_paid(
            project,
            Step.TRAIN,
            say(
                "Version {version} can be trained: {unused} new labels wait.", version=version + 1, unused=counts.unused
            ),
        )
    if not _round_is_due(project, newest, counts.open):
        return ProjectStatus(
            Step.LABELLING,
            say(
                "{open} questions are open; when {missing} more are done, version {version} is trained.",
                open=counts.open,
                missing=missing,
                version=version + 1,
            ),
        )
    if affordable == 0:
        return ProjectStatus(
            Step.LABELS_SPENT,
            say(
                "The annotation budget is spent; version {version} is the newest. A manager can raise its limit.",
                version=version,
            ),
        )
    if not left:
        return _without_candidates(project, version)
    failed = _failures_in_a_row(project)
    if len(failed) >= MAX_FAILED_ROUNDS:
        return ProjectStatus(
            Step.STUCK,
            say("Choosing questions failed {failed} times, last: {reason}", failed=len(failed), reason=failed[0].error),
        )
    return _if_paid(project, Step.ASK, say("The next questions can be chosen."))


def _due_secret_step(project: Project, version: int) -> ProjectStatus:
    """Walk from block to block; which step is due follows from public times and releases alone."""
    block = secret_selectors.current_block(project)
    if block is not None and secret_selectors.is_closed(block):
        return _if_paid(
            project,
            Step.TRAIN,
            say(
                "Block {block} is closed: version {version} can be trained on it.",
                block=block.block,
                version=version + 1,
            ),
        )
    if block is not None:
        left = question_counts(project).open
        return ProjectStatus(
            Step.LABELLING,
            say(
                "Block {block} closes at {closes_at} and version {version} is trained "
                "then, whatever is answered; {left} questions are open.",
                block=block.block,
                closes_at=f"{block.closes_at:%Y-%m-%d %H:%M} UTC",
                version=version + 1,
                left=left,
            ),
        )
    following = secret_selectors.next_block(project)
    if following is None:
        return ProjectStatus(
            Step.FINISHED, say("Every block has been asked about; version {version} is the newest.", version=version)
        )
    if not pool_selectors.pool_size(project):
        return ProjectStatus(Step.WAITING_FOR_POOL, say("There is nothing to ask yet: upload a pool."))
    failed = _failures_in_a_row(project)
    if len(failed) >= MAX_FAILED_ROUNDS:
        return ProjectStatus(
            Step.STUCK,
            say("Choosing questions failed {failed} times, last: {reason}", failed=len(failed), reason=failed[0].error),
        )
    return _if_paid(project, Step.ASK, say("The questions of block {block} can be chosen.", block=following))


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


def _without_candidates(project: Project, version: int) -> ProjectStatus:
    if Round.objects.filter(project=project, state=WorkState.DONE).exists():
        return ProjectStatus(
            Step.FINISHED,
            say(
                "Everything that could be asked was asked; version {version} is the newest. Upload more data.",
                version=version,
            ),
        )
    if project.oracle == Oracle.CROWD:
        return ProjectStatus(Step.WAITING_FOR_POOL, say("Nothing has passed the gate yet: upload a pool."))
    return ProjectStatus(Step.WAITING_FOR_POOL, say("There is nothing to ask yet: upload a pool."))


def _failures_in_a_row(project: Project) -> list[Round]:
    """Return the failed rounds since the last good one, newest first."""
    newest = list(Round.objects.filter(project=project).order_by("-number")[:MAX_FAILED_ROUNDS])
    good = next((place for place, row in enumerate(newest) if row.state != WorkState.FAILED), len(newest))
    return newest[:good]


def _if_paid(project: Project, step: Step, sentence: str) -> ProjectStatus:
    """Return the step, or why the account it needs cannot pay; asking counts the training it is for."""
    stopped = cancelled_work(project, step)
    if stopped is not None:
        anew = say("A manager can start it anew on the dashboard.")
        return ProjectStatus(Step.STUCK, " ".join([stopped.error, anew]))
    events = [training_event(project)]
    paying = training_account(project)
    if paying.pk == project.pool_account_id:
        events += pending_projection(project)
    if step == Step.ASK and not secret_selectors.labels_in_secret(project) and project.oracle == Oracle.TRUSTED:
        events.append(next_round_event(project))
    if can_pay(paying, events):
        return ProjectStatus(step, sentence)
    left = guarantee(paying).left_wording
    wanted = say("the next questions and the model trained on them") if step == Step.ASK else say("the next model")
    still_open = question_counts(project).open
    told = [
        say(
            "The budget {label} has {left} left, too little for {reason}.", label=paying.label, left=left, reason=wanted
        ),
        say("Answers are kept, and {open} questions are open.", open=still_open)
        if still_open
        else say("Answers are kept."),
        say("A manager can raise its limit."),
    ]
    return ProjectStatus(Step.CANNOT_PAY, " ".join(told))


def cancelled_work(project: Project, step: Step) -> Round | TrainingRun | None:
    """Return the round or training that was cancelled where the next one is due: nobody starts that but a person."""
    newest: Round | TrainingRun | None
    if step == Step.ASK:
        newest = Round.objects.filter(project=project).order_by("-number").first()
    else:
        newest = TrainingRun.objects.filter(project=project).order_by("-created_at").first()
    return newest if newest is not None and newest.state == WorkState.FAILED and newest.cancelled_by else None


def may_start_anew(project: Project, row: Round | TrainingRun) -> bool:
    """Say whether a round or training that ended without a result is the newest of its kind and nothing else runs."""
    if row.state != WorkState.FAILED or project.arrival == Arrival.STREAM or project.state != ProjectState.ACTIVE:
        return False
    kinds = (Round, TrainingRun)
    if any(kind.objects.filter(project=project, state__in=UNFINISHED).exists() for kind in kinds):
        return False
    if secret_selectors.labels_in_secret(project) and not _block_is_due(project, row):
        return False
    candidate = ModelRelease.objects.filter(project=project, state=ReleaseState.CANDIDATE).exists()
    newest = type(row).objects.filter(project=project).order_by("-created_at", "-pk").first()
    return not candidate and newest is not None and newest.pk == row.pk


def _block_is_due(project: Project, row: Round | TrainingRun) -> bool:
    """Say whether a secret block still has to give the model of `row`, or to be opened."""
    block = secret_selectors.current_block(project)
    if isinstance(row, TrainingRun):
        return block is not None and row.block_id == block.pk
    return block is None and secret_selectors.next_block(project) is not None


def pending_projection(project: Project) -> list[Event]:
    """Return the event of finding the project's features, until they are found: whatever comes first needs them."""
    if project.features != Features.PRINCIPAL or FeatureProjection.objects.filter(project=project).exists():
        return []
    return [projection_event(project)]


def training_account(project: Project) -> BudgetAccount:
    """Return the account that pays for training: in a crowd project the labellers', else the pool's."""
    return project.labels_account or project.pool_account


def training_event(project: Project) -> Event:
    """Return the accountant's event of the project's next training."""
    if secret_selectors.labels_in_secret(project):
        return _next_secret_event(project)
    featurizer = featurizer_of(project)
    return estimator_of(project, featurizer).event_for(featurizer.dimension)


def _next_secret_event(project: Project) -> Event:
    """Return the event of the open block's release, or of the one that the next block will give."""
    current = secret_selectors.current_block(project)
    number = current.block if current is not None else secret_selectors.next_block(project)
    # Where all blocks are used no training will come, and the last one's price stands for it.
    return secret_selectors.release_event(
        project, block=number or len(block_rates(first_block_rate(project))), chosen=current
    )


def next_strategy(project: Project) -> str:
    """Return what chooses the next round: chance, until a model is released or public examples start one.

    A crowd project with half of its texts asked asks again first where answers leave a doubt.
    """
    if repeat_selectors.asks_again(project):
        return Selection.REPEAT_VOTES
    strategy = strategy_of(project, project.selection)
    return strategy.name if not strategy.needs_model or can_score(project) else Selection.RANDOM


def can_score(project: Project) -> bool:
    """Say whether there is a release or a start to score with."""
    return latest_release(project) is not None or start_of(project) is not None


def start_of(project: Project) -> Dataset | None:
    """Return the upload that starts the first model: a private one that is paid for or can pay, else the newest public.

    Where attempts that died have used the private one's account up, the project goes on without it.
    """
    charged = pool_selectors.charged_start(project)
    if charged is not None and charged.account is not None:
        paid = WarmStart.objects.filter(dataset=charged).exists()
        if paid or can_pay(charged.account, [start_event(project)]):
            return charged
    return pool_selectors.start_datasets(project).last()


def start_event(project: Project) -> Event:
    """Return the accountant's event of the one training on private examples that start the first model."""
    featurizer = featurizer_of(project)
    return estimator_of(project, featurizer).event_for(featurizer.dimension)


def start_entries(project: Project) -> list[LedgerEntry]:
    """Return the committed entry of the private start, which all that came after it descends from."""
    paid = WarmStart.objects.filter(dataset__project=project, entry__isnull=False)
    return [start.entry for start in paid.select_related("entry__account", "entry__parent") if start.entry is not None]


def next_round_event(project: Project) -> Event:
    """Return the event of the round a trusted project would choose now."""
    pool_size = pool_selectors.unasked_records(project).count()
    return strategy_of(project, next_strategy(project)).event_for(
        pool_size=pool_size, picks=min(project.round_size, pool_size), series=round_series(project)
    )


def round_series(project: Project) -> Literal["opened", "continued"]:
    """Say whether an earlier round has paid for what its series exposes of each record.

    An attempt that died has shown what it drew, for all the ledger knows: a screen's coins come on top of the looks
    that are counted, and what top-c picked is still in the pool and may be picked once more. So the next attempt pays
    for a series of its own.
    """
    kinds = (ExposureCappedScreenEvent.kind, ScreenRoundEvent.kind) if screen_of(project) else (Selection.TOP_C,)
    rounds = LedgerEntry.objects.filter(account=project.pool_account, kind=EntryKind.RESERVE, mechanism__in=kinds)
    last = rounds.exclude(children__kind=EntryKind.VOID).order_by("-sequence").first()
    whole = last is not None and last.children.filter(kind=EntryKind.COMMIT).exists()
    return "continued" if whole else "opened"


def can_pay(account: BudgetAccount, events: list[Event]) -> bool:
    """Say whether an account could admit these operations now; the database has the last word."""
    charges = [price(account, event) for event in events]
    last = last_entry(account) or LedgerEntry(epsilon_spent_nano=0, delta_spent_atto=0, rho_spent_nano=0)
    if last.delta_spent_atto + sum(charge.delta_atto for charge in charges) > account.delta_sum_limit_atto:
        return False
    if account.filter == Filter.PURE:
        wanted = sum(charge.epsilon_nano or 0 for charge in charges)
        return last.epsilon_spent_nano + wanted <= account.epsilon_limit_nano
    return last.rho_spent_nano + sum(charge.rho_nano or 0 for charge in charges) <= (account.rho_limit_nano or 0)
