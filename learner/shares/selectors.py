"""Shares of classes: what can be asked for, at which price, and what was released."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import QuerySet

from annotation.choices.label_types.base import LabelType
from annotation.models import UNFINISHED, DataKind, Dataset, Project, WorkState
from annotation.questions.selectors import label_type, marks_spans
from annotation.wording import class_name
from learner.estimators import abstaining
from learner.estimators.class_shares import (
    LIKELY_ACCURACY,
    Shares,
    SharesPlan,
    labels_alone,
    model_alone,
    noise_variance,
    with_model,
)
from learner.linear_model import LinearModel
from learner.models import Evaluation, Grouping, ModelRelease, ReleaseState, Round, SharesReport, TrainingRun
from learner.pools import records, starts
from learner.pools.configuration import featurizer_of, learned_classes, models_of_classes, secret_sample_of
from privacy.accounting.counts import MOST_CELLS, class_counts_event
from privacy.accounting.event import Event, event_from_json
from privacy.accounting.events import ClassCountsEvent, SecretBlockEvent
from privacy.ledger.rules import adjacency_of
from privacy.ledger.selectors import can_pay, quota_of
from privacy.wording import as_message

# A difference of so many standard errors is told: of 100 classes that stay, one in four months is a false alarm.
MOVED = 3.0
STANDARD = 1.96
# Group of records in no declared category.
OTHER = "(other)"
# Groupings whose groups follow each other.
IN_TIME = (Grouping.UPLOAD, Grouping.MONTH)
# Epsilons of the planner.
PLANNED = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Group:
    """Records that are counted together: all of some uploads, or those in a category of a declared column."""

    name: str
    datasets: tuple[Dataset, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """Shares that can be asked for now: what is read, its price, and the width that public sizes let expect.

    Attributes
    ----------
    sample, pool : Event
        What the account is charged; no `pool` where labels alone say as much.
    labels : int
        Expected number of sampled records.
    width, width_alone : float
        Expected half width of an interval, 0 where thresholds are asked for; that of labels alone at the same price.
    """

    block: Round
    rate: float
    grouping: Grouping
    column: str
    groups: tuple[Group, ...]
    classes: tuple[str, ...]
    release: ModelRelease | None
    model: LinearModel | None
    accuracy: float
    sample: SecretBlockEvent
    pool: ClassCountsEvent | None
    epsilon: float
    labels: int
    width: float
    width_alone: float
    can_pay: bool

    @property
    def points(self) -> float:
        return 100 * self.width

    @property
    def points_alone(self) -> float:
        return 100 * self.width_alone

    @property
    def events(self) -> list[Event]:
        return [self.sample] if self.pool is None else [self.pool, self.sample]

    @property
    def datasets(self) -> list[Dataset]:
        """Uploads whose records are counted, in the order in which their features are stacked."""
        found = {dataset.pk: dataset for group in self.groups for dataset in group.datasets}
        return [found[key] for key in sorted(found)]

    @property
    def groups_json(self) -> list[dict[str, Any]]:
        return [{"name": group.name, "datasets": [dataset.pk for dataset in group.datasets]} for group in self.groups]


def refusal(project: Project) -> str:
    """Return why a project has no shares; empty where it may have some."""
    if not records.labels_in_secret(project):
        return as_message("Class shares need a secret sample.")
    asked = label_type(project)
    if project.labels_per_record != 1 or type(asked).targets is not LabelType.targets or marks_spans(project):
        return as_message("Class shares need questions with one class as the answer.")
    if quota_of(project.pool_account) is not None:
        return as_message("Class shares have no proven price under a common limit.")
    if not _learned_blocks(project).exists():
        return as_message("Class shares need the model of a secret block.")
    return ""


def offers(project: Project, *, grouping: Grouping = Grouping.WHOLE, column: str = "") -> list[Offer]:
    """Return an offer for each secret block that has given its model, the newest first."""
    if refusal(project) or (grouping == Grouping.COLUMN) != (column in grouping_columns(project)):
        return []
    found = (_offer(project, block, grouping, column) for block in _learned_blocks(project))
    return [offer for offer in found if offer is not None]


def offer_of(project: Project, *, block: int, grouping: Grouping, column: str = "") -> Offer | None:
    found = offers(project, grouping=grouping, column=column)
    return next((one for one in found if one.block.block == block), None)


def grouping_columns(project: Project) -> dict[str, list[str]]:
    """Return the categories of each declared column that has some."""
    if project.data_kind != DataKind.TABLE:
        return {}
    declared = [column for column in project.columns if "categories" in column]
    return {column["name"]: list(map(str, column["categories"])) for column in declared}


def grouping_choices(project: Project) -> list[tuple[str, str]]:
    """Return what a pool can be counted by, as `column:NAME` for declared columns."""
    fixed = [(str(value), str(label)) for value, label in Grouping.choices if value != Grouping.COLUMN]
    return [*fixed, *((f"{Grouping.COLUMN}:{name}", name) for name in grouping_columns(project))]


def grouping_named(project: Project, value: str) -> tuple[Grouping, str] | None:
    """Return the grouping and column that one of `grouping_choices` stands for; None for anything else."""
    if value not in dict(grouping_choices(project)):
        return None
    kind, _, column = value.partition(":")
    return Grouping(kind), column


def is_busy(project: Project) -> bool:
    """Say whether a training or another ask holds the series of the project's blocks."""
    return any(
        kind.objects.filter(project=project, state__in=UNFINISHED).exists() for kind in (TrainingRun, SharesReport)
    )


