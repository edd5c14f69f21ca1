"""Ways to choose labels and to train on them, each charged by the events of the ledger."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.trials.tasks import Task, unit_rows
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.features.principal import principal_directions
from learner.linear_model import LinearModel
from learner.strategies.secret_sample import ScreenedSecretSample, SecretSample
from learner.strategies.top_c import TopC
from privacy.accounting.events import Event, RandomChoiceEvent
from privacy.accounting.sums import second_moments_event
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.second_moments import release_second_moments

FITTING = {"regularization": 1.0, "classes": [0, 1], "intercept_scaling": 0.2}
NAMES = ("no", "yes")
PRINCIPAL_COLUMNS = 30


@dataclass(frozen=True)
class Outcome:
    """A model, the labels it used and what its ledger entries add up to."""

    error: float
    labels: int
    epsilon: float


# A task, a number of labels, an epsilon and a seed.
Recipe = Callable[[Task, int, float, int], Outcome]


def outcome(task: Task, model: LinearModel, labels: int, events: list[Event]) -> Outcome:
    """Measure a model and add up what it cost."""
    predicted = (model.decision_function(task.test_rows) > 0).astype(int)
    epsilon = math.fsum(event.cost().epsilon for event in events)
    return Outcome(float((predicted != task.test_labels).mean()), labels, epsilon)


def released(estimator: PrivateLogisticRegression | MiniBatchPrivateSVM | LogisticRegressionBaseline) -> LinearModel:
    """Return the weights of a fitted estimator."""
    return LinearModel(estimator.coef_, estimator.intercept_, NAMES)


def random_rows(task: Task, labels: int, seed: int) -> np.ndarray:
    """Return as many rows of the pool as labels may be asked for."""
    return np.random.default_rng(seed).permutation(len(task.X))[:labels]


def spendable(epsilon: float) -> float:
    """Leave room for the outward rounding of several prices."""
    return epsilon * (1 - 1e-9)


def visible_random(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Label random records in the open and train once by objective perturbation."""
    rows = random_rows(task, labels, seed)
    estimator = PrivateLogisticRegression(spendable(epsilon), random_state=seed, **FITTING)
    estimator.fit(task.X[rows], task.y[rows])
    return outcome(task, released(estimator), labels, [RandomChoiceEvent(labels), estimator.privacy_event_])


def secret_sample(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Label a secret Poisson sample and train once by objective perturbation."""
    sample = SecretSample(labels / len(task.X))
    rows = sample.query(task.X, np.arange(len(task.X)), None, labels, SimulationRandom(seed))
    inner = math.log1p(math.expm1(spendable(epsilon)) / sample.rate)
    estimator = PrivateLogisticRegression(inner, random_state=seed, **FITTING).fit(task.X[rows], task.y[rows])
    events = [sample.event_for(pool_size=len(task.X), picks=labels, series="single")]
    return outcome(task, released(estimator), len(rows), [*events, sample.release_event(estimator.privacy_event_)])


def principal_secret_sample(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Spend a quarter on principal directions of the whole pool, the rest on a secret sample of projected rows."""
    event = second_moments_event(epsilon / 4, task.X.shape[1])
    moments = release_second_moments([task.X], event, rng=SimulationRandom(10_000 + seed))
    directions = principal_directions(moments, min(PRINCIPAL_COLUMNS, task.X.shape[1]))
    narrow = Task(
        task.name, unit_rows(task.X @ directions.T), task.y, unit_rows(task.test_rows @ directions.T), task.test_labels
    )
    done = secret_sample(narrow, labels, spendable(epsilon - event.cost().epsilon), seed)
    return Outcome(done.error, done.labels, math.fsum([done.epsilon, event.cost().epsilon]))


def screened_secret_half(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Spend half on a secret sample, then prefer in secret what lies near that model, regularised towards it."""
    half, rng = spendable(epsilon) / 2, SimulationRandom(seed)
    first = SecretSample(labels / 2 / len(task.X))
    everyone = np.arange(len(task.X))
    rows = first.query(task.X, everyone, None, labels, rng)
    inner = math.log1p(math.expm1(half) / first.rate)
    start = PrivateLogisticRegression(inner, random_state=seed, **FITTING).fit(task.X[rows], task.y[rows])
    model = released(start)
    # Rates from public numbers: the slab is taken to hold a fifth of the pool.
    second = ScreenedSecretSample(
        min(0.99, labels / 2 / len(task.X) / 0.36), outside_rate=labels / 2 / len(task.X) / 1.8
    )
    rest = np.setdiff1d(everyone, rows)
    more = second.query(task.X, rest, model, labels, rng)
    inner = math.log1p(math.expm1(half) / second.rate)
    final = PrivateLogisticRegression(inner, prior=model, random_state=seed + 1, **FITTING)
    final.fit(task.X[more], task.y[more])
    events: list[Event] = [first.release_event(start.privacy_event_), second.release_event(final.privacy_event_)]
    return outcome(task, released(final), len(rows) + len(more), events)


def top_c(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Release a first model on random labels, choose as many by it in the open, train on all of them."""
    half = labels // 2
    rows = random_rows(task, half, seed)
    strategy = TopC(0.25)
    event = strategy.event_for(pool_size=len(task.X) - half, picks=labels - half, series="single")
    left = spendable(epsilon) - event.cost().epsilon
    start = PrivateLogisticRegression(left / 3, random_state=seed, **FITTING).fit(task.X[rows], task.y[rows])
    rest = np.setdiff1d(np.arange(len(task.X)), rows)
    more = strategy.query(task.X, rest, released(start), labels - half, SimulationRandom(seed))
    rows = np.concatenate([rows, more])
    final = PrivateLogisticRegression(2 * left / 3, random_state=seed + 1, **FITTING).fit(task.X[rows], task.y[rows])
    return outcome(task, released(final), labels, [event, start.privacy_event_, final.privacy_event_])


def minibatch(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Label random records in the open and take one noisy step on each batch of them."""
    rows = random_rows(task, labels, seed)
    estimator = MiniBatchPrivateSVM(spendable(epsilon), classes=[0, 1], intercept_scaling=0.2, random_state=seed).fit(
        task.X[rows], task.y[rows]
    )
    return outcome(task, released(estimator), labels, [RandomChoiceEvent(labels), estimator.privacy_event_])


def random_without_privacy(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Train on random labels with no noise: nothing to release."""
    rows = random_rows(task, labels, seed)
    if len(set(task.y[rows].tolist())) < 2:
        return Outcome(0.5, labels, math.inf)
    estimator = LogisticRegressionBaseline(FITTING["regularization"], intercept_scaling=FITTING["intercept_scaling"])
    estimator.fit(task.X[rows], task.y[rows])
    return Outcome(outcome(task, released(estimator), labels, []).error, labels, math.inf)
