"""Evaluations stored with a release."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet
from numpy.typing import NDArray

from annotation.intervals import wilson_interval
from annotation.models import Dataset, DatasetRole, DatasetState, Project, Record
from annotation.questions.selectors import counting_places, label_type, spans_of
from learner.linear_model import LinearModel
from learner.models import Evaluation, ModelRelease
from learner.pools import features, selectors, starts
from learner.pools.configuration import counted_places, learned_classes, places_of_model, words_about_classes
from learner.releases.artifacts.files import span_model
from learner.releases.evaluation import Outcomes, count_outcomes, f1_scores, measures, set_measures, sets_right
from learner.releases.span_measures import span_measures


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy on one public test set, of spans entity F1, with its 95 % interval, beside one constant answer and
    version 0.
    """

    dataset: str
    examples: int
    value: float
    low: float
    high: float
    constant: float
    described: float | None
    macro_f1: float | None = None
    measure: Literal["accuracy", "entity_f1"] = "accuracy"

    @property
    def loses_to(self) -> str:
        """The free alternative that is right at least as often; empty if there is none."""
        return selectors.loses_to(self.value, constant=self.constant, described=self.described)


def accuracy_of(evaluation: Evaluation) -> Accuracy:
    name, examples, found = evaluation.dataset.name, evaluation.examples, evaluation.measures
    value, constant, described = (None if right is None else right / examples for right in evaluation.right)
    assert value is not None
    assert constant is not None
    f1 = found.get("macro_f1", {}).get("value")
    if not evaluation.finds_spans:
        return Accuracy(name, examples, value, *wilson_interval(evaluation.correct, examples), constant, described, f1)
    low, high = found["micro_f1"]["low"], found["micro_f1"]["high"]
    return Accuracy(name, examples, value, low, high, constant, described, f1, "entity_f1")


def accuracies_of(release: ModelRelease) -> list[Accuracy]:
    return [accuracy_of(evaluation) for evaluation in release.evaluations.all()]


def accuracy_history(project: Project, *, up_to: int) -> list[tuple[int, Accuracy]]:
    found = selectors.releases_of(project).filter(version__lte=up_to).order_by("version")
    return [(release.version, accuracy_of(evaluation)) for release in found for evaluation in release.evaluations.all()]


Scalar = TypeVar("Scalar", np.float64, np.bool_)


@dataclass(frozen=True, slots=True)
class Score:
    dataset: Dataset
    examples: int
    correct: int
    measures: dict[str, Any]


def evaluate_release(*, release: ModelRelease) -> None:
    """Measure a release on the public test sets it was not measured on; they are public, so this costs nothing."""
    missing = public_test_sets(release.project).exclude(evaluations__release=release)
    model = LinearModel.from_json(release.weights)
    store_scores(release, [score_model(model, dataset) for dataset in missing])


def unmeasured_releases() -> QuerySet[ModelRelease]:
    ready = Dataset.objects.filter(
        project=OuterRef("project"),
        role=DatasetRole.PUBLIC_TEST,
        state=DatasetState.READY,
        records__label__isnull=False,
    ).exclude(evaluations__release=OuterRef("pk"))
    return ModelRelease.objects.filter(Exists(ready)).select_related("project")


def public_test_sets(project: Project) -> QuerySet[Dataset]:
    ready = Dataset.objects.filter(project=project, role=DatasetRole.PUBLIC_TEST, state=DatasetState.READY)
    return ready.filter(records__label__isnull=False).distinct().select_related("project").order_by("pk")


def score_model(model: LinearModel, dataset: Dataset) -> Score:
    """Measure the model on the public examples whose class is known, beside what costs nothing."""
    if model.names_spans:
        return _score_spans(model, dataset)
    X, truth = _labelled(dataset)
    values = model.decision_function(X)
    project = dataset.project
    described = None if starts.why_no_version_zero(project) else starts.version_zero_of(project)
    if model.names_sets:
        return _score_sets(model, dataset, values, truth, None if described is None else described.decision_function(X))
    leaders = places_of_model(project, model.classes)[model.leaders(values)]
    counts = count_outcomes(_in_places(model.probabilities(values), model, dataset), leaders, truth)
    found = measures(counts)
    if described is not None:
        named = places_of_model(project, described.classes)[described.leaders(described.decision_function(X))]
        right = int((named == truth).sum())
        found["version_0"] = {"correct": right, "accuracy": right / len(truth)}
    return Score(dataset, len(truth), int(np.trace(counts.confusion)), found)