def reports_of(project: Project) -> QuerySet[SharesReport]:
    return SharesReport.objects.filter(project=project).select_related("block", "release").order_by("-number")


def series_price(project: Project) -> float | None:
    """Return what all blocks to come cost together with one count of each; None where nothing is to come."""
    if refusal(project):
        return None
    coming = [number for number in range(1, records.n_blocks(project) + 1) if not _is_counted(project, number)]
    trained = set(_learned_blocks(project).values_list("block", flat=True))
    epsilon = records.price_of_readings(project, coming, trained=trained)
    return epsilon if coming else None


def _is_counted(project: Project, block: int) -> bool:
    return SharesReport.objects.filter(project=project, block__block=block, counts__isnull=False).exists()


@dataclass(frozen=True, slots=True)
class Need:
    """Labels that intervals of a wanted width take at an epsilon of the whole ask; None where no number is enough."""

    epsilon: float
    labels: int | None
    with_model: bool


def needs(project: Project, *, points: float) -> list[Need]:
    """Return what a half width of so many points takes, from public sizes alone."""
    size, n_classes = records.pool_size(project), len(learned_classes(project))
    if not size or not points > 0:
        return []
    found = []
    for epsilon in PLANNED:
        labels = SharesPlan(size, 1.0, n_classes).labels_for(points / 100, epsilon)
        plan = SharesPlan(size, (labels or size) / size, n_classes)
        pool_epsilon, inside = plan.split(epsilon)
        found.append(Need(epsilon, labels, plan.model_helps(inside, pool_epsilon)))
    return found


def _learned_blocks(project: Project) -> QuerySet[Round]:
    return records.blocks_of(project).filter(training_runs__state=WorkState.DONE).distinct()


