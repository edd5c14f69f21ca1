"""Each preset's way to choose and to learn, played on a pool with known labels at the same total epsilon."""

import math
import warnings
from collections.abc import Callable
from functools import cache

import numpy as np

from annotation.choices.policies.fixed_batches import FixedBatches
from annotation.choices.policies.updates import BatchPolicy, BatchState
from annotation.choices.policies.windows import FixedWindows
from benchmarks.trials.recipes import FITTING, NAMES, Outcome, Recipe, outcome, random_rows, released, spendable
from benchmarks.trials.tasks import Task
from learner.estimators.bandit import BanditMutualInformationOGD, FewAnswersWarning
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.mi_ogd import MutualInformationOGD, NoisyGradientDescent
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.linear_model import LinearModel
from learner.pools.streaming import examine
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.random import RandomChoice
from learner.strategies.secret_sample import SecretSample
from learner.strategies.uncertainty import Uncertainty
from privacy.accounting.events import Event
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.screening import coin_probability

# Where the epsilon of Gaussian noise is stated; every other recipe has none outside.
DELTA = 1e-6
ROUNDS = 3
BATCH = 50
# Prices computed back from solved parameters may round outwards.
TOLERANCE = 1e-9


def solved(price: Callable[[float], float], epsilon: float, *, low: float, high: float) -> float:
    """Return the largest argument in [low, high] whose increasing price stays within epsilon."""
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if price(middle) <= epsilon * (1 - TOLERANCE) else (low, middle)
    return low


