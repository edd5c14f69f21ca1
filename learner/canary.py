"""A canary for the mechanism of a release: does the estimator that ran still leak no more than it is charged?

One row that could not stand out more, and the dummy that stands for nobody, go through the estimator with the
parameters of the release. An estimator whose noise shrank, by a bug or by another version of a library, is told apart
from what it was charged, and the release is held back. Passing is no proof: the bound is a lower one.
"""

import hashlib
import json
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from privacy.accounting.event import Event
from privacy.evidence import Audit, audit, one_by_one
from privacy.mechanisms.randomness import RandomSource, SimulationRandom

TRIALS = 1500
# A sound mechanism is held back once in ten thousand different configurations.
CONFIDENCE = 0.9999
SEED = 20_261_121
Rows = tuple[NDArray[np.float64], NDArray[np.int64]]


class LinearEstimator(Protocol):
    """What every releasable linear estimator offers."""

    coef_: NDArray[np.float64]

    def fit(self, X: Any, y: Any) -> Any:
        """Fit on rows and classes."""

    def event_for(self, n_features: int) -> Event:
        """Return what a fit is charged."""

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """Return the parameters, as scikit-learn has it."""


@dataclass(frozen=True, slots=True)
class Canary:
    """What the canary found.

    Attributes
    ----------
    charged : float
        Epsilon the estimator is charged, at the delta it is charged.
    audit : Audit
        The empirical lower bound and how it was found.
    """

    charged: float
    audit: Audit

    @property
    def sings(self) -> bool:
        """Whether the evidence allows the charge."""
        return self.audit.epsilon_lower_bound <= self.charged


def send_canary(estimator: LinearEstimator, *, trials: int = TRIALS, seed: int = SEED) -> Canary:
    """Fit the estimator again and again on one row and on none, with simulated noise, and bound its epsilon below.

    Parameters
    ----------
    estimator : LinearEstimator
        Unfitted or fitted; a copy is used, with two classes, one column and no prior.
    trials : int
        Fits on each side, >= 4.
    seed : int
        Of the simulated noise; nothing that is fitted here can be released.

    References
    ----------
    .. [1] Jagielski, Ullman, Oprea, "Auditing differentially private machine learning", 2020.
    """
    parameters = _parameters(estimator)
    bound = float(parameters.get("norm_bound", 1.0))
    one: Rows = (np.full((1, 1), bound), np.ones(1, dtype=np.int64))
    # The dummy of the null adjacency: its slot stays, and its gradient is zero.
    none: Rows = (np.zeros((1, 1)), np.ones(1, dtype=np.int64))

    def weight(data: Rows, rng: RandomSource) -> float:
        fitted = clone(estimator).set_params(**{**parameters, "random_state": rng}).fit(*data)
        return float(fitted.coef_[0, 0])

    cost = clone(estimator).set_params(**parameters).event_for(1).cost()
    with warnings.catch_warnings():
        # One row is few for any estimator.
        warnings.simplefilter("ignore")
        found = audit(
            one_by_one(weight),
            one,
            none,
            trials=trials,
            confidence=CONFIDENCE,
            delta=cost.delta,
            rng=SimulationRandom(seed),
        )
    return Canary(cost.epsilon, found)


def fingerprint(estimator: LinearEstimator, *, code: str, trials: int = TRIALS) -> str:
    """Return the SHA-256 of all that the canary depends on: the class, its parameters, and the code's version."""
    parameters = {name: repr(value) for name, value in _parameters(estimator).items()}
    body = {"estimator": type(estimator).__name__, "parameters": parameters, "trials": trials, "code": code}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _parameters(estimator: LinearEstimator) -> dict[str, Any]:
    known = estimator.get_params()
    changed = {"classes": [0, 1], "fit_intercept": False, "prior": None}
    return {**known, **{name: value for name, value in changed.items() if name in known}, "random_state": None}
