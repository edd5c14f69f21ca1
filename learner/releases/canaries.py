"""Canary audit of an estimator before it is released."""

import hashlib
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dpal.recompute.sums import NoisySums, released_sums
from dpal.recompute.transcript import Weights
from dpal.spans.crf import TRANSITION
from dpal.spans.features import FEATURE_NORM, FEATURE_STEPS
from dpal.spans.text import MAX_TOKENS
from learner.estimators.label_sets import PrivateLabelSets
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from learner.estimators.running_sums import RunningSums
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.span_crf import PrivateSpanCrf
from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from privacy.accounting.composition import gaussian_delta, gaussian_epsilon
from privacy.accounting.event import Event
from privacy.accounting.events import ObjectivePerturbationEvent
from privacy.accounting.steps import CenteredStepsEvent
from privacy.accounting.sums import PARTS, SumsEvent
from privacy.accounting.training import records_moved
from privacy.evidence import audit, gaussian_audit, one_by_one
from privacy.mechanisms.gradient_steps import NoisySteps
from privacy.mechanisms.randomness import RandomSource, SecureRandom, random_source
from privacy.mechanisms.session import MeasuringSession
from privacy.mechanisms.span_steps import NoisySpanSteps, TaggedRecords

# What is charged for all canaries together, as epsilon or as a ratio of sensitivity to Gaussian noise.
LOSS = 2.0
# Beyond this margin a logistic slope differs from one by less than rounding does.
STRAIGHT = 40.0
# A response takes microseconds, and what differs by e to the sixth is seen in tens of thousands of them.
# An epoch of so many batches takes the same code as a long one.
UPDATES_A_TRIAL = 4
RESPONSES_A_TRIAL = 20
RESPONSES_AT_ONCE = 1000
# Noise exceeds so many of its scales once in 10**26 draws.
LONGEST_NOISE = 60.0


class LinearEstimator(Protocol):
    coef_: NDArray[np.float64]

    def fit(self, X: Any, y: Any) -> Any: ...

    def event_for(self, n_features: int) -> Event: ...

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class CanaryStage:
    """Two inputs, and what the noise between their outputs is charged.

    Attributes
    ----------
    output : callable
        ``output(present)`` fits once, with the canaries or without, and returns one weight.
    promised : float
        What all canaries together are charged: an epsilon, or where `gaussian` a ratio of sensitivity to noise.
    share : float
        What a loss of all canaries is multiplied by for the loss of one record.
    gaussian : bool
        Whether the charge is one of Gaussian noise.
    delta : float
        What is charged beside an epsilon; with Gaussian noise, where its epsilon is stated.
    draws : int
        Outputs of a trial: more where they cost next to nothing, since few show no large epsilon.
    """

    output: Callable[[bool], float]
    promised: float
    share: float
    gaussian: bool = False
    delta: float = 0.0
    draws: int = 1

    def epsilon(self, loss: float) -> float:
        """Return the epsilon of one record that a loss of all canaries means; monotone, and above 0 as promised."""
        one = loss * self.share
        if not self.gaussian:
            return one
        promised = self.promised * self.share
        # At most the delta that is charged; a smaller one where hardly any noise would do for that.
        return gaussian_epsilon(one, min(self.delta or 1.0, gaussian_delta(promised, promised)))


@singledispatch
def stage_for(estimator: LinearEstimator) -> CanaryStage:
    """Return the stage of an estimator: where none was built for it, one row and its dummy, and the whole charge."""
    copy = _copy(estimator)
    bound = float(estimator.get_params().get("norm_bound", 1.0))

    def output(present: bool) -> float:
        fitted = clone(copy).fit(np.full((1, 1), bound * present), np.ones(1, dtype=np.int64))
        return float(fitted.coef_[0, 0])

    cost = copy.event_for(1).cost()
    return CanaryStage(output, cost.epsilon, 1.0, delta=cost.delta)


@stage_for.register
def convex_stage(estimator: PrivateLogisticRegression) -> CanaryStage:
    """Put rows far on the wrong side of a public prior; in one column, where Gamma-norm noise is Laplace noise."""
    event = _copy(estimator).event_for(1)
    if isinstance(event, ObjectivePerturbationEvent):
        # The tilt's part alone: where the loss is straight there is no change of variables.
        one = event.epsilon_prime / records_moved(event.adjacency)
        scale = event.tilt_scale / event.total_regularization
    else:
        one, scale = event.cost().epsilon, event.noise_scale
    bound = float(estimator.norm_bound)
    away = STRAIGHT / bound * max(1.0, one / LOSS) + (2 * LOSS + LONGEST_NOISE) * scale
    # Rounding in the margins of more rows than this, so far away, would leave the solver without its certificate.
    most = float(estimator.gradient_tolerance) / (away * bound**2 * 2.0**-48)
    records, length, labels = _canaries(min(LOSS / one, most), bound)
    copy = _copy(estimator, prior=LinearModel(np.array([[-away]]), np.zeros(1), ("0", "1")))

    def output(present: bool) -> float:
        return float(copy.fit(np.full((records, 1), length * present), labels).coef_[0, 0])

    return CanaryStage(output, one * records * length / bound, bound / (records * length))


