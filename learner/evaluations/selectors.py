"""What was measured of releases on public test sets, as it may be shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.intervals import wilson_interval
from annotation.models import Project
from learner import selectors
from learner.models import Evaluation, ModelRelease


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy on one public test set as shares, with its 95 % interval, beside what costs nothing: one answer for
    all, and the words about the classes.
    """

    dataset: str
    examples: int
    value: float
    low: float
    high: float
    constant: float
    described: float | None
    macro_f1: float | None = None

    @property
    def loses_to(self) -> str:
        """The free alternative that is right at least as often; empty if there is none."""
        return selectors.loses_to(self.value, constant=self.constant, described=self.described)


def accuracy_of(evaluation: Evaluation) -> Accuracy:
    """Return an evaluation's accuracy with its interval."""
    low, high = wilson_interval(evaluation.correct, evaluation.examples)
    share = evaluation.correct / evaluation.examples
    constant = evaluation.constant_correct / evaluation.examples
    described = None if evaluation.described_correct is None else evaluation.described_correct / evaluation.examples
    f1 = evaluation.measures.get("macro_f1", {}).get("value")
    return Accuracy(evaluation.dataset.name, evaluation.examples, share, low, high, constant, described, f1)


def accuracy_of_score(dataset: str, examples: int, correct: int, measures: Mapping[str, Any]) -> Accuracy:
    """Return the accuracy of version 0, which no table holds; beside itself there is nothing to show."""
    low, high = wilson_interval(correct, examples)
    constant, f1 = measures["constant"]["accuracy"], measures["macro_f1"]["value"]
    return Accuracy(dataset, examples, correct / examples, low, high, constant, None, f1)


def accuracies_of(release: ModelRelease) -> list[Accuracy]:
    """Return how often a release is right on each public test set, with what stands beside it."""
    return [accuracy_of(evaluation) for evaluation in release.evaluations.all()]


def accuracy_history(project: Project, *, up_to: int) -> list[tuple[int, Accuracy]]:
    """Return version and accuracy on each public test set, oldest version first."""
    found = selectors.releases_of(project).filter(version__lte=up_to).order_by("version")
    return [(release.version, accuracy_of(evaluation)) for release in found for evaluation in release.evaluations.all()]
