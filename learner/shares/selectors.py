"""Shares of classes: what can be asked for, at which price, and what was released."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import QuerySet

from annotation.choices.label_types.base import LabelType
from annotation.models import UNFINISHED, Dataset, Project, WorkState
from annotation.questions.selectors import label_type
from annotation.wording import class_name
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
from learner.pools.configuration import featurizer_of, learned_classes, secret_sample_of
from privacy.accounting.event import Event, event_from_json
from privacy.accounting.events import ClassCountsEvent, SecretBlockEvent
from privacy.accounting.shares import MOST_CELLS, class_counts_event
from privacy.ledger.rules import adjacency_of
from privacy.ledger.selectors import can_pay, quota_of
from privacy.wording import as_message

# A difference of so many standard errors is told: of 100 classes that stay, one in four months is a false alarm.
MOVED = 3.0
STANDARD = 1.96
# Epsilons of the planner.
PLANNED = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Group:
    """Uploads that are counted together; groups are public and share no upload."""

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
        Expected half width of an interval, and that of labels alone at the same price.
    """

    block: Round
    rate: float
    grouping: Grouping
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


def refusal(project: Project) -> str:
    """Return why a project has no shares; empty where it may have some."""
    if not records.labels_in_secret(project):
        return as_message("Shares of classes need labels of a secret sample, and this project chooses its questions.")
    if project.labels_per_record != 1 or type(label_type(project)).targets is not LabelType.targets:
        return as_message("Shares of classes are for questions with one class as their answer.")
    if quota_of(project.pool_account) is not None:
        return as_message("Shares of classes have no proven price where several projects share one limit.")
    if not _learned_blocks(project).exists():
        return as_message("Shares can be asked for once a secret block has given its model.")
    return ""


def offers(project: Project, *, grouping: Grouping = Grouping.WHOLE) -> list[Offer]:
    """Return an offer for each secret block that has given its model, the newest first."""
    if refusal(project):
        return []
    found = (_offer(project, block, grouping) for block in _learned_blocks(project))
    return [offer for offer in found if offer is not None]


def offer_of(project: Project, *, block: int, grouping: Grouping) -> Offer | None:
    return next((one for one in offers(project, grouping=grouping) if one.block.block == block), None)


def is_busy(project: Project) -> bool:
    """Say whether a training or another ask holds the series of the project's blocks."""
    return any(
        kind.objects.filter(project=project, state__in=UNFINISHED).exists() for kind in (TrainingRun, SharesReport)
    )


def reports_of(project: Project) -> QuerySet[SharesReport]:
    return SharesReport.objects.filter(project=project).select_related("block", "release").order_by("-number")


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


def _offer(project: Project, block: Round, grouping: Grouping) -> Offer | None:
    groups, classes, number = _groups(project, block, grouping), learned_classes(project), block.block or 0
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
    if model is not None and plan.model_helps(inside, pool_epsilon):
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
        groups=groups,
        classes=classes,
        release=release if pool else None,
        model=model if pool else None,
        accuracy=plan.accuracy,
        sample=sample,
        pool=pool,
        epsilon=math.fsum(event.cost(adjacency=adjacency_of(account)).epsilon for event in events),
        labels=round(rate * size),
        width=plan.width_with_model(inside, pool_epsilon) if pool else plan.width_alone(inside),
        width_alone=plan.width_alone(inside),
        can_pay=can_pay(account, events),
    )


def _groups(project: Project, block: Round, grouping: Grouping) -> tuple[Group, ...]:
    datasets = records.datasets_of_block(project, block)
    if grouping == Grouping.WHOLE:
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
        weights__classes=list(classes),
    )
    release = earlier.order_by("-version").first()
    if release is not None:
        return release, LinearModel.from_json(release.weights)
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
    if report.counts is None:
        return []
    best, alone, model = _estimates(report)
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
                    moved=place > 0 and _has_moved(best, place, column),
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


def _has_moved(shares: Shares, place: int, column: int) -> bool:
    """Say whether a share differs from that of the group before by more than `MOVED` standard errors."""
    halves: Sequence[float] = [
        float(shares.high[one, column] - shares.low[one, column]) / 2 for one in (place - 1, place)
    ]
    difference = abs(float(shares.values[place, column] - shares.values[place - 1, column]))
    return difference > MOVED * math.hypot(*halves) / STANDARD
