import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dpal.recompute import recompute
from dpal.recompute.transcript import Transcript
from learner.estimators import running_sums
from learner.estimators.choice import Shape
from learner.estimators.running_sums import OfRunningSums, RunningSums
from learner.estimators.streaming import AnsweredBatch
from privacy.mechanisms.randomness import SecureRandom

CLASSES = list(range(10))


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    order = np.random.default_rng(2).permutation(len(data.data))
    rows = data.data / np.linalg.norm(data.data, axis=1, keepdims=True) * (1 - 1e-9)
    return rows[order], data.target[order]


def walked(learner, rows, labels, *, size=50, until=700):
    batches = [(rows[at : at + size], labels[at : at + size]) for at in range(0, until, size)]
    for number in range(learner.updates_, len(batches)):
        learner.update([batches[each] for each in range(learner.first_read(number), number + 1)])
    return learner


def test_every_version_is_made_of_all_batches(digits):
    """At epsilon 2 in all; seeded."""
    rows, labels = digits
    learner = RunningSums(2.0, delta=5e-6, classes=CLASSES, updates=16, random_state=1).start(64)
    early = np.mean(walked(learner, rows, labels, size=100, until=200).predict(rows[1200:]) == labels[1200:])
    late = np.mean(walked(learner, rows, labels, size=100, until=1200).predict(rows[1200:]) == labels[1200:])
    assert early < late - 0.1
    assert late > 0.8
    assert not learner.releasable
    assert learner.multiclass == "softmax"


def test_a_learner_goes_on_where_another_stopped(digits):
    rows, labels = digits
    shape = {"delta": 1e-6, "classes": CLASSES, "updates": 4}
    one = walked(RunningSums(1.0, **shape).start(64), rows, labels, until=300)
    two = RunningSums(1.0, **shape).resume(json.loads(json.dumps(one.state())))
    assert (two.coef_ == one.coef_).all()
    assert two.releasable
    assert two.updates_ == 6
    assert walked(two, rows, labels, until=400).updates_ == 8
    assert isinstance(two._source, SecureRandom)


def test_each_version_is_recomputed_from_the_one_before_and_its_own_answers(digits):
    rows, labels = digits
    learner = RunningSums(1.0, delta=1e-6, classes=CLASSES, updates=4).start(64)
    for until in (100, 350, 500):
        learner = RunningSums(1.0, delta=1e-6, classes=CLASSES, updates=4).resume(
            json.loads(json.dumps(walked(learner, rows, labels, until=until).state()))
        )
        transcript = Transcript.from_json(json.loads(json.dumps(learner.transcript_.to_json())))
        assert sum(query == "class_sums" for query, *_ in transcript.answers) == until // 50 - before(until)
        found = recompute(transcript)
        assert (found.coef == learner.coef_).all()
        assert (found.intercept == learner.intercept_).all()
        learner = learner.begin_version()


def before(until):
    return {100: 0, 350: 2, 500: 7}[until]


def test_public_weights_stand_until_the_first_batch_and_are_leaned_on(digits):
    rows, labels = digits
    means = np.stack([rows[labels == each][:20].mean(axis=0) for each in CLASSES])
    means -= means.mean(axis=0)
    started = RunningSums(1.0, delta=1e-6, classes=CLASSES, random_state=3).start_from(means, np.zeros(10))
    assert (started.coef_ == means).all()
    leaning = walked(started, rows, labels, until=150)
    bare = walked(RunningSums(1.0, delta=1e-6, classes=CLASSES, random_state=3).start(64), rows, labels, until=150)
    right = [np.mean(each.predict(rows[1000:]) == labels[1000:]) for each in (leaning, bare)]
    assert right[0] > right[1] + 0.2


def test_fit_takes_batches_in_their_order(digits):
    rows, labels = digits
    fitted = RunningSums(2.0, delta=5e-6, classes=CLASSES, updates=8, random_state=1).fit(rows[:100], labels[:100])
    assert fitted.updates_ == 2
    assert fitted.privacy_event_ == fitted.event_for(64)


def test_batches_that_come_together_are_learned_each_with_its_own_epoch(digits):
    rows, labels = digits
    shape = {"delta": 1e-6, "classes": CLASSES, "updates": 3, "random_state": 1}
    one_by_one = walked(RunningSums(1.0, **shape).start(64), rows, labels, until=250)
    answered = [AnsweredBatch(rows[at : at + 50], labels[at : at + 50], 50) for at in range(0, 250, 50)]
    together = RunningSums(1.0, **shape).start(64).learn_batches(answered, new=5)
    assert (together.coef_ == one_by_one.coef_).all()


def test_two_classes_have_one_vector(digits):
    rows, labels = digits
    fitted = RunningSums(2.0, delta=5e-6, classes=[0, 1], random_state=1).fit(rows[:50], (labels[:50] > 4) * 1)
    assert fitted.coef_.shape == (1, 64)
    assert np.allclose(fitted.predict_proba(rows[:5]).sum(axis=1), 1)


def test_what_is_not_as_declared_is_refused(digits):
    rows, labels = digits
    learner = RunningSums(1.0, classes=CLASSES, random_state=1).start(64)
    one = (rows[:5], labels[:5])
    with pytest.raises(ValueError, match="waits for 1 batches, got 2"):
        learner.update([one, one])
    with pytest.raises(ValueError, match="clip them first"):
        learner.update([(2 * rows[:5], labels[:5])])
    with pytest.raises(ValueError, match="not among the declared"):
        learner.update([(rows[:1], [11])])
    with pytest.raises(ValueError, match="64 columns"):
        learner.update([(rows[:1, :3], [1])])
    with pytest.raises(ValueError, match="do not fit"):
        learner.start_from(np.zeros((3, 64)), np.zeros(3))
    with pytest.raises(ValueError, match="finite"):
        learner.start_from(np.full((10, 64), np.nan), np.zeros(10))
    with pytest.raises(ValueError, match="delta"):
        RunningSums(1.0, delta=0.0, classes=CLASSES).event_for(3)


def test_the_choice_builds_what_it_declares():
    choice = OfRunningSums.of({"training_epsilon": 1.5, "training_delta": 1e-6, "updates_per_epoch": 32})
    learner = choice.estimator(Shape([0, 1, 2], 1.0, 0.2))
    assert (learner.epsilon, learner.updates) == (1.5, 32)
    assert choice.event(shape=Shape([0, 1, 2], 1.0, 0.2), n_features=9) == learner.event_for(9)
    assert "arrival" not in OfRunningSums.sound.broken({"arrival": "stream"})
    assert "pool" in OfRunningSums.sound.broken({"arrival": "pool"})


def test_a_model_is_made_once_somebody_asks_for_it(digits, monkeypatch):
    made = []
    real = running_sums.best_model
    monkeypatch.setattr(running_sums, "best_model", lambda *a, **k: made.append(1) or real(*a, **k))
    learner = RunningSums(2.0, delta=5e-6, classes=CLASSES, updates=16, random_state=1).start(64)
    walked(learner, *digits, until=200)
    assert (learner.updates_, made) == (4, [])
    assert learner.coef_ is learner.coef_
    assert learner.intercept_.shape == (10,)
    assert made == [1]
    assert not hasattr(RunningSums(2.0, classes=CLASSES), "coef_")
