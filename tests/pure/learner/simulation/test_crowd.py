import numpy as np
import pytest

from learner.estimators.descriptions import ClassDescription
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.simulation.crowd import simulate_crowd
from learner.simulation.task import SimulationTask
from privacy.accounting.events import ComposedCappedGateEvent

WORDS = {
    "music": ["play", "song", "album", "artist", "playlist", "radio", "tune", "band", "melody", "chorus"],
    "weather": ["rain", "sun", "cloud", "forecast", "storm", "wind", "snow", "warm", "cold", "umbrella"],
    "alarm": ["wake", "ring", "clock", "snooze", "morning", "early", "alarm", "timer", "bell", "sleep"],
}
COMMON = ["please", "now", "can", "you", "the", "a", "me", "my", "for", "tomorrow"]
CLASSES = tuple(WORDS)
OPEN_GATE = {
    "gate_kind": "k_anonymity",
    "gate_k": "2",
    "gate_sampling_rate": "0.5",
    "gate_epsilon": "1.0",
    "texts_per_contributor": "50",
}


def encode(texts):
    return HashingTextFeaturizer(n_features=128).transform(list(texts))


def utterances(count, *, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(CLASSES), size=count)
    texts = [" ".join([*rng.choice(COMMON, 1), *rng.choice(WORDS[CLASSES[label]][: 6 + seed], 2)]) for label in labels]
    return tuple(texts), labels


def crowd_task(count=900, **values):
    texts, labels = utterances(count, seed=1)
    test_texts, test_labels = utterances(300, seed=2)
    people = tuple(f"person {place}" for place in np.random.default_rng(4).integers(120, size=count))
    fields = {"contributors": people, "settings": OPEN_GATE, "label_counts": (12, 36), "seeds": 2} | values
    return SimulationTask(texts, labels, test_texts, test_labels, CLASSES, **fields)


def prior():
    rows = encode([" ".join(words[:2]) for words in WORDS.values()]).astype(float)
    return LinearModel(10 * (rows - rows.mean(axis=0)), np.zeros(3), CLASSES, "softmax")


def play(task):
    return simulate_crowd(task, encode=encode, prior=prior())


@pytest.fixture(scope="module")
def outcome():
    return play(crowd_task(settings=OPEN_GATE | {"answers_epsilon": "3", "round_size": "12"}))


def test_answers_said_at_random_teach_more_than_words_alone(outcome):
    last = outcome.points[-1]
    assert [point.labels for point in outcome.points] == [12, 36]
    assert last.project.accuracy > last.version_0.accuracy > last.constant.accuracy
    assert last.no_privacy.accuracy >= last.project.accuracy - 0.05
    assert last.random.accuracy > last.constant.accuracy


def test_accounts_are_what_the_gate_and_the_series_cost(outcome):
    gate, answers = outcome.accounts
    event = ComposedCappedGateEvent(2, 0.5, 1.0, "contributor", 50).cost()
    assert (gate.scope, gate.unit, gate.epsilon, gate.delta) == ("gate", "contributor", event.epsilon, event.delta)
    assert (answers.scope, answers.unit, answers.delta) == ("answers", "answer", 0)
    assert answers.epsilon == pytest.approx(3.0)


def test_what_the_gate_let_out_is_asked_and_said(outcome):
    gate = outcome.to_json()["gate"]
    assert not gate["assumed"]
    assert 36 <= gate["passed"] < gate["texts"]
    assert f"let {gate['passed']}" in outcome.notes[0]
    assert "simulation" in outcome.to_json()


def test_a_gate_that_lets_nothing_out_is_said_loudly():
    found = play(crowd_task(settings={"round_size": "36"}, seeds=1, contributors=None))
    assert found.gate is not None
    assert found.gate["assumed"]
    assert found.gate["passed"] < 36
    assert any(note.startswith("ASSUMED") for note in found.notes)
    assert any("No contributors" in note for note in found.notes)
    assert found.accounts[0].unit == "record"


def test_a_threshold_gate_a_uniform_prior_and_repeated_responses():
    settings = {
        "gate_kind": "threshold",
        "gate_epsilon": "4.0",
        "gate_delta": "0.01",
        "texts_per_contributor": "20",
        "response_classes": "uniform",
        "answers_epsilon": "6",
        "randomizations": "2",
        "answers_unit": "annotator",
        "answers_cap": "3",
    }
    found = play(crowd_task(settings=settings, seeds=1))
    assert (found.accounts[1].unit, found.accounts[1].epsilon) == ("annotator", pytest.approx(6.0))
    assert found.points[-1].project.accuracy > found.points[-1].constant.accuracy


def test_answers_reach_the_model_through_the_response_alone():
    """At an epsilon of next to nothing the answers of everybody may be others, and no prediction moves."""
    silent = {"answers_epsilon": "0.000001", "response_classes": "uniform"}
    task = crowd_task(seeds=1, settings=OPEN_GATE | silent)
    turned = crowd_task(seeds=1, settings=OPEN_GATE | silent)
    object.__setattr__(turned, "labels", (task.labels + 1) % 3)
    one, other = play(task), play(turned)
    assert [point.project for point in one.points] == [point.project for point in other.points]
    assert [point.no_privacy for point in one.points] != [point.no_privacy for point in other.points]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"epsilonn": "1"}, "unknown settings epsilonn"),
        ({"gate_k": "many"}, "gate_k must be of type int"),
        ({"answers_epsilon": "0"}, "epsilon"),
        ({"answers_epsilon": "50"}, "epsilon"),
        ({"response_classes": "laplace"}, "response_classes"),
        ({"round_size": "0"}, "round_size"),
        ({"gate_kind": "k_anonymity", "gate_k": "1"}, "gate_k: Must be at least 2"),
        ({"answers_cap": "5"}, "answers_cap"),
    ],
)
def test_settings_are_checked(settings, named):
    with pytest.raises(ValueError, match=named):
        play(crowd_task(settings=settings))


def test_words_about_the_classes_are_the_first_model_and_the_shipped_encoder_reads_them():
    named = crowd_task(400, seeds=1, label_counts=(24,))
    words = {name: ClassDescription(name, " ".join(words[:4])) for name, words in WORDS.items()}
    described = crowd_task(400, seeds=1, label_counts=(24,), descriptions=words)
    version_0 = [simulate_crowd(task).points[0].version_0.accuracy for task in (named, described)]
    assert version_0[0] > 0.5
    assert version_0[1] > max(0.8, version_0[0])


def test_what_cannot_be_played_is_refused():
    with pytest.raises(ValueError, match="fewer than 5000 labels"):
        play(crowd_task(label_counts=(5000,)))
    rows = np.ones((4, 3))
    task = SimulationTask((), np.array([0, 1, 0, 1]), (), np.array([0, 1, 0, 1]), CLASSES, rows=rows, test_rows=rows)
    with pytest.raises(ValueError, match="only texts"):
        play(task)
