"""Tables of the dashboard: shown on the page, drawn as charts, sent as files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any

from django.db.models import Count, F, Max, Q, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import models
from annotation.budget import charges, presenters
from annotation.budget.spending import spending_amounts
from annotation.choices.measures import measure_of
from annotation.choices.rules import hides_selection
from annotation.models import UNFINISHED, Consensus, Dataset, DatasetState, Job, Label, Project, WorkState
from annotation.models.quality import QualityReport
from annotation.review import selectors
from learner.models import Round, TrainingRun
from learner.pools import records
from learner.releases import evaluations as evaluation_selectors
from learner.rounds import failures
from privacy.accounting.composition import zcdp_epsilon
from privacy.accounting.cost import Cost, atto_spendable, nano_spendable, nano_spent
from privacy.ledger.models import BudgetAccount, EntryKind, Filter, LedgerEntry

# Above so many entries an account's history is one point a day.
EVERY_ENTRY = 200
WORK_SHOWN = 30
SOON = 5


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    heading: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Work:
    kind: str
    key: str
    row: Job | Round | TrainingRun
    title: str
    created_at: datetime
    seconds_left: float | None
    can_cancel: bool
    can_retry: bool
    price: Cost | None = None

    @property
    def percent(self) -> int | None:
        total = self.row.progress_total
        return min(100, 100 * self.row.progress_done // total) if total else None

    @property
    def minutes_left(self) -> int | None:
        """Whole minutes that are left, rounded up; None where nobody knows."""
        return None if self.seconds_left is None else int(-(-self.seconds_left // 60))


def hides_answers(project: Project) -> bool:
    return records.labels_in_secret(project) or hides_selection(project.settings)


def spending_history(account: BudgetAccount) -> list[tuple[datetime, float, float]]:
    """Return when, epsilon spent or reserved, and the epsilon limit, oldest first, after each entry or each day."""
    entries = LedgerEntry.objects.filter(account=account).order_by("sequence")
    limits = [
        (entry.sequence, json.loads(entry.event_json))
        for entry in entries.filter(kind__in=(EntryKind.GRANT, EntryKind.LIMIT_CHANGE))
    ]
    names = ("sequence", "created_at", "epsilon_spent_nano", "rho_spent_nano")
    rows = entries.values_list(*names)
    if entries.count() > EVERY_ENTRY:
        days = entries.annotate(day=TruncDate("created_at")).order_by().values("day").annotate(last=Max("sequence"))
        rows = entries.filter(sequence__in=[day["last"] for day in days]).values_list(*names)
    found = []
    standing = iter([*limits, (None, {})])
    following, terms = next(standing)
    now: dict[str, Any] = {}
    for sequence, moment, epsilon, rho in rows.iterator(chunk_size=1000):
        while following is not None and following <= sequence:
            now, (following, terms) = terms, next(standing)
        found.append((moment, _epsilon(account, now, epsilon, rho), nano_spendable(now["epsilon_limit_nano"])))
    return found


def _epsilon(account: BudgetAccount, limits: dict[str, Any], epsilon_nano: int, rho_nano: int) -> float:
    if account.filter == Filter.PURE:
        return nano_spent(epsilon_nano)
    return zcdp_epsilon(
        nano_spent(rho_nano), atto_spendable(limits["delta_limit_atto"] - limits["delta_sum_limit_atto"])
    )


def spending_table(project: Project, accounts: Sequence[BudgetAccount]) -> Table:
    rows = []
    for account in accounts:
        title = presenters.account_title(project, account)
        rows += [
            (title, moment, spent, max(0.0, limit - spent), limit) for moment, spent, limit in spending_history(account)
        ]
    return Table(
        (
            Column("account", _("Account")),
            Column("when", _("When"), "time"),
            Column("epsilon_spent", _("ε spent"), "epsilon"),
            Column("epsilon_left", _("ε left"), "epsilon_left"),
            Column("epsilon_limit", _("ε limit"), "epsilon_left"),
        ),
        tuple(rows),
    )


def purposes_table(project: Project, accounts: Sequence[BudgetAccount]) -> Table:
    rows = [
        (presenters.account_title(project, account), *line)
        for account in accounts
        for line in spending_amounts(account)
    ]
    return Table(
        (
            Column("account", _("Account")),
            Column("by", _("By")),
            Column("name", _("For")),
            Column("operations", _("Operations"), "count"),
            Column("epsilon", "ε", "epsilon"),
            Column("rho", "ρ", "delta"),
            Column("delta", "δ", "delta"),
            Column("percent", _("Share"), "percent"),
        ),
        tuple(rows),
    )


def labels_table(project: Project) -> Table:
    answers = Label.objects.filter(query__project=project, superseded_at=None).order_by()
    agreed = Consensus.objects.filter(project=project).order_by()
    days: dict[Any, list[int]] = {}
    if not hides_answers(project):
        for day, number in answers.annotate(day=TruncDate("created_at")).values_list("day").annotate(n=Count("pk")):
            days.setdefault(day, [0, 0, 0])[0] = number
        whole = Count("pk", filter=Q(agreeing=F("votes")))
        found = agreed.annotate(day=TruncDate("created_at")).values_list("day").annotate(n=Count("pk"), whole=whole)
        for day, number, unanimous in found:
            days.setdefault(day, [0, 0, 0])[1:] = [number, unanimous]
    total, rows = 0, []
    for day, (given, settled, unanimous) in sorted(days.items()):
        total += given
        rows.append((day, given, total, settled, unanimous))
    return Table(
        (
            Column("day", _("Day"), "day"),
            Column("answers", _("Answers"), "count"),
            Column("answers_so_far", _("Answers so far"), "count"),
            Column("agreed", _("Labels agreed on"), "count"),
            Column("unanimous", _("All agreed"), "count"),
        ),
        tuple(rows),
    )


def annotators_table(project: Project) -> Table:
    people = [] if hides_answers(project) else selectors.annotators_work(project)
    rows = tuple(
        (
            sheet.membership.user.username,
            sheet.answers,
            sheet.accepted,
            sheet.refused,
            sheet.checks.right,
            sheet.checks.answered,
        )
        for sheet in people
    )
    return Table(
        (
            Column("person", _("Person")),
            Column("answers", _("Answers"), "count"),
            Column("like_the_majority", _("Accepted"), "count"),
            Column("unlike_the_majority", _("Not accepted"), "count"),
            Column("checks_right", _("Checks right"), "count"),
            Column("checks_answered", _("Checks answered"), "count"),
        ),
        rows,
    )


def releases_table(project: Project) -> Table:
    rows = tuple(
        (project.name, version, found.dataset, found.examples, found.value, found.low, found.high)
        for version, found in evaluation_selectors.accuracy_history(project, up_to=2**31 - 1)
    )
    return Table(
        (
            Column("project", _("Project")),
            Column("version", _("Version"), "count"),
            Column("test_set", _("Public test set")),
            Column("examples", _("Examples"), "count"),
            Column("accuracy", measure_of(project), "share"),
            Column("low", "95 % ≥", "share"),
            Column("high", "95 % ≤", "share"),
        ),
        rows,
    )


def work_table(project: Project) -> Table:
    rows = tuple(
        (
            work.title,
            str(work.row.get_state_display()),
            work.created_at,
            work.row.started_at,
            work.row.finished_at,
            work.row.error,
        )
        for work in work_of(project)
    )
    return Table(
        (
            Column("work", _("Work")),
            Column("state", _("State")),
            Column("created_at", _("Asked for"), "time"),
            Column("started_at", _("Began"), "time"),
            Column("finished_at", _("Ended"), "time"),
            Column("error", _("Reason")),
        ),
        rows,
    )


def work_of(project: Project) -> list[Work]:
    jobs = Job.objects.filter(project=project).exclude(kind=models.STREAM_JOB)
    newest_jobs = jobs.select_related("dataset", "gated_dataset", "survey__dataset", "export").order_by("-created_at")
    found = [_job(job) for job in newest_jobs[:WORK_SHOWN]]
    rounds = list(Round.objects.filter(project=project).order_by("-created_at")[:WORK_SHOWN])
    runs = list(TrainingRun.objects.filter(project=project).order_by("-created_at")[:WORK_SHOWN])
    kinds: tuple[Sequence[Round | TrainingRun], ...] = (rounds, runs)
    for rows in kinds:
        usual = _usual_seconds(project, type(rows[0])) if rows else None
        found += [_step(project, row, usual, is_newest=not place) for place, row in enumerate(rows)]
    return sorted(found, key=lambda work: work.created_at, reverse=True)[:WORK_SHOWN]


def _job(job: Job) -> Work:
    dataset = getattr(job, "dataset", None) or getattr(job, "gated_dataset", None)
    survey = getattr(job, "survey", None)
    name = dataset.name if dataset else survey.dataset.name if survey else ""
    titles = {
        "import": _("Reading an upload"),
        "gate": _("Gate"),
        "survey": _("Counting an upload"),
        "compare": _("Comparing answers"),
        "export": _("Writing a label file"),
        "simulate": _("Simulation"),
        "forget": _("Forgetting a contributor"),
        "delete": _("Deleting the project"),
    }
    failed = job.state == WorkState.FAILED
    again = {
        # A file that was refused is gone; one whose reading was cancelled waits.
        "import": dataset is not None and dataset.state == DatasetState.RECEIVING,
        "gate": dataset is not None,
        "survey": survey is not None,
        "compare": failed and QualityReport.objects.filter(job=job).exists(),
        "export": hasattr(job, "export"),
    }
    title = titles.get(job.kind, job.kind)
    return Work(
        kind="job",
        key=str(job.pk),
        row=job,
        title=f"{title}: {name}" if name else title,
        created_at=job.created_at,
        seconds_left=_left_by_progress(job),
        can_cancel=_can_cancel(job),
        can_retry=failed and bool(again.get(job.kind)),
        price=price_of_job(job, dataset) if failed else None,
    )


def _step(project: Project, row: Round | TrainingRun, usual: float | None, *, is_newest: bool) -> Work:
    is_round = isinstance(row, Round)
    title = f"{_('Choosing questions')}: {row.number}" if isinstance(row, Round) else f"{_('Training')}: {row.version}"
    left = None
    if row.state == WorkState.RUNNING and row.started_at and usual is not None:
        left = max(0.0, usual - _taken(row))
    can_retry = is_newest and failures.may_start_anew(project, row)
    return Work(
        kind="round" if is_round else "training",
        key=str(row.pk),
        row=row,
        title=title,
        created_at=row.created_at,
        seconds_left=left,
        # A stream's version is the weights as they are: made in a moment, and paid for long before.
        can_cancel=_can_cancel(row) and getattr(row, "stream_batches", None) is None,
        can_retry=can_retry,
        price=failures.price_of(project, row) if can_retry else None,
    )


def price_of_job(job: Job, dataset: Dataset | None) -> Cost | None:
    if dataset is None or job.kind not in ("gate", "import"):
        return None
    return charges.upload_charge(dataset.project, dataset.role, dataset)


def _can_cancel(row: Job | Round | TrainingRun) -> bool:
    return row.state in UNFINISHED and not row.cancelled_by


def _left_by_progress(job: Job) -> float | None:
    if job.state != WorkState.RUNNING or not (job.progress_total and job.progress_done and job.started_at):
        return None
    return max(0.0, _taken(job) * (job.progress_total - job.progress_done) / job.progress_done)


def _taken(row: Job | Round | TrainingRun) -> float:
    return (timezone.now() - row.started_at).total_seconds() if row.started_at else 0.0


def _usual_seconds(project: Project, kind: type[Round] | type[TrainingRun]) -> float | None:
    done = kind.objects.filter(project=project, state=WorkState.DONE, started_at__isnull=False)
    times = done.order_by("-created_at").values_list("started_at", "finished_at")[:SOON]
    seconds = [(end - start).total_seconds() for start, end in times if start and end]
    return median(seconds) if seconds else None


def utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def answers_in_all(project: Project) -> tuple[int, int, int]:
    """Return votes, votes with the majority, and labels agreed on; what disagreed is in the difference."""
    sums = Consensus.objects.filter(project=project).aggregate(
        votes=Sum("votes", default=0), agreeing=Sum("agreeing", default=0), labels=Count("pk")
    )
    return sums["votes"], sums["agreeing"], sums["labels"]
