"""Schemas of evaluations, beside all that costs nothing."""

from typing import Annotated, Any, Literal

from annotation.work.reads import Answer, Reads
from annotation.work.rest import SaidOut, as_code
from learner.models import Evaluation
from learner.releases.evaluations import Score, accuracy_of, evaluation_of
from learner.releases.no_privacy import estimate_said
from learner.simulation.estimates import PlannersEstimate


class MeasureOut(Answer, reads=Reads.MEASURED):
    """A share or a score with its 95 % interval; null of a class without examples."""

    value: float | None
    low: float | None
    high: float | None


class RecallOut(MeasureOut):
    """Recall of a class; in `precision`, the share of those given the class that have it."""

    correct: int
    examples: int


class EntityF1Out(MeasureOut):
    """Entity F1 of a type of spans; without a value where there are fewer than ten `spans`, too few to say."""

    spans: int


class MeasuresOut(Answer, reads=Reads.MEASURED):
    """Macro-F1, the expected calibration error and the bins behind it, the confusion matrix (rows are true classes, in
    the order of the weights, classes added since behind them) and the recall of each class; empty of releases from
    before there were measures.

    Where a record may have several classes: micro-F1 and each class's precision in place of the matrix. Of spans
    micro-F1 is entity F1, and `f1` has that of each type.
    """

    micro_f1: MeasureOut | None = None
    macro_f1: MeasureOut | None = None
    calibration_error: MeasureOut | None = None
    reliability: list[dict[str, int | float | None]] = []
    confusion: list[list[int]] = []
    recall: list[RecallOut] = []
    precision: list[RecallOut] = []
    f1: list[EntityF1Out] = []


class NoPrivacyOut(Answer, reads=Reads.SETTINGS):
    """A planner's estimate of a model without privacy, for about as many labels: never of this project's own.

    `data` is what a plan was simulated on, `with_privacy` what the project's settings reached there; all are null where
    nobody simulated these settings, and `said` tells managers where to.
    """

    data: Literal["public", "digits", "made_up"] | None
    labels: int | None
    accuracy: float | None
    macro_f1: float | None
    with_privacy: float | None
    said: str
    said_as_code: SaidOut | None


class EvaluationOut(Answer, reads=Reads.MEASURED):
    """Accuracy of a release on one public test set, with 95 % intervals; `constant` is the accuracy of always giving
    the likeliest answer, `version_0` that of the words about the classes alone, null where there were none. Where a
    record may have several classes, right is whoever is given all of them and no other. Of spans all of these are
    entity F1, as `measure` says; `correct` counts the texts whose spans are all found and no other.
    """

    dataset: Annotated[str, Reads.SETTINGS]
    examples: Annotated[int, Reads.SETTINGS]
    correct: int
    measure: Annotated[Literal["accuracy", "entity_f1"], Reads.SETTINGS]
    accuracy: float
    interval: tuple[float, float]
    constant: float
    version_0: float | None
    no_privacy: Annotated[NoPrivacyOut, Reads.SETTINGS]
    measures: MeasuresOut


def no_privacy_out(estimate: PlannersEstimate | None, *, may_plan: bool, finds_spans: bool = False) -> dict[str, Any]:
    said = estimate_said(estimate, may_plan=may_plan, finds_spans=finds_spans)
    names = ("data", "labels", "accuracy", "macro_f1", "with_privacy")
    return {name: getattr(estimate, name, None) for name in names} | {"said": said, "said_as_code": as_code(said)}


def evaluation_out(evaluation: Evaluation, estimate: PlannersEstimate | None, *, may_plan: bool) -> dict[str, Any]:
    shown = accuracy_of(evaluation)
    return {
        "dataset": shown.dataset,
        "examples": shown.examples,
        "correct": evaluation.correct,
        "measure": shown.measure,
        "accuracy": shown.value,
        "interval": (shown.low, shown.high),
        "constant": shown.constant,
        "version_0": shown.described,
        "no_privacy": no_privacy_out(estimate, may_plan=may_plan, finds_spans=evaluation.finds_spans),
        "measures": evaluation.measures,
    }


def score_out(score: Score, *, may_plan: bool) -> dict[str, Any]:
    return evaluation_out(evaluation_of(score), None, may_plan=may_plan) | {"version_0": None}
