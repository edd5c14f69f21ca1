"""Estimators by the names under which projects store them; none of them trains without noise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from learner.estimators.huber_svm import PrivateHuberSVM
from learner.estimators.logistic import Method, PrivateLogisticRegression
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.linear_model import LinearModel

PrivateEstimator = PrivateLogisticRegression | MiniBatchPrivateSVM


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
    """

    epsilon: float
    delta: float = 0.0
    regularization: float = 1.0
    smoothing: float = 0.5
    step_size: float | None = None
    radius: float | None = None
    average: bool = True


@dataclass(frozen=True, slots=True)
class _Kind:
    words: str
    build: Callable[[Training, dict[str, Any]], PrivateEstimator]


def _convex(estimator: type[PrivateLogisticRegression], method: Method) -> Callable[..., PrivateEstimator]:
    def build(training: Training, shape: dict[str, Any]) -> PrivateEstimator:
        bend: dict[str, Any] = {"smoothing": training.smoothing} if issubclass(estimator, PrivateHuberSVM) else {}
        values = {"delta": training.delta, **bend, **shape}
        return estimator(training.epsilon, training.regularization, method, **values)

    return build


def _minibatch(training: Training, shape: dict[str, Any]) -> PrivateEstimator:
    wanted = {"step_size": training.step_size, "radius": training.radius}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    # Its steps start from zero whatever was released before.
    shape = {name: value for name, value in shape.items() if name != "prior"}
    return MiniBatchPrivateSVM(training.epsilon, average=training.average, **given, **shape)


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


# Streams alone have these: they take each record once, as it comes.
ONLINE: Mapping[str, str] = {
    "mi_ogd": "logistic regression by noisy online gradient descent",
    "bandit_ogd": "logistic regression by noisy online gradient descent from confirmations",
}


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


def words_for(name: str) -> str:
    """Return what a model card says of an estimator."""
    return ONLINE[name] if name in ONLINE else KINDS[name].words
