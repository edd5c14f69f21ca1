"""How each estimator that may be released is built; none of them trains without noise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from learner.estimators.choice import PrivateEstimator
from learner.estimators.huber_svm import PrivateHuberSVM
from learner.estimators.label_sets import PrivateLabelSets
from learner.estimators.logistic import Method, PrivateLogisticRegression
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from learner.estimators.running_sums import RunningSums
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel, Multiclass


@dataclass(frozen=True, slots=True)
class Training:
    """What a project says about its trainings; all of it is public.

    Attributes
    ----------
    epsilon, delta : float
        What one training may cost.
    regularization, smoothing : float
        Of the convex objectives.
    step_size, radius : float or None
        Of mini-batch steps; None for the estimator's default.
    average : bool
        Whether mini-batch steps end in their average.
    adjacency : {"null", "replace"}
        The neighbours that `epsilon` is meant for.
    """

    epsilon: float
    delta: float = 0.0
    regularization: float = 1.0
    smoothing: float = 0.5
    step_size: float | None = None
    radius: float | None = None
    average: bool = True
    adjacency: Literal["null", "replace"] = "null"


@dataclass(frozen=True, slots=True)
class _Kind:
    words: str
    build: Callable[[Training, dict[str, Any]], PrivateEstimator]


def _convex(estimator: type[PrivateLogisticRegression], method: Method) -> Callable[..., PrivateEstimator]:
    def build(training: Training, shape: dict[str, Any]) -> PrivateEstimator:
        bend: dict[str, Any] = {"smoothing": training.smoothing} if issubclass(estimator, PrivateHuberSVM) else {}
        values = {"delta": training.delta, "adjacency": training.adjacency, **bend, **shape}
        return estimator(training.epsilon, training.regularization, method, **values)

    return build


def _minibatch(training: Training, shape: dict[str, Any]) -> PrivateEstimator:
    wanted = {"step_size": training.step_size, "radius": training.radius}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    # Its steps start from zero whatever was released before.
    shape = {name: value for name, value in shape.items() if name != "prior"}
    return MiniBatchPrivateSVM(
        training.epsilon, average=training.average, adjacency=training.adjacency, **given, **shape
    )


KINDS: Mapping[str, _Kind] = {
    "logistic": _Kind(
        "logistic regression with objective perturbation", _convex(PrivateLogisticRegression, "objective")
    ),
    "logistic_gaussian": _Kind(
        "logistic regression with Gaussian objective perturbation", _convex(PrivateLogisticRegression, "gaussian")
    ),
    "logistic_output": _Kind(
        "logistic regression with output perturbation", _convex(PrivateLogisticRegression, "output")
    ),
    "huber_svm": _Kind(
        "support vector machine of Huber loss with objective perturbation", _convex(PrivateHuberSVM, "objective")
    ),
    "huber_svm_gaussian": _Kind(
        "support vector machine of Huber loss with Gaussian objective perturbation",
        _convex(PrivateHuberSVM, "gaussian"),
    ),
    "huber_svm_output": _Kind(
        "support vector machine of Huber loss with output perturbation", _convex(PrivateHuberSVM, "output")
    ),
    "minibatch_svm": _Kind("support vector machine trained by noisy steps on batches", _minibatch),
}


# Where the rows are public, another label costs these no more than a row left out (`LabelTrainingEvent`).
LOGISTIC = ("logistic", "logistic_output")


def estimator_for(
    name: str,
    training: Training,
    *,
    classes: list[int],
    norm_bound: float,
    intercept_scaling: float,
    prior: LinearModel | None = None,
) -> PrivateEstimator:
    """Build the estimator a project asks for, unfitted.

    Raises
    ------
    ValueError
        If no estimator that may be released has that name.
    """
    if name not in KINDS:
        raise ValueError(f"no estimator that may be released is called {name!r}")
    shape = {"classes": classes, "norm_bound": norm_bound, "intercept_scaling": intercept_scaling, "prior": prior}
    return KINDS[name].build(training, shape)


def multiclass_of(estimator: PrivateEstimator) -> Multiclass:
    """Say how the weights of an estimator become probabilities of more than two classes, or of sets of them."""
    if isinstance(estimator, PrivateLabelSets):
        return "independent"
    softmax = MiniBatchPrivateSVM | PrivateSoftmaxSteps | PrivateSums | RandomizedAnswersClassifier | RunningSums
    return "softmax" if isinstance(estimator, softmax) else "one_vs_rest"