def crowd_rounds(task: Task, labels: int, epsilon: float, seed: int, *, uncertain: bool) -> Outcome:
    """Release three times on all labels so far, choosing each round among texts that the gate made public.

    The whole pool is taken to have passed; the epsilon is that of the annotators' own account.
    """
    rng, rows = SimulationRandom(seed), np.empty(0, dtype=np.int64)
    model, events = None, []
    for number, upto in enumerate((labels // 4, labels // 2, labels)):
        strategy = Uncertainty() if uncertain and model else RandomChoice()
        rest = np.setdiff1d(np.arange(len(task.X)), rows)
        rows = np.concatenate([rows, strategy.query(task.X, rest, model, upto - len(rows), rng)])
        estimator = PrivateLogisticRegression(
            spendable(epsilon) / ROUNDS, random_state=ROUNDS * seed + number, **FITTING
        ).fit(task.X[rows], task.y[rows])
        model = released(estimator)
        events.append(estimator.privacy_event_)
    assert model is not None
    return outcome(task, model, labels, events)


def voice_crowd(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Ask the most uncertain by entropy, three rounds, three releases."""
    return crowd_rounds(task, labels, epsilon, seed, uncertain=True)


def voice_crowd_random(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Do the same with random choice."""
    return crowd_rounds(task, labels, epsilon, seed, uncertain=False)


def pool_experts(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Label three disjoint secret blocks of q, q and 2q, each release starting from the one before."""
    first = float(coin_probability(min(0.24, labels / 4 / len(task.X))))
    rates = (first, first, 2 * first)

    def blocks_cost(inner: float) -> float:
        return math.fsum(math.log1p(rate * math.expm1(inner)) for rate in rates)

    inner = solved(blocks_cost, epsilon, low=1e-3, high=30.0)
    rng, rest = SimulationRandom(seed), np.arange(len(task.X))
    model, events, used = None, [], 0
    left = 1.0
    for number, rate in enumerate(rates):
        # Given that a record is in no earlier block, its chance for this one is larger.
        rows = SecretSample(rate / left).query(task.X, rest, None, labels, rng)
        left, rest, used = left - rate, np.setdiff1d(rest, rows), used + len(rows)
        estimator = PrivateLogisticRegression(inner, prior=model, random_state=ROUNDS * seed + number, **FITTING)
        model = released(estimator.fit(task.X[rows], task.y[rows]))
        events.append(SecretSample(rate).release_event(estimator.privacy_event_))
    assert model is not None
    return outcome(task, model, used, events)


@cache
def stream_learner_epsilon(
    n_features: int, epsilon: float, high: float, low: float, visible: bool, radius: float, adjacency: str
) -> float:
    """Return the epsilon that one update may have so that the whole stream costs `epsilon`."""

    def stream_cost(update: float) -> float:
        learner = MiniBatchPrivateSVM(update, classes=[0, 1], intercept_scaling=0.2, adjacency=adjacency)
        event = BernoulliScreen(high, low).stream_event(
            learner.event_for(n_features), selection_visible=visible, schedule="flmb" if visible else "flsw"
        )
        return event.cost(adjacency=adjacency).epsilon

    return solved(stream_cost, epsilon, low=1e-2, high=40.0)


def played_stream(
    task: Task,
    labels: int,
    epsilon: float,
    seed: int,
    *,
    ratio: float = 2.0,
    batch: int = BATCH,
    radius: float = 40.0,
    step: float = 4.0,
    hidden: bool = False,
    adjacency: str = "null",
) -> Outcome:
    """Screen records one by one in random order and learn from each batch of selected ones, until labels run out."""
    # About 0.7 of the records in front of a young model get the larger rate. Hidden selection must not stop at a
    # number of labels, so its rate is one at which they last for the whole pool.
    high = min(0.5, (1.4 if ratio > 1 and not hidden else 1.0) * labels / len(task.X))
    screen = BernoulliScreen(high, high / ratio)
    update = stream_learner_epsilon(task.X.shape[1], epsilon, high, high / ratio, not hidden, radius, adjacency)
    learner = MiniBatchPrivateSVM(
        update,
        classes=[0, 1],
        intercept_scaling=0.2,
        radius=radius,
        step_size=step,
        adjacency=adjacency,
        random_state=seed,
    )
    window = max(1, round(batch / high))
    policy: BatchPolicy = FixedWindows(window, denominator=batch) if hidden else FixedBatches(batch)
    rng, order = SimulationRandom(seed), random_rows(task, len(task.X), seed)
    X, state, used = task.X[order], BatchState(), 0
    nothing = np.empty((0, X.shape[1]), dtype=np.float32), np.empty(0, dtype=int)
    learner.partial_fit(*nothing)
    # The learner has no weights before its first update; a model of zeros finds every record informative.
    model = LinearModel(np.zeros((1, X.shape[1])), np.zeros(1), NAMES)
    while state.next_slot < len(X) and (hidden or used < labels):
        start = state.next_slot
        block = X[start : start + max(window, 4 * batch)]
        seen = examine(
            block,
            first_slot=start,
            state=state,
            examiner=screen,
            policy=policy,
            model=model,
            rng=rng,
            most_batches=1,
        )
        state = seen.state
        for closed in seen.batches:
            slots = np.array(closed.slots, dtype=np.int64)
            learner.partial_fit(X[slots], task.y[order[slots]], denominator=closed.denominator)
            used += len(slots)
            model = LinearModel(learner.coef_, learner.intercept_, NAMES)
    event = screen.stream_event(
        learner.privacy_event_, selection_visible=not hidden, schedule="flsw" if hidden else "flmb"
    )
    done = outcome(task, model, used, [])
    return Outcome(done.error, used, event.cost(adjacency=adjacency).epsilon)


def fraud_stream(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Screen visibly at two rates, update on every 50 selected."""
    return played_stream(task, labels, epsilon, seed)


def fraud_stream_hidden(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Screen in secret, update by noisy windows of a fixed denominator."""
    return played_stream(task, labels, epsilon, seed, hidden=True)


def fraud_stream_random(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Select visibly at one rate whatever the record says."""
    return played_stream(task, labels, epsilon, seed, ratio=1.0)


def paper_stream(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
    """Take the source's batches of 5 in a unit ball with noise for replacements."""
    return played_stream(task, labels, epsilon, seed, batch=5, radius=1.0, step=1.0, adjacency="replace")


def descent(make: Callable[..., NoisyGradientDescent]) -> Recipe:
    """Return the recipe that learns from `labels` users, one after another."""

    @cache
    def sigma_for(n_features: int, labels: int, epsilon: float) -> float:
        def price(precision: float) -> float:
            return make(1 / precision, horizon=labels).event_for(n_features).cost().epsilon

        return 1 / solved(price, epsilon, low=1e-6, high=1e3)

    def play(task: Task, labels: int, epsilon: float, seed: int) -> Outcome:
        rows = random_rows(task, labels, seed)
        learner = make(sigma_for(task.X.shape[1], labels, epsilon), horizon=labels, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewAnswersWarning)
            learner.fit(task.X[rows], task.y[rows])
        events: list[Event] = [learner.privacy_event_]
        return outcome(task, LinearModel(learner.coef_, learner.intercept_, NAMES), len(rows), events)

    return play


def full_information(sigma: float, **options: object) -> MutualInformationOGD:
    """Return the learner of the preset with gradients of every user."""
    return MutualInformationOGD(sigma, delta=DELTA, classes=[0, 1], intercept_scaling=0.2, **options)


def confirmations(sigma: float, **options: object) -> BanditMutualInformationOGD:
    """Return the learner of the preset that hears right or wrong."""
    return BanditMutualInformationOGD(sigma, delta=DELTA, classes=[0, 1], intercept_scaling=0.2, **options)


full_information_ogd = descent(full_information)
confirm_or_reject = descent(confirmations)