@stage_for.register
def sums_stage(estimator: PrivateSums) -> CanaryStage:
    """Add whole rows of as many classes as a record may have, and weigh all released sums by how far they move them."""
    copy = _copy(estimator)
    # Which model is made of the sums changes nothing about them, and takes a hundred times as long as they do.
    copy._make_model = lambda public, sums, seed: ("", Weights(np.zeros((1, 1)), np.zeros(1)))
    event = copy.event_for(1)
    records = max(1, round(LOSS / event.gaussian_mu()))
    rows = np.full((records, 1), float(estimator.norm_bound))
    labels, entered = np.ones(records, dtype=np.int64), np.array([False, True])
    if isinstance(estimator, PrivateLabelSets):
        most = estimator.labels_per_record
        labels = np.tile(np.arange(max(2, most)) < most, (records, 1))
        # The last sum is that of all rows.
        entered = np.append(labels[0], True)
    weighed = _weighing(estimator, event, entered)

    def output(present: bool) -> float:
        return weighed(copy.fit(rows[: records * present], labels[: records * present]).sums_)

    return CanaryStage(output, event.gaussian_mu() * records, 1 / records, gaussian=True, delta=event.delta)


@stage_for.register
def steps_stage(estimator: PrivateSoftmaxSteps) -> CanaryStage:
    """Give one step rows whose residuals are longer than the clip allows, all of one class, and weigh what it sums."""
    copy = _copy(estimator, steps=min(estimator.steps, UPDATES_A_TRIAL))
    event = copy.event_for(1)
    records = max(1, round(LOSS / event.gaussian_mu()))
    row = np.array([estimator.norm_bound, estimator.intercept_scaling])
    rows, pulls = np.tile(row, (records, 1)), np.tile([-2.0, 2.0], (records, 1))
    moved = np.outer([-1.0, 1.0], row) * event.residual_bound / math.sqrt(2)
    rng, made = random_source(copy.random_state), copy._event(1, 2)

    def output(present: bool) -> float:
        noisy = NoisySteps(rows[: records * present], made, rng=rng)
        total = noisy.count / event.count_sigma**2
        if isinstance(made, CenteredStepsEvent) and noisy.row_sum is not None:
            total += float(row @ noisy.row_sum) / made.center_sigma**2
        for _step in range(event.steps):
            total += float((moved * noisy.release(pulls[: records * present])).sum()) / event.sigma**2
        return float(total)

    return CanaryStage(output, event.gaussian_mu() * records, 1 / records, gaussian=True, delta=event.delta)


@stage_for.register
def spans_stage(estimator: PrivateSpanCrf) -> CanaryStage:
    """Give one step texts of one type from end to end, whose gradients are longer than the clip, and weigh the sums."""
    copy = _copy(estimator, types=("name",), steps=min(estimator.steps, UPDATES_A_TRIAL))
    event, made = (of._steps_event(copy, copy.epsilon, copy.delta, n_features=1) for of in (PrivateSpanCrf, type(copy)))
    records = max(1, round(LOSS / event.gaussian_mu()))
    texts = [
        TaggedRecords(
            np.full((MAX_TOKENS * n, 1), int(FEATURE_NORM * FEATURE_STEPS), dtype=np.int16),
            np.full(n, MAX_TOKENS, dtype=np.int64),
            np.ones(MAX_TOKENS * n, dtype=np.int64),
        )
        for n in (0, records)
    ]
    # At weights of zero all tags, and all pairs of them, are equally likely.
    emissions, pairs = MAX_TOKENS * FEATURE_NORM / 2, TRANSITION * (MAX_TOKENS - 1) / 4
    moved = np.array([[-emissions, -pairs, -pairs], [emissions, -pairs, 3 * pairs]])
    moved *= event.residual_bound / np.linalg.norm(moved)
    rng, start = random_source(None), np.zeros((2, 3))

    def output(present: bool) -> float:
        noisy = NoisySpanSteps(texts[present], made, rng=rng)
        total = noisy.count / event.count_sigma**2
        for _step in range(event.steps):
            total += float((moved * noisy.release(start)).sum()) / event.sigma**2
        return total

    return CanaryStage(output, event.gaussian_mu() * records, 1 / records, gaussian=True, delta=event.delta)


