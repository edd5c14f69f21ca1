"""Plans simulate the configured estimator and choice on data about nobody."""

import json
from dataclasses import replace

import numpy as np
import pytest

from learner.linear_model import LinearModel
from learner.simulation.curves import PublicRows, simulated
from learner.simulation.setup import Setup, Training
from privacy.accounting.events import RandomizedAnswersEvent

SECRET = Setup(
    n_classes=2,
    dimension=16,
    records=600,
    estimator="softmax_steps",
    training=Training(epsilon=1.5),
    declared={"training_delta": 1e-6},
    selection="secret_sample",
    parameters={"selection_rate": 0.1, "block_growth": 2.0},
    labels_per_release=40,
    releases=4,
    round_size=40,
    stream=False,
)
OPEN = replace(
    SECRET,
    selection="random",
    estimator="logistic",
    training=Training(epsilon=4.0),
    declared={},
    releases=3,
    labels_per_release=100,
)


@pytest.mark.parametrize("data", ["digits", "made_up"])
@pytest.mark.parametrize("setup", [SECRET, OPEN, replace(OPEN, n_classes=4)], ids=["secret", "open", "four classes"])
def test_a_simulation_has_a_range_at_each_release_and_is_the_same_every_time(setup: Setup, data: str) -> None:
    points = simulated(setup, data, seeds=2)
    assert len(points) == len(setup.label_counts)
    assert all(0 <= point.low <= point.mean <= point.high <= 1 for point in points)
    assert [point.labels for point in points] == sorted(point.labels for point in points)
    assert points == simulated(setup, data, seeds=2)


@pytest.mark.parametrize(
    ("selection", "parameters"),
    [
        ("top_c", {"selection_epsilon": 0.5}),
        ("uncertainty", {"uncertainty_measure": "entropy"}),
    ],
)
def test_every_selection_can_be_simulated(selection: str, parameters: dict[str, float]) -> None:
    setup = replace(OPEN, selection=selection, parameters=parameters, labels_per_release=60, releases=2)
    assert [point.labels for point in simulated(setup, "made_up", seeds=1)] == [60, 120]


def public_rows(n_classes: int = 8) -> PublicRows:
    """Rows that a model of the words takes for the right class, four of each."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(n_classes), 4)
    X = (0.9 * np.eye(16)[y] + rng.normal(scale=0.05, size=(len(y), 16))).astype(np.float32)
    words = LinearModel(4 * np.eye(n_classes, 16), np.zeros(n_classes), tuple(map(str, range(n_classes))), "softmax")
    return PublicRows(X, y, words, words, has_examples=True, picks=True)


@pytest.mark.parametrize(
    "setup", [replace(SECRET, records=30), replace(OPEN, labels_per_release=8)], ids=["secret", "open"]
)
def test_a_simulated_release_starts_from_the_words(setup: Setup) -> None:
    setup = replace(setup, estimator="planned", n_classes=8, declared={"training_delta": 1e-6})
    public = public_rows()
    begun = simulated(setup, public, seeds=2)
    assert min(point.low for point in begun) == 1.0
    assert simulated(setup, replace(public, start=None), seeds=2)[0].mean < 0.7


STREAM = replace(
    OPEN,
    estimator="running_sums",
    declared={"training_delta": 1e-6, "updates_per_epoch": 8},
    selection="bernoulli_screen",
    parameters={"screen_high": 0.4, "screen_low": 0.2},
    stream=True,
    policy={"update_policy": "flmb", "window_length": 20, "windows_ahead": 2},
    labels_per_release=60,
    releases=2,
)
CROWD = replace(
    OPEN,
    estimator="channel",
    declared={},
    answers=RandomizedAnswersEvent(epsilon=4.0, n_classes=2).to_json(),
    selection="clustered_uncertainty",
    labels_per_release=60,
    round_size=30,
    releases=2,
)


def test_a_simulated_crowd_starts_from_the_words() -> None:
    answers = RandomizedAnswersEvent(epsilon=4.0, n_classes=8).to_json()
    setup = replace(CROWD, n_classes=8, answers=answers, records=30, labels_per_release=8, round_size=8)
    assert min(point.mean for point in simulated(setup, public_rows(), seeds=2)) > 0.9


@pytest.mark.parametrize(
    "setup",
    [
        STREAM,
        replace(STREAM, policy={**STREAM.policy, "question_kind": "confirm"}, n_classes=3),
        CROWD,
        replace(CROWD, answers={}),
        replace(CROWD, selection="uncertainty"),
    ],
    ids=["stream", "confirmations", "randomised answers", "open answers", "by doubt"],
)
def test_streams_and_crowds_are_played_by_their_own_simulators(setup: Setup) -> None:
    points = simulated(setup, "made_up", seeds=1)
    assert [point.labels for point in points] == [60, 120]
    assert setup.n_classes > 2 or points[-1].mean > 0.7
    assert points == simulated(setup, "made_up", seeds=1)


def test_a_setup_survives_being_stored() -> None:
    setup = replace(SECRET, labels_per_record=2)
    assert Setup.from_json(json.loads(json.dumps(setup.as_json()))) == setup


def test_labels_come_by_rounds_or_by_blocks() -> None:
    assert OPEN.label_counts == [100, 200, 300]
    assert replace(OPEN, records=150).label_counts == [100]
    assert SECRET.label_counts == list(np.cumsum([60, 120, 240]))


@pytest.mark.parametrize("setup", [SECRET, OPEN], ids=["secret", "open"])
def test_without_privacy_a_pool_has_the_same_numbers_of_labels_and_does_as_well_or_better(setup):
    clear = simulated(setup, "made_up", seeds=2, private=False)
    assert [point.labels for point in clear] == setup.label_counts
    assert clear == simulated(setup, "made_up", seeds=2, private=False)
    private = simulated(setup, "made_up", seeds=2)
    assert clear[-1].mean > max(0.7, private[-1].mean - 0.02)
