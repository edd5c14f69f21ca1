"""A canary for the mechanism of a release: does the estimator that ran still leak no more than it is charged?

Records that could not stand out more, and the dummies that stand for nobody, go through the estimator with the
parameters and the source of randomness of the release. An estimator whose noise shrank, by a bug or by another version
of a library, is told apart from what it was charged, and the release is held back: 2,000 fits on each side find noise
half as large. Passing is no proof: the bound is a lower one.
"""

import hashlib
import json
import warnings
from dataclasses import dataclass

from learner.canaries.stages import CanaryStage, LinearEstimator, plain_parameters, stage_for
from privacy.evidence import audit, gaussian_audit, one_by_one
from privacy.mechanisms.randomness import RandomSource, SecureRandom

TRIALS = 2000
# A sound mechanism is held back once in a million different configurations: the draws are the operating system's.
CONFIDENCE = 1 - 1e-6


@dataclass(frozen=True, slots=True)
class Canary:
    """What the canary found.

    Attributes
    ----------
    charged : float
        Epsilon the noise is charged for one record; of Gaussian noise at the delta of the estimator, or at a smaller
        one where its epsilon would be 0 there.
    epsilon_lower_bound : float
        No smaller epsilon, at the same delta, is compatible with the fits. With Gaussian noise what they show is the
        ratio of sensitivity to noise.
    event : str
        The event that showed it, as a condition on one weight.
    trials : int
        Fits on each side.
    """

    charged: float
    epsilon_lower_bound: float
    event: str
    trials: int

    @property
    def sings(self) -> bool:
        """Whether the evidence allows the charge."""
        return self.epsilon_lower_bound <= self.charged


def send_canary(estimator: LinearEstimator, *, trials: int = TRIALS) -> Canary:
    """Fit the estimator again and again with the canaries and without, and bound the loss of its noise below.

    The noise is drawn as it is for a release: by the exact samplers, from the operating system.

    Parameters
    ----------
    estimator : LinearEstimator
        Unfitted or fitted; a copy is used, with two classes, one column and no prior of its own.
    trials : int
        Fits on each side, >= 4.

    References
    ----------
    .. [1] Jagielski, Ullman, Oprea, "Auditing differentially private machine learning", 2020.
    .. [2] Nasr, Hayes, Steinke, Balle, Tramer, Jagielski, Carlini, Terzis, "Tight auditing of differentially private
       machine learning", 2023.
    """
    stage = stage_for(estimator)
    with warnings.catch_warnings():
        # Few rows are few for any estimator.
        warnings.simplefilter("ignore")
        loss, event = _loss(stage, trials)
    return Canary(stage.epsilon(stage.promised), stage.epsilon(loss), event, trials)


def _loss(stage: CanaryStage, trials: int) -> tuple[float, str]:
    """Return the lower bound on the loss of all canaries and what showed it."""

    def weight(present: bool, rng: RandomSource) -> float:
        return stage.output(present)

    trials *= stage.draws
    if stage.gaussian:
        ratio = gaussian_audit(
            one_by_one(weight), True, False, trials=trials, confidence=CONFIDENCE, rng=SecureRandom()
        )
        return ratio.mu_lower_bound, ratio.event
    found = audit(
        one_by_one(weight),
        True,
        False,
        trials=trials,
        confidence=CONFIDENCE,
        delta=stage.delta,
        rng=SecureRandom(),
    )
    return found.epsilon_lower_bound, found.event


def fingerprint(estimator: LinearEstimator, *, code: str, trials: int = TRIALS) -> str:
    """Return the SHA-256 of all that the canary depends on: the class, its parameters, and the code's version."""
    parameters = {name: repr(value) for name, value in plain_parameters(estimator).items()}
    body = {"estimator": type(estimator).__name__, "parameters": parameters, "trials": trials, "code": code}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