def _offer(project: Project, block: Round, grouping: Grouping, column: str) -> Offer | None:
    groups, classes, number = _groups(project, block, grouping, column), learned_classes(project), block.block or 0
    width = len(classes) + 1
    cells = 3 * width * len(groups)
    if not groups or cells > MOST_CELLS:
        return None
    rate = secret_sample_of(project, block=number).rate
    size = sum(dataset.row_count for group in groups for dataset in group.datasets)
    release, model = model_before(project, block)
    plan = SharesPlan(size // len(groups), rate, len(classes), _accuracy(project, release))
    sample = records.further_reading(project, block=number, cells=cells, counted=2)
    if sample is None:
        return None
    inside = sample.series.epsilons[number - 1]
    pool_epsilon = plan.pool_epsilon(inside)
    pool = None
    if grouping == Grouping.CONFIDENCE:
        if release is None or model is None:
            return None
        sample = records.further_reading(project, block=number, cells=abstaining.SAMPLE_CELLS, counted=1)
        pool = class_counts_event(abstaining.pool_epsilon(size), cells=abstaining.POOL_CELLS, counted=1)
        assert sample is not None
    elif model is not None and plan.model_helps(inside, pool_epsilon):
        pool = class_counts_event(pool_epsilon, cells=len(classes) * len(groups), counted=1)
    else:
        sample = records.further_reading(project, block=number, cells=width * len(groups), counted=1)
        assert sample is not None
    account = project.pool_account
    events: list[Event] = [sample] if pool is None else [pool, sample]
    return Offer(
        block=block,
        rate=rate,
        grouping=grouping,
        column=column,
        groups=groups,
        classes=classes,
        release=release if pool else None,
        model=model if pool else None,
        accuracy=plan.accuracy,
        sample=sample,
        pool=pool,
        epsilon=math.fsum(event.cost(adjacency=adjacency_of(account)).epsilon for event in events),
        labels=round(rate * size),
        width=_width(plan, grouping, inside=inside, pool_epsilon=pool_epsilon if pool else None),
        width_alone=plan.width_alone(inside),
        can_pay=can_pay(account, events),
    )


def _width(plan: SharesPlan, grouping: Grouping, *, inside: float, pool_epsilon: float | None) -> float:
    if grouping == Grouping.CONFIDENCE:
        return 0.0
    return plan.width_alone(inside) if pool_epsilon is None else plan.width_with_model(inside, pool_epsilon)


def _groups(project: Project, block: Round, grouping: Grouping, column: str) -> tuple[Group, ...]:
    datasets = records.datasets_of_block(project, block)
    if grouping == Grouping.COLUMN:
        names = [*grouping_columns(project)[column], OTHER]
        return tuple(Group(name, tuple(datasets)) for name in names) if datasets else ()
    if grouping in (Grouping.WHOLE, Grouping.CONFIDENCE):
        return (Group("", tuple(datasets)),) if datasets else ()
    names = [dataset.name if grouping == Grouping.UPLOAD else f"{dataset.created_at:%Y-%m}" for dataset in datasets]
    if grouping == Grouping.UPLOAD:
        return tuple(Group(name, (dataset,)) for name, dataset in zip(names, datasets, strict=True))
    months = dict.fromkeys(names)
    return tuple(
        Group(month, tuple(one for name, one in zip(names, datasets, strict=True) if name == month)) for month in months
    )


def model_before(project: Project, block: Round) -> tuple[ModelRelease | None, LinearModel | None]:
    """Return the newest model that learned nothing from a block: a release of an earlier one, else version 0.

    A model is right oftener on records that it learned from, so their labels would not correct it.
    """
    features, classes = json.loads(featurizer_of(project).to_json()), learned_classes(project)
    earlier = ModelRelease.objects.filter(
        project=project,
        state=ReleaseState.RELEASED,
        training_run__block__block__lt=block.block,
        features=features,
    )
    if (found := next(models_of_classes(earlier, project, classes), None)) is not None:
        return found
    described = starts.described_prior(project)
    return None, None if described is None else described.knowing(classes)


def _accuracy(project: Project, release: ModelRelease | None) -> float:
    """Return how often a model was right on public examples, or a guess."""
    measured = Evaluation.objects.filter(release__project=project).order_by("-pk")
    newest = (measured.filter(release=release) if release else measured.filter(described_correct__isnull=False)).first()
    if newest is None:
        return LIKELY_ACCURACY
    correct = newest.correct if release else newest.described_correct
    return (correct or 0) / newest.examples


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One class in one group, in percent; `model` and `with_model` are empty where labels alone were counted."""

    group: str
    name: str
    value: float
    low: float
    high: float
    labels: float
    labels_low: float
    labels_high: float
    model: float | None
    moved: bool


def share_rows(report: SharesReport) -> list[ShareRow]:
    """Return what a report says, computed from released counts alone."""
    if report.counts is None or report.grouping == Grouping.CONFIDENCE:
        return []
    best, alone, model = _estimates(report)
    before = _count_before(report)
    earlier = None if before is None else _estimates(before)[0]
    names = [*map(class_name, report.classes), ""]
    rows = []
    for place, group in enumerate(report.groups):
        for column, name in enumerate(names):
            rows.append(
                ShareRow(
                    group=group["name"],
                    name=name,
                    value=_percent(best.values, place, column),
                    low=_percent(best.low, place, column),
                    high=_percent(best.high, place, column),
                    labels=_percent(alone.values, place, column),
                    labels_low=_percent(alone.low, place, column),
                    labels_high=_percent(alone.high, place, column),
                    model=None if model is None else _percent(model.values, place, column),
                    moved=_has_moved(best, place, column, earlier, ordered=report.grouping in IN_TIME),
                )
            )
    return rows


def _estimates(report: SharesReport) -> tuple[Shares, Shares, Shares | None]:
    events = {name: event_from_json(event) for name, event in report.events.items()}
    sampled = events["sample"]
    assert isinstance(sampled, SecretBlockEvent)
    assert isinstance(sampled.inner, ClassCountsEvent)
    variance, k, n_groups = noise_variance(sampled.inner), len(report.classes), len(report.groups)
    counts: dict[str, Any] = {
        name: np.array(values, dtype=np.float64) for name, values in (report.counts or {}).items()
    }
    if "pool" not in events:
        alone = labels_alone(counts["sample"].reshape(n_groups, k + 1), rate=report.rate, variance=variance)
        return alone, alone, None
    everywhere = events["pool"]
    assert isinstance(everywhere, ClassCountsEvent)
    pool, compared = counts["pool"].reshape(n_groups, k), counts["sample"].reshape(n_groups, 3, k + 1)
    pool_variance = noise_variance(everywhere)
    both = with_model(
        pool,
        compared,
        weight=LIKELY_ACCURACY if report.accuracy is None else report.accuracy,
        rate=report.rate,
        pool_variance=pool_variance,
        variance=variance,
    )
    # A label is counted in one of two cells, each with noise of its own.
    alone = labels_alone(compared[:, 0] + compared[:, 2], rate=report.rate, variance=2 * variance)
    return both, alone, model_alone(pool, variance=pool_variance)


def _percent(values: "np.ndarray[Any, np.dtype[np.float64]]", place: int, column: int) -> float:
    return round(100 * float(values[place, column]), 2)


def axis_top(rows: list[ShareRow]) -> int:
    """Return the end of an axis in percent that holds all intervals and wastes little."""
    most = max((row.high for row in rows), default=100.0)
    return next(top for top in (5, 10, 20, 30, 50, 100) if most <= top or top == 100)


def _count_before(report: SharesReport) -> SharesReport | None:
    """Return the count of another block that a count of the whole pool is held against."""
    if report.grouping not in (Grouping.WHOLE, Grouping.COLUMN):
        return None
    found = SharesReport.objects.filter(
        project=report.project_id,
        number__lt=report.number,
        counts__isnull=False,
        grouping=report.grouping,
        column=report.column,
        classes=report.classes,
    ).exclude(block=report.block_id)
    before = found.select_related("block", "release").order_by("-number").first()
    # Groups of a column are its categories, and these may have changed.
    return before if before and _names(before) == _names(report) else None


def _names(report: SharesReport) -> list[str]:
    return [group["name"] for group in report.groups]


def _has_moved(shares: Shares, place: int, column: int, earlier: Shares | None, *, ordered: bool) -> bool:
    """Say whether a share is more than `MOVED` standard errors from the group before, or from the count before."""
    if ordered and place > 0:
        before, other = shares, place - 1
    elif earlier is not None:
        before, other = earlier, place
    else:
        return False
    half, half_before = (
        float(one.high[at, column] - one.low[at, column]) / 2 for one, at in ((shares, place), (before, other))
    )
    difference = abs(float(shares.values[place, column] - before.values[other, column]))
    return difference > MOVED * math.hypot(half, half_before) / STANDARD
