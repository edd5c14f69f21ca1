"""Releases as pages and programs read them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.db.models import Case, Count, F, FloatField, Sum, When
from django.db.models.functions import Cast

from annotation.models import Project
from annotation.projects.selectors import CardModel
from learner.estimators.abstaining import Threshold, thresholds
from learner.linear_model import LinearModel
from learner.models import Grouping, ModelRelease, ReleaseState, SharesReport
from learner.pools import selectors
from learner.pools.records import TrainedOn
from learner.releases.artifacts.settings import settings_outside
from learner.releases.evaluations import Accuracy, accuracy_of
from privacy.accounting.event import event_from_json
from privacy.accounting.events import ClassCountsEvent, SecretBlockEvent
from privacy.wording import Message, as_message


@dataclass(frozen=True, slots=True)
class WeightsChange:
    norm_before: float
    norm: float
    distance: float
    cosine: float | None


def weights_change(before: LinearModel, after: LinearModel) -> WeightsChange | None:
    """Compare two models; None where they have other classes or features, so that weights do not correspond."""
    if before.classes != after.classes or before.coef.shape != after.coef.shape:
        return None
    old, new = (np.concatenate([model.coef.ravel(), model.intercept]) for model in (before, after))
    norm_before, norm = float(np.linalg.norm(old)), float(np.linalg.norm(new))
    cosine = float(old @ new) / (norm_before * norm) if norm_before and norm else None
    return WeightsChange(norm_before, norm, float(np.linalg.norm(new - old)), cosine)


def changed_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    names = sorted(before.keys() | after.keys())
    return [(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]


# By field; what is protected is a name.
GUARANTEE_NUMBERS: Final[Mapping[str, Callable[[str], Message]]] = {
    "limit_epsilon": lambda name: as_message("{field}: {reason}", field=name, reason=as_message("ε limit")),
    "limit_delta": lambda name: as_message("{field}: {reason}", field=name, reason=as_message("δ limit")),
    "spent_epsilon": lambda name: as_message("{field}: {reason}", field=name, reason=as_message("ε spent")),
    "spent_delta": lambda name: as_message("{field}: {reason}", field=name, reason=as_message("δ spent")),
}


@dataclass(frozen=True, slots=True)
class VersionDifference:
    before: ModelRelease
    classes: tuple[list[str], list[str]]
    weights: WeightsChange | None
    accuracies: list[tuple[Accuracy, Accuracy | None, Accuracy | None]]
    used: tuple[TrainedOn, TrainedOn]
    labels: tuple[int, int] | None
    configuration: list[tuple[str, Any, Any]]
    environment: list[tuple[str, Any, Any]]
    guarantee: list[tuple[str, Any, Any]]


def shown_configuration(release: ModelRelease) -> dict[str, Any]:
    return settings_outside(release.configuration)


def release_facts(project: Project) -> list[tuple[object, ...]]:
    found = ModelRelease.objects.filter(project=project).order_by("version")
    return list(found.annotate(measured=Count("evaluations")).values_list("version", "state", "held_back", "measured"))


def version_before(release: ModelRelease) -> ModelRelease | None:
    return selectors.releases_of(release.project).filter(version__lt=release.version).first()


def difference(release: ModelRelease, *, before: ModelRelease, inside: bool) -> VersionDifference:
    old, new = (
        {evaluation.dataset_id: accuracy_of(evaluation) for evaluation in one.evaluations.all()}
        for one in (before, release)
    )
    used = (selectors.trained_on(before.training_run), selectors.trained_on(release.training_run))
    # A secret sample hides how many answered, from managers' numbers that travel in screenshots, too.
    countable = inside and all(part.questions is not None for part in used)
    known, named = (list(one.weights.get("classes", ())) for one in (before, release))
    return VersionDifference(
        before=before,
        classes=([name for name in named if name not in known], [name for name in known if name not in named]),
        weights=None
        if before.is_buried or release.is_buried
        else weights_change(LinearModel.from_json(before.weights), LinearModel.from_json(release.weights)),
        accuracies=[(new.get(key) or old[key], old.get(key), new.get(key)) for key in sorted(old | new)],
        used=used,
        labels=(before.labels_used, release.labels_used) if countable else None,
        configuration=changed_values(shown_configuration(before), shown_configuration(release)),
        environment=changed_values(before.environment, release.environment),
        guarantee=changed_values(_guarantee_numbers(before), _guarantee_numbers(release)),
    )


def _guarantee_numbers(release: ModelRelease) -> dict[str, Any]:
    return {
        named(account["protects"]): account[field]
        for account in release.guarantee
        for field, named in GUARANTEE_NUMBERS.items()
    }


def abstaining_of(release: ModelRelease) -> list[Threshold]:
    """Return when a release abstains by its newest counts; empty before any."""
    counted = SharesReport.objects.filter(release=release, grouping=Grouping.CONFIDENCE, counts__isnull=False)
    report = counted.order_by("-number").first()
    return [] if report is None else thresholds_of(report)


def thresholds_of(report: SharesReport) -> list[Threshold]:
    """Return the thresholds that released counts of right answers show; empty for other counts."""
    if report.counts is None or report.grouping != Grouping.CONFIDENCE:
        return []
    event = event_from_json(report.events["sample"])
    assert isinstance(event, SecretBlockEvent)
    assert isinstance(event.inner, ClassCountsEvent)
    pool, sample = (np.array(report.counts[name], dtype=np.float64) for name in ("pool", "sample"))
    return thresholds(pool, sample, scale=event.inner.scale)


def _sum_right(counted: str, f1: str) -> Sum:
    """Sum what `Evaluation.right` says of each evaluation."""
    scored = F("evaluations__examples") * Cast(f"evaluations__measures__{f1}", FloatField())
    of_spans = When(evaluations__measures__has_key="f1", then=scored)
    return Sum(Case(of_spans, default=F(f"evaluations__{counted}"), output_field=FloatField()))


def models_of(projects: Collection[int]) -> dict[int, CardModel]:
    newest = (
        ModelRelease.objects.filter(project__in=projects, state=ReleaseState.RELEASED)
        .order_by("project", "-version")
        .distinct("project")
    )
    measured = (
        ModelRelease.objects.filter(pk__in=newest.values("pk"))
        .annotate(
            examples=Sum("evaluations__examples"),
            right=_sum_right("correct", "micro_f1__value"),
            constant=_sum_right("constant_correct", "constant__micro_f1"),
            described=_sum_right("described_correct", "version_0__micro_f1"),
        )
        .values_list("project", "version", "examples", "right", "constant", "described")
    )
    return {
        project: CardModel(
            version,
            right / examples,
            constant / examples,
            None if described is None else described / examples,
            selectors.loses_to(right, constant=constant, described=described),
        )
        if examples
        else CardModel(version)
        for project, version, examples, right, constant, described in measured
    }
