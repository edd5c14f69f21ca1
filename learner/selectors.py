"""What was released, who may see it, and what a project does next and why."""

from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Count, Q, QuerySet, Sum, TextChoices
from django.utils.translation import gettext_lazy as _

from annotation import selectors as annotation_selectors
from annotation.models import Consensus, Oracle, Project, ProjectState, Query, QueryState, Role, Selection, WorkState
from learner import pool_selectors
from learner.configuration import estimator_of, featurizer_of, strategy_of
from learner.models import ModelRelease, ReleaseState, Round, TrainingRun
from learner.policies import UpdatePolicy, labels_needed
from privacy.accounting.event import Event
from privacy.charges import price
from privacy.models import BudgetAccount, EntryKind, Filter, LedgerEntry
from privacy.selectors import guarantee, last_entry

Person = AbstractBaseUser | AnonymousUser
UNFINISHED = (WorkState.WAITING, WorkState.RUNNING)
# A round that keeps failing waits for a person instead of trying for ever.
MAX_FAILED_ROUNDS = 3


class Step(TextChoices):
    """What a project does now, or what is to be done next."""

    PAUSED = "paused", _("paused")
    CHOOSING = "choosing", _("choosing questions")
    TRAINING = "training", _("training")
    ASK = "ask", _("about to ask")
    TRAIN = "train", _("about to train")
    LABELLING = "labelling", _("labelling")
    WAITING_FOR_POOL = "waiting_for_pool", _("waiting for a pool")
    CANNOT_PAY = "cannot_pay", _("budget spent")
    STUCK = "stuck", _("needs attention")
    FINISHED = "finished", _("finished")


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """Where a project stands: the step, and a sentence that says so to a person."""

    step: Step
    sentence: str


def projects_with_models(person: Person) -> QuerySet[Project]:
    """Return the projects whose releases the person may see: as engineer, as manager, or as superuser."""
    if getattr(person, "is_superuser", False):
        return Project.objects.all()
    return annotation_selectors.projects_of(person, roles=(Role.ENGINEER, Role.MANAGER))


def accounts_of(project: Project) -> list[BudgetAccount]:
    """Return the accounts whose limits are a release's guarantee: the pool's and, if any, the labellers'."""
    return [account for account in (project.pool_account, project.labels_account) if account is not None]


def releases_of(project: Project) -> QuerySet[ModelRelease]:
    """Return the releases of a project, newest first."""
    found = ModelRelease.objects.filter(project=project).select_related("project", "entry", "training_run")
    return found.prefetch_related("evaluations__dataset").order_by("-version")


def latest_release(project: Project) -> ModelRelease | None:
    """Return the newest release that is not retired."""
    return releases_of(project).filter(state=ReleaseState.RELEASED).first()


def questions_asked(run: TrainingRun) -> int:
    """Count the questions asked when a training was started.

    This is what may be said of it outside: how many of them got an agreed answer depends on what the records hold.
    """
    asked = Round.objects.filter(project=run.project_id, state=WorkState.DONE, finished_at__lte=run.created_at)
    return int(asked.aggregate(questions=Sum("selected", default=0))["questions"])


def rounds_of(project: Project) -> QuerySet[Round]:
    """Return the rounds of a project, newest first."""
    return Round.objects.filter(project=project).select_related("model", "committed_entry").order_by("-number")


def lineage_of(release: ModelRelease) -> QuerySet[LedgerEntry]:
    """Return the ledger entries a release descends from, its own among them."""
    return release.lineage.select_related("account", "parent").order_by("account_id", "sequence")


@dataclass(frozen=True, slots=True)
class QuestionCounts:
    """How many questions of a project are where."""

    open: int
    agreed: int
    disputed: int
    unused: int


def question_counts(project: Project) -> QuestionCounts:
    """Count the questions people work on, what they agreed on, and what of that no training has used."""
    # One statement for each table: numbers that are compared must come from the same moment.
    asked = Query.objects.filter(project=project).aggregate(
        open=Count("pk", filter=Q(state=QueryState.OPEN)), disputed=Count("pk", filter=Q(state=QueryState.DISPUTED))
    )
    answered = Consensus.objects.filter(project=project).aggregate(
        agreed=Count("pk"), unused=Count("pk", filter=Q(pk__gt=project.labels_used_through))
    )
    return QuestionCounts(**asked, **answered)


