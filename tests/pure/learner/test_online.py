"""Learning from each answer at once: steps in the order of the batches, however many are taken together."""

import numpy as np
import pytest

from annotation.choices.policies.immediate import ImmediateUpdates
from annotation.choices.policies.windows import FixedWindows
from learner.estimators.bandit import BanditGradientBaseline, BanditMutualInformationOGD
from learner.estimators.mi_ogd import OnlineGradientBaseline
from learner.estimators.online_choices import Confirmations, FullInformation, OnlineChoice
from learner.estimators.running_sums import RunningSums
from learner.estimators.streaming import AnsweredBatch
from learner.pools.streaming import guessed_classes, simulated_arrival
from privacy.mechanisms.randomness import SimulationRandom

STEPS = {"noise_sigma": 1.0, "expected_answers": 40, "weight_radius": 5.0}
ANSWERS, CONFIRMATIONS = FullInformation(**STEPS), Confirmations(**STEPS)
# Batches without any answer among batches of one and of several.
COUNTS = [0, 1, 1, 0, 0, 3, 1, 0]


def examples(number: int, *, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(number, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * 1.01
    return X.astype(np.float32), X[:, :classes].argmax(axis=1)


def started(online: OnlineChoice, *, private: bool = True, seed: int = 3, classes: int = 2):
    source = SimulationRandom(seed)
    names = list(range(classes))
    return online.learner(names, intercept_scaling=0.2, private=private, random_state=source).start(4)


def test_answers_of_many_batches_make_the_steps_of_one_after_the_other():
    X, y = examples(6)
    together, single = started(ANSWERS, private=False), started(ANSWERS, private=False)
    together.learn_batches(AnsweredBatch.all_answered(X, y, COUNTS), new=len(COUNTS))
    for batch in AnsweredBatch.all_answered(X, y, COUNTS):
        single.learn_batches([batch], new=1)
    # A batch without an answer makes one step of noise alone.
    assert together.updates_ == single.updates_ == 6 + 4
    np.testing.assert_allclose(together.coef_, single.coef_, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_confirmations_of_many_batches_make_the_steps_of_one_after_the_other(classes):
    X, _ = examples(6)
    guesses = started(CONFIRMATIONS, classes=classes).guess_all(X)
    right = [True, False, False, True, True, False]
    together, single = (started(CONFIRMATIONS, private=False, classes=classes) for _ in range(2))
    together.learn_guesses([guess.direction for guess in guesses], right, COUNTS)
    for guess, confirmed in zip(guesses[:2], right[:2], strict=True):
        single.learn(guess, confirmed=confirmed)
    assert together.updates_ == 10
    for guess, confirmed in zip(guesses[2:], right[2:], strict=True):
        single.learn(guess, confirmed=confirmed)
    # Steps of nothing do not move the lazy sum, whatever their place.
    np.testing.assert_allclose(together.state()["theta"], single.state()["theta"], rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_guess_is_the_class_at_the_weights_moved_by_its_direction(classes):
    X, y = examples(50, classes=classes)
    learner = started(CONFIRMATIONS, classes=classes)
    learner.learn_guesses([guess.direction for guess in learner.guess_all(X)], (y == 0).tolist(), [1] * 50)
    wide = np.column_stack([X, np.full(50, 0.2)])
    for guess, row in zip(learner.guess_all(X), wide, strict=True):
        direction = np.array(guess.direction).reshape(learner.weights_.shape)
        assert np.linalg.norm(direction) == pytest.approx(1)
        scores = (learner.weights_ + 5.0 * 40**-0.25 * direction) @ row
        assert guess.place == (int(scores[0] > 0) if classes == 2 else int(scores.argmax()))


@pytest.mark.parametrize("online", [ANSWERS, CONFIRMATIONS], ids=["answers", "confirmations"])
@pytest.mark.parametrize("policy", [ImmediateUpdates(), FixedWindows(2)], ids=["single", "pairs"])
def test_records_arrive_once_and_each_makes_one_step(online, policy):
    X, y = examples(40)
    learner = started(online)
    seen = [
        (stop, learner.updates_)
        for stop in simulated_arrival(
            learner, X, y, policy=policy, ahead=6, stops=[4, 6, 20, 40], rng=SimulationRandom(1)
        )
    ]
    assert seen == [(4, 4), (6, 6), (20, 20), (40, 40)]
    assert learner.simulated_
    assert not learner.releasable


@pytest.mark.parametrize("ahead", [1, 7, 40])
def test_full_answers_teach_the_same_however_far_ahead_records_are_examined(ahead):
    X, y = examples(40)
    learner, whole = started(ANSWERS, private=False), started(ANSWERS, private=False)
    stops = simulated_arrival(
        learner, X, y, policy=ImmediateUpdates(), ahead=ahead, stops=[40], rng=SimulationRandom(1)
    )
    assert list(stops) == [40]
    np.testing.assert_allclose(learner.coef_, whole.partial_fit(X, y).coef_, rtol=1e-12)


def test_without_privacy_there_is_no_noise_and_steps_are_longer():
    for online, kind in ((ANSWERS, OnlineGradientBaseline), (CONFIRMATIONS, BanditGradientBaseline)):
        plain, private = started(online, private=False), started(online)
        assert isinstance(plain, kind)
        assert not isinstance(private, kind)
        assert not plain.releasable
        assert plain._step_size() > private._step_size()
        plain.pass_over(3)
        assert not np.any(plain.coef_)
        assert np.any(private.pass_over(3).coef_)


def test_a_guess_of_no_row_and_an_answer_to_none_change_nothing():
    learner = started(CONFIRMATIONS)
    assert isinstance(learner, BanditMutualInformationOGD)
    assert learner.guess_all(np.empty((0, 4), dtype=np.float32)) == []
    learner.learn_guesses([], [], [])
    assert learner.updates_ == 0


def sums_after(n_classes: int) -> tuple[RunningSums, np.ndarray]:
    X, y = examples(400, classes=n_classes)
    sums = RunningSums(50.0, classes=list(range(n_classes)), batch_size=400, random_state=SimulationRandom(1))
    return sums.fit(X, y), X


def test_of_two_classes_the_model_guesses():
    sums, X = sums_after(2)
    guesses = guessed_classes(sums, X, rng=SimulationRandom(2))
    assert guesses.tolist() == sums.predict(X).tolist()


def test_of_more_classes_half_of_the_guesses_are_drawn():
    """Seeded; the share of evenly drawn guesses of one of three classes is 1/6 each, within 5 standard errors."""
    sums, X = sums_after(3)
    rows = np.repeat(X[:1], 9000, axis=0)
    shares = np.bincount(guessed_classes(sums, rows, rng=SimulationRandom(3)), minlength=3) / 9000
    model = int(sums.predict(X[:1])[0])
    assert shares == pytest.approx([4 / 6 if place == model else 1 / 6 for place in range(3)], abs=0.025)


def test_nobody_to_ask_is_guessed_nothing():
    assert guessed_classes(sums_after(3)[0], np.empty((0, 4), dtype=np.float32), rng=SimulationRandom(4)).size == 0
