"""What a plan simulates: the configured estimator and choice, on data about nobody; budgets are divided whole."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from learner.simulation.curves import simulated
from learner.simulation.setup import Setup, Training
from learner.simulation.splits import series_epsilon, splits
from learner.strategies.blocks import block_rates, blocks_epsilon
from learner.strategies.divisions import RATES
from learner.strategies.top_c import TopC
from privacy.accounting.screens import stream_epsilon

SECRET = Setup(
    n_classes=2,
    dimension=16,
    records=600,
    estimator="huber_svm_gaussian",
    training=Training(epsilon=1.5),
    declared={"training_delta": 1e-6, "smoothing": 2.0},
    selection="secret_sample",
    parameters={"selection_rate": 0.1, "block_growth": 2.0},
    labels_per_release=40,
    releases=4,
    round_size=40,
    stream=False,
    batch=50,
    selection_epsilon=0.0,
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
RATES_OF_SCREEN = {"screen_high": 0.4, "screen_low": 0.1, "screen_reach": 0.1}


@pytest.mark.parametrize("data", ["digits", "made_up"])
@pytest.mark.parametrize("setup", [SECRET, OPEN, replace(OPEN, n_classes=4)], ids=["secret", "open", "four classes"])
def test_a_simulation_has_a_range_at_each_release_and_is_the_same_every_time(setup: Setup, data: str) -> None:
    points = simulated(setup, data, seeds=2)
    assert len(points) == len(setup.label_counts)
    assert all(0 <= point.low <= point.mean <= point.high <= 1 for point in points)
    assert [point.labels for point in points] == sorted(point.labels for point in points)
    assert points == simulated(setup, data, seeds=2)


def test_more_noise_leaves_less() -> None:
    """At a hundredth of the epsilon a model of 300 labels is hardly better than chance; the noise really is there."""
    good = simulated(replace(OPEN, training=Training(epsilon=40.0)), "digits", seeds=3)[-1]
    bad = simulated(replace(OPEN, training=Training(epsilon=0.04)), "digits", seeds=3)[-1]
    assert good.mean > bad.mean + 0.1


@pytest.mark.parametrize(
    ("selection", "parameters"),
    [
        ("top_c", {"selection_epsilon": 0.5}),
        ("bernoulli_screen", RATES_OF_SCREEN),
        ("uncertainty", {"uncertainty_measure": "entropy"}),
    ],
)
def test_every_selection_can_be_simulated(selection: str, parameters: dict[str, float]) -> None:
    setup = replace(OPEN, selection=selection, parameters=parameters, labels_per_release=60, releases=2)
    assert [point.labels for point in simulated(setup, "made_up", seeds=1)] == [60, 120]


def test_a_secret_sample_is_divided_by_its_rate_at_the_same_price() -> None:
    found = splits(SECRET, 2.0)
    assert [setup.parameters["selection_rate"] for setup in found] == list(RATES)
    for setup in found:
        price = blocks_epsilon(setup.training.epsilon, setup.block_rates[: setup.releases])
        assert price <= 2.0 * (1 + 1e-9)
        assert price > 1.999 or setup.training.epsilon == 10.0
    # What the preset's own numbers cost, as its page says.
    assert [blocks_epsilon(2.195, block_rates(0.1, 7)[:n]) for n in (1, 2)] == pytest.approx([0.59, 2.0], abs=0.005)


def test_top_c_and_its_trainings_share_the_budget() -> None:
    setup = replace(OPEN, selection="top_c", round_size=50)
    for split in splits(setup, 6.0):
        spent = (
            series_epsilon(split, TopC(split.parameters["selection_epsilon"])) + split.releases * split.training.epsilon
        )
        assert spent == pytest.approx(6.0, rel=1e-6)
        assert spent <= 6.0 + 1e-9


def test_a_screen_and_its_trainings_share_the_budget() -> None:
    setup = replace(OPEN, selection="bernoulli_screen", parameters=RATES_OF_SCREEN, stream=True)
    found = splits(setup, 4.0)
    assert len(found) > 1
    for split in found:
        ratio = math.log(split.parameters["screen_high"] / split.parameters["screen_low"])
        assert ratio + split.training.epsilon == pytest.approx(4.0)


def test_hidden_windows_are_divided_by_their_rate_at_the_same_price() -> None:
    setup = replace(OPEN, selection="bernoulli_screen", parameters=RATES_OF_SCREEN, stream=True, hidden=True, batch=50)
    found = splits(setup, 2.0)
    assert [split.parameters["screen_high"] for split in found] == list(RATES)
    for split in found:
        high, low = split.parameters["screen_high"], split.parameters["screen_low"]
        assert high / low == pytest.approx(4.0)
        # The same records, so labels in proportion.
        assert split.labels_per_release == round(100 * high / 0.4)
        price = stream_epsilon(high, low, split.training.epsilon, selection_visible=False, adjacency="null")
        assert price == pytest.approx(2.0)


@pytest.mark.parametrize("selection", ["random", "uncertainty"])
def test_where_choosing_is_free_nothing_is_divided(selection: str) -> None:
    assert splits(replace(OPEN, selection=selection), 4.0) == []


def test_a_setup_survives_being_stored() -> None:
    setup = replace(OPEN, parameters=RATES_OF_SCREEN)
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