@stage_for.register
def running_stage(estimator: RunningSums) -> CanaryStage:
    """Put whole rows into the first batch of a short epoch, and weigh all its releases by how far these move them."""
    copy = _copy(estimator, updates=min(estimator.updates, UPDATES_A_TRIAL))
    event = copy.event_for(1)
    records = max(1, round(LOSS / event.gaussian_mu()))
    rows, labels = np.full((records, 1), float(estimator.norm_bound)), np.ones(records, dtype=np.int64)
    weighed = _weighing(estimator, event.sums, np.array([False, True]))
    copy.start(1)

    def output(present: bool) -> float:
        batches, total = [(rows[: records * present], labels[: records * present])], 0.0
        for part in event.coefficients:
            session = MeasuringSession(copy._release_queries(batches))
            total += part / PARTS * weighed(released_sums(copy._parameters(), session))
            batches.append((rows[:0], labels[:0]))
        return total

    return CanaryStage(output, event.gaussian_mu() * records, 1 / records, gaussian=True, delta=event.sums.delta)


@stage_for.register
def responses_stage(estimator: RandomizedAnswersClassifier) -> CanaryStage:
    """Let one answer be the one class or the other; whatever is learned of it is made of the response alone."""
    copy = _copy(estimator)
    rng = random_source(copy.random_state)
    # Drawn many at a time, by the sampler that projects draw with.
    waiting: dict[bool, list[int]] = {False: [], True: []}

    def output(present: bool) -> float:
        if not waiting[present]:
            truth = np.full(RESPONSES_AT_ONCE, int(present), dtype=np.int64)
            kept = np.ones((RESPONSES_AT_ONCE, 2), dtype=np.bool_)
            waiting[present] = copy.response.release(truth, kept, rng=rng).tolist()
        return float(waiting[present].pop())

    event = copy.event_for(1)
    # Every response is paid for alike, so one of them shows what all of them cost.
    one = event.epsilon_once
    return CanaryStage(output, one, event.cost().epsilon / one, draws=RESPONSES_A_TRIAL)


def plain_parameters(estimator: LinearEstimator) -> dict[str, Any]:
    known = estimator.get_params()
    # A record with several classes needs as many.
    classes = list(range(max(2, known.get("labels_per_record", 1))))
    changed = {"classes": classes, "fit_intercept": False, "prior": None, "before": None, "earlier": None}
    return {**known, **{name: value for name, value in changed.items() if name in known}, "random_state": None}


def _copy(estimator: LinearEstimator, **changes: Any) -> Any:
    return clone(estimator).set_params(**plain_parameters(estimator) | changes)


def _canaries(records: float, bound: float) -> tuple[int, float, NDArray[np.int64]]:
    """Return whole rows for a number of records that need not be whole, their equal length, and their labels.

    Noise of any kind here hides a row in proportion to its length, so shorter rows are parts of a record.
    """
    whole = math.ceil(records)
    return whole, bound * records / whole, np.ones(whole, dtype=np.int64)


def _weighing(
    estimator: PrivateSums | RunningSums, event: SumsEvent, entered: NDArray[np.bool_]
) -> Callable[[NoisySums], float]:
    row = np.array([estimator.norm_bound, estimator.intercept_scaling])
    moved = np.outer(row, row) / event.moment_sigma**2 if event.moment_sigma else np.zeros((2, 2))

    def weighed(released: NoisySums) -> float:
        moments = 0.0 if released.moments is None else (moved * released.moments).sum()
        return float(moments + row @ released.class_sums[entered].sum(axis=0) / event.class_sigma**2)

    return weighed


TRIALS = 2000
# A sound mechanism is held back once in a million different configurations: the draws are the operating system's.
CONFIDENCE = 1 - 1e-6


@dataclass(frozen=True, slots=True)
class Canary:
    """Result of the canary.

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

    def weight(present: bool, rng: RandomSource) -> float:
        return stage.output(present)

    trials *= stage.draws
    if stage.gaussian:
        ratio = gaussian_audit(
            one_by_one(weight), True, False, trials=trials, confidence=CONFIDENCE, rng=SecureRandom()
        )
        return ratio.mu_lower_bound, ratio.event
    found = audit(
        one_by_one(weight), True, False, trials=trials, confidence=CONFIDENCE, delta=stage.delta, rng=SecureRandom()
    )
    return found.epsilon_lower_bound, found.event


def fingerprint(estimator: LinearEstimator, *, code: str, trials: int = TRIALS) -> str:
    """Return the SHA-256 of all that the canary depends on: the class, its parameters, and the code's version."""
    parameters = {name: repr(value) for name, value in plain_parameters(estimator).items()}
    body = {"estimator": type(estimator).__name__, "parameters": parameters, "trials": trials, "code": code}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
