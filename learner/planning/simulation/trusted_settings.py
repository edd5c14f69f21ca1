"""What a simulated project of trusted experts is set to: the preset's limits and a planned recipe."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from annotation.choices.presets import PRESETS
from learner.estimators.huber_svm import PrivateHuberSVM
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from privacy.accounting.event import Event
from privacy.accounting.events import SecretSampleEvent
from privacy.mechanisms.randomness import SimulationRandom

PRESET = "pool-experts"
# What is planned where nothing is set, found on public tasks, see docs/results/utility.md: by estimator, and by whether
# the owner wrote examples, towards which a training may be drawn harder and in more columns.
PLANNED: Mapping[tuple[str, bool], Mapping[str, Any]] = {
    ("huber_svm_gaussian", False): {
        "feature_dimension": 128,
        "regularization": 2.0,
        "smoothing": 0.5,
        "moment_share": 0.0,
    },
    ("huber_svm_gaussian", True): {
        "feature_dimension": 256,
        "regularization": 3.0,
        "smoothing": 1.0,
        "moment_share": 0.0,
    },
    ("softmax_steps", False): {"feature_dimension": 128, "regularization": 1.0, "smoothing": 0.5, "moment_share": 0.0},
    ("softmax_steps", True): {"feature_dimension": 128, "regularization": 1.0, "smoothing": 0.5, "moment_share": 0.0},
    ("sums", False): {"feature_dimension": 128, "regularization": 1.0, "smoothing": 0.5, "moment_share": 0.05},
    ("sums", True): {"feature_dimension": 128, "regularization": 1.0, "smoothing": 0.5, "moment_share": 0.05},
}
ESTIMATORS = ("huber_svm_gaussian", "softmax_steps", "sums")
KINDS: Mapping[str, type] = {
    "estimator": str,
    "feature_dimension": int,
    "regularization": float,
    "smoothing": float,
    "moment_share": float,
    "normalizer": str,
    "pool_epsilon": float,
    "pool_delta": float,
}
Estimator = PrivateHuberSVM | PrivateSoftmaxSteps | PrivateSums


@dataclass(frozen=True, slots=True)
class TrustedSettings:
    """All settings of one simulation.

    Attributes
    ----------
    estimator : str
        "huber_svm_gaussian", "softmax_steps" or "sums"; planned by the number of classes: two are learned best by the
        first, more by the second.
    feature_dimension : int
        Leading columns of the static encoder.
    regularization, smoothing, moment_share : float
        Of the estimators.
    normalizer : str
        Rule of texts.
    pool_epsilon, pool_delta : float
        Limit of the pool's account, all of which is planned for.
    """

    estimator: str
    feature_dimension: int
    regularization: float
    smoothing: float
    moment_share: float
    normalizer: str
    pool_epsilon: float
    pool_delta: float

    @classmethod
    def of(cls, given: Mapping[str, str], *, n_classes: int, described: bool) -> Self:
        """Return the planned recipe with `given` in its place.

        Raises
        ------
        ValueError
            If a name is unknown, or a value cannot be read or is out of range.
        """
        if unknown := sorted(set(given) - set(KINDS)):
            raise ValueError(f"unknown settings {', '.join(unknown)}; there are {', '.join(sorted(KINDS))}")
        wanted: dict[str, Any] = {}
        for name, text in given.items():
            try:
                wanted[name] = KINDS[name](text)
            except ValueError as error:
                raise ValueError(f"{name} must be of type {KINDS[name].__name__}, got {text!r}") from error
        estimator = wanted.get("estimator", "huber_svm_gaussian" if n_classes == 2 else "softmax_steps")
        if (estimator, described) not in PLANNED:
            raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
        limits = {name: PRESETS[PRESET].defaults[name] for name in ("pool_epsilon", "pool_delta")}
        return cls(
            **{"estimator": estimator, "normalizer": "L1"} | dict(PLANNED[estimator, described]) | limits | wanted
        )

    def training(self, rate: float, *, classes: range, prior: LinearModel | None, rng: SimulationRandom) -> Estimator:
        """Return the estimator that spends the whole account on a secret sample of this rate; 1 for no secret."""
        # The smallest float above would already cost more than the account holds.
        epsilon = math.log1p(math.expm1(self.pool_epsilon) / rate) * (1 - 1e-9)
        delta = self.pool_delta / rate * (1 - 1e-9)
        if delta >= 1:
            raise ValueError(f"pool_delta must be below the rate {rate}, got {self.pool_delta}")
        shape: dict[str, Any] = {"classes": classes, "delta": delta, "prior": prior, "random_state": rng}
        if self.estimator == "sums":
            return PrivateSums(epsilon, moment_share=self.moment_share, **shape)
        if self.estimator == "softmax_steps":
            return PrivateSoftmaxSteps(epsilon, **shape)
        return PrivateHuberSVM(epsilon, self.regularization, "gaussian", smoothing=self.smoothing, **shape)

    def event(self, estimator: Estimator, *, rate: float, n_features: int) -> Event:
        """Return what the release is charged, and check that the account holds it.

        Raises
        ------
        ValueError
            If the recipe costs more than the limit: a mistake of the recipe, not of the data.
        """
        inner = estimator.event_for(n_features)
        event: Event = SecretSampleEvent(inner, rate) if rate < 1 else inner
        cost = event.cost()
        if cost.epsilon > self.pool_epsilon or cost.delta > self.pool_delta:
            raise ValueError(f"the release costs ({cost.epsilon}, {cost.delta}), more than the account holds")
        return event