def project_status(project: Project) -> ProjectStatus:
    """Say what a project does now, or which step is due."""
    if project.state == ProjectState.PAUSED:
        return ProjectStatus(Step.PAUSED, "The project is paused: no question is handed out and nothing is trained.")
    training = TrainingRun.objects.filter(project=project, state__in=UNFINISHED).first()
    if training is not None:
        return ProjectStatus(
            Step.TRAINING, f"Version {training.version} is being trained on {training.labels_used} labels."
        )
    choosing = Round.objects.filter(project=project, state__in=UNFINISHED).first()
    if choosing is not None:
        return ProjectStatus(Step.CHOOSING, f"The questions of round {choosing.number} are being chosen.")
    return _due_step(project)


def _due_step(project: Project) -> ProjectStatus:
    newest = releases_of(project).first()
    version = newest.version if newest else 0
    if project.maximum_releases is not None and version >= project.maximum_releases:
        return ProjectStatus(Step.FINISHED, f"Finished: version {version} is the last one planned.")
    counts = question_counts(project)
    left = pool_selectors.has_candidates(project)
    missing = labels_needed(
        UpdatePolicy.PER_ROUND,
        labels_now=counts.agreed,
        labels_at_last_release=counts.agreed - counts.unused,
        labels_per_release=project.labels_per_release,
    )
    if not missing or (counts.unused and not counts.open and not left):
        return _if_paid(project, Step.TRAIN, f"Version {version + 1} can be trained: {counts.unused} new labels wait.")
    if not _round_is_due(project, newest, counts.open):
        return ProjectStatus(
            Step.LABELLING, f"{counts.open} questions are open; {missing} more labels start version {version + 1}."
        )
    if not left:
        return _without_candidates(project, version)
    failed = _failures_in_a_row(project)
    if len(failed) >= MAX_FAILED_ROUNDS:
        return ProjectStatus(Step.STUCK, f"Choosing questions failed {len(failed)} times, last: {failed[0].error}")
    return _if_paid(project, Step.ASK, "The next questions can be chosen.")


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
            f"Everything that could be asked was asked; version {version} is the newest. Upload more data.",
        )
    if project.oracle == Oracle.CROWD:
        return ProjectStatus(Step.WAITING_FOR_POOL, "Nothing has passed the gate yet: upload a pool.")
    return ProjectStatus(Step.WAITING_FOR_POOL, "There is nothing to ask yet: upload a pool.")


def _failures_in_a_row(project: Project) -> list[Round]:
    """Return the failed rounds since the last good one, newest first."""
    newest = list(Round.objects.filter(project=project).order_by("-number")[:MAX_FAILED_ROUNDS])
    good = next((place for place, row in enumerate(newest) if row.state != WorkState.FAILED), len(newest))
    return newest[:good]


def _if_paid(project: Project, step: Step, sentence: str) -> ProjectStatus:
    """Return the step, or why the account it needs cannot pay; asking counts the training it is for."""
    events = [training_event(project)]
    paying = training_account(project)
    if step == Step.ASK and project.oracle == Oracle.TRUSTED:
        events.append(next_round_event(project))
    if can_pay(paying, events):
        return ProjectStatus(step, sentence)
    left = guarantee(paying).left_wording
    wanted = "the next questions and the model trained on them" if step == Step.ASK else "the next model"
    return ProjectStatus(
        Step.CANNOT_PAY,
        f"The budget {paying.label} has {left} left, too little for {wanted}. A manager can raise its limit.",
    )


def training_account(project: Project) -> BudgetAccount:
    """Return the account that pays for training: in a crowd project the labellers', else the pool's."""
    return project.labels_account or project.pool_account


def training_event(project: Project) -> Event:
    """Return the accountant's event of the project's next training."""
    featurizer = featurizer_of(project)
    return estimator_of(project, featurizer).event_for(featurizer.dimension)


def next_strategy(project: Project) -> str:
    """Return what chooses the next round: chance, until a model is released."""
    strategy = strategy_of(project, project.selection)
    return Selection.RANDOM if strategy.needs_model and latest_release(project) is None else strategy.name


def next_round_event(project: Project) -> Event:
    """Return the event of the round a trusted project would choose now."""
    pool_size = pool_selectors.unasked_records(project).count()
    return strategy_of(project, next_strategy(project)).event_for(
        pool_size=pool_size, picks=min(project.round_size, pool_size), series=round_series(project)
    )


def round_series(project: Project) -> Literal["opened", "continued"]:
    """Say whether an earlier top-c round has paid for the one exposure of each record; its crash would have, too."""
    paid = LedgerEntry.objects.filter(
        account=project.pool_account, kind=EntryKind.RESERVE, mechanism=Selection.TOP_C
    ).exclude(children__kind=EntryKind.VOID)
    return "continued" if paid.exists() else "opened"


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