def _score_spans(model: LinearModel, dataset: Dataset) -> Score:
    """Measure a model of spans: right is a text whose spans are all found and no other."""
    project = dataset.project
    rows = _known(dataset, "text", "label")
    spans = spans_of(project, [number for _text, number in rows])
    texts, truths = [text or "" for text, _number in rows], [spans[number] for _text, number in rows]
    types, named = learned_classes(project), model.renamed(project.renamed_classes)
    right, found = span_measures(truths, span_model(named).predict(texts), types)
    described = starts.described_spans(project)
    if described is not None:
        correct, other = span_measures(truths, span_model(described).predict(texts), types)
        found["version_0"] = {
            "correct": correct,
            "accuracy": correct / len(truths),
            **{name: other[name]["value"] for name in ("micro_f1", "macro_f1")},
        }
    return Score(dataset, len(truths), right, found)


def _score_sets(
    model: LinearModel,
    dataset: Dataset,
    values: NDArray[np.float64],
    numbers: NDArray[np.int64],
    described: NDArray[np.float64] | None,
) -> Score:
    """Measure a model of sets: right is whoever is given all its classes and no other; words alone name one class."""
    members = _in_places(model.members(values), model, dataset)
    truth = _members(dataset.project, numbers)
    found = set_measures(members, _in_places(model.probabilities(values), model, dataset), truth)
    if described is not None:
        leaders = described.argmax(axis=1) if described.ndim == 2 else (described > 0).astype(np.intp)
        named = np.eye(members.shape[1], dtype=np.bool_)[leaders]
        right = sets_right(named, truth)
        micro, macro = f1_scores((named & truth).sum(axis=0), named.sum(axis=0) + truth.sum(axis=0))
        found["version_0"] = {"correct": right, "accuracy": right / len(truth), "micro_f1": micro, "macro_f1": macro}
    return Score(dataset, len(truth), sets_right(members, truth), found)


def public_outcomes(model: LinearModel, datasets: Sequence[Dataset]) -> Outcomes | None:
    if model.names_spans or not datasets:
        return None
    found = [_labelled(dataset) for dataset in datasets]
    probabilities = np.concatenate([model.probabilities(model.decision_function(X)) for X, _truth in found])
    truth = np.concatenate([truth for _X, truth in found])
    names = tuple(dataset.name for dataset in datasets)
    project = datasets[0].project
    if model.names_sets:
        return Outcomes(probabilities, _members(project, truth), names)
    if counting_places(project):
        # What counts as none of the model's classes comes behind them.
        known = {name: number for number, name in enumerate(model.renamed(project.renamed_classes).classes)}
        truth = np.array([known.get(str(name), len(known)) for name in project.classes], dtype=np.int64)[truth]
    return Outcomes(probabilities, truth, names)


def _members(project: Project, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    _taught, members = label_type(project).targets(numbers, None, n_classes=len(project.classes))
    return members


def _in_places(said: NDArray[Scalar], model: LinearModel, dataset: Dataset) -> NDArray[Scalar]:
    """Return what a model says of each class of the project, shape (n, n_classes)."""
    found = np.zeros((len(said), len(dataset.project.classes)), dtype=said.dtype)
    for column, place in enumerate(places_of_model(dataset.project, model.classes)):
        found[:, place] += said[:, column]
    return found


def _labelled(dataset: Dataset) -> tuple[NDArray[Any], NDArray[np.int64]]:
    table = np.array(_known(dataset, "row_number", "label"), dtype=np.int64)
    return features.open_features(dataset)[table[:, 0]], counted_places(dataset.project, table[:, 1])


def _known(dataset: Dataset, *fields: str) -> list[tuple[Any, ...]]:
    known = Record.objects.filter(dataset=dataset, label__isnull=False).order_by("row_number")
    rows = list(known.values_list(*fields, "text"))
    # What version 0 was made of measures nothing.
    examples = {text for said in words_about_classes(dataset.project).values() for text in said.example_texts}
    kept = [row[:-1] for row in rows if not examples or " ".join((row[-1] or "").split()) not in examples]
    # A set that holds nothing else is measured as it is.
    return kept or [row[:-1] for row in rows]


def evaluation_of(score: Score, release: ModelRelease | None = None) -> Evaluation:
    return Evaluation(
        release=release,
        dataset=score.dataset,
        examples=score.examples,
        correct=score.correct,
        constant_correct=score.measures["constant"]["correct"],
        described_correct=score.measures.get("version_0", {}).get("correct"),
        measures=score.measures,
    )


def store_scores(release: ModelRelease, scores: Sequence[Score]) -> None:
    # Two workers may measure the same; they find the same.
    Evaluation.objects.bulk_create([evaluation_of(score, release) for score in scores], ignore_conflicts=True)
