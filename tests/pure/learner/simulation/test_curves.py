"""What a plan simulates: the configured estimator and choice, on data about nobody; budgets are divided whole."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from annotation.choices.policies.doubling import Doubling
from annotation.choices.policies.per_round import PerRound
from learner.simulation.curves import simulated
from learner.simulation.setup import MOST_ARRIVALS, MOST_NOISE, Setup, Training
from learner.simulation.splits import series_epsilon, splits
from learner.strategies.blocks import block_rates, blocks_epsilon
from learner.strategies.divisions import RATES
from learner.strategies.top_c import TopC
from privacy.accounting.events import ExponentialScreenEvent, ExposureCappedScreenEvent
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
    policy=PerRound().document(),
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
ONLINE = replace(
    OPEN,
    estimator="mi_ogd",
    stream=True,
    batch=1,
    dimension=8,
    records=400,
    labels_per_release=100,
    ahead=50,
    declared={"noise_sigma": 0.5, "expected_answers": 400, "weight_radius": 5.0, "training_delta": 1e-6},
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
        ("exposure_capped_screen", {**RATES_OF_SCREEN, "exposures": 3}),
        ("exponential_screen", {"exponential_threshold": 0.5, "selection_epsilon": 1.0}),
        ("uncertainty", {"uncertainty_measure": "entropy"}),
    ],
)
def test_every_selection_can_be_simulated(selection: str, parameters: dict[str, float]) -> None:
    setup = replace(OPEN, selection=selection, parameters=parameters, labels_per_release=60, releases=2)
    assert [point.labels for point in simulated(setup, "made_up", seeds=1)] == [60, 120]


def test_a_stream_learns_in_batches() -> None:
    steps = {"step_size": 4.0, "weight_radius": 40.0}
    streamed = replace(OPEN, estimator="minibatch_svm", training=Training(epsilon=2.0), declared=steps, stream=True)
    setup = replace(streamed, batch=50, releases=2, dimension=6, records=400)
    assert [point.labels for point in simulated(setup, "made_up", seeds=1)] == [100, 200]


@pytest.mark.parametrize("data", ["digits", "made_up"])
@pytest.mark.parametrize("confirm", [False, True], ids=["answers", "confirmations"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_learning_from_each_answer_is_simulated_by_records(confirm: bool, n_classes: int, data: str) -> None:
    setup = replace(ONLINE, n_classes=n_classes, estimator="bandit_ogd" if confirm else "mi_ogd")
    points = simulated(setup, data, seeds=2)
    assert [point.labels for point in points] == [100, 200, 300, 400]
    assert all(0 <= point.low <= point.mean <= point.high <= 1 for point in points)
    assert points == simulated(setup, data, seeds=2)
    assert simulated(setup, data, seeds=2, private=False) != points


def test_the_noise_of_each_answer_takes_what_the_same_without_privacy_keeps() -> None:
    """Seeded: at fifty times the noise the best of five streams stays below the worst without any."""
    loud = replace(ONLINE, declared={**ONLINE.declared, "noise_sigma": 25.0})
    noisy, plain = (simulated(loud, "made_up", seeds=5, private=private)[-1] for private in (True, False))
    assert noisy.high < plain.low
    quiet = replace(ONLINE, declared={**ONLINE.declared, "noise_sigma": 0.01})
    near, bare = (simulated(quiet, "made_up", seeds=5, private=private)[-1] for private in (True, False))
    assert near.mean == pytest.approx(bare.mean, abs=0.02)


def test_a_long_stream_is_simulated_in_part_and_looked_at_where_versions_are_due() -> None:
    long = replace(ONLINE, records=10**7, dimension=10**4)
    assert (long.simulated_dimension, long.simulated_records) == (128, MOST_ARRIVALS)
    assert replace(long, n_classes=10).simulated_records == MOST_NOISE // 1290
    assert long.label_counts[-1] == MOST_ARRIVALS
    assert len(long.label_counts) <= 11
    assert all(count % 100 == 0 for count in long.label_counts)
    # The first version is later than what can be simulated: weights on the way to it.
    rare = replace(long, labels_per_release=10**6)
    assert rare.label_counts[0] == MOST_ARRIVALS // 10
    assert rare.label_counts[-1] == MOST_ARRIVALS
    assert replace(ONLINE, records=99).label_counts == []
    assert not replace(ONLINE, records=99).can_be_simulated
    assert replace(ONLINE, records=250).label_counts == [100, 200]


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


@pytest.mark.parametrize("stream", [False, True])
def test_a_screen_and_its_trainings_share_the_budget(stream: bool) -> None:
    setup = replace(OPEN, selection="bernoulli_screen", parameters=RATES_OF_SCREEN, stream=stream)
    found = splits(setup, 4.0)
    assert len(found) > 1
    for split in found:
        ratio = math.log(split.parameters["screen_high"] / split.parameters["screen_low"])
        trainings = 1 if stream else split.releases
        assert ratio + trainings * split.training.epsilon == pytest.approx(4.0)


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


def test_a_falling_rate_is_divided_by_its_range() -> None:
    """A skip costs at least what it costs at the smallest range, so small shares do not exist in a pool."""
    falling = {"exponential_threshold": 0.5, "selection_epsilon": 1.0}
    setup = replace(OPEN, selection="exponential_screen", parameters=falling)
    pool = splits(setup, 4.0)
    assert len(pool) > 3
    for split in pool:
        assert split.selection_epsilon + split.releases * split.training.epsilon == pytest.approx(4.0)
        looks = ExponentialScreenEvent(0.5, 1.0, split.parameters["selection_epsilon"])
        assert split.selection_epsilon == pytest.approx(
            ExposureCappedScreenEvent(*looks.rates, exposures=1).cost().epsilon
        )
    assert splits(setup, 0.5) == []
    for split in splits(replace(setup, stream=True), 4.0):
        rates = ExponentialScreenEvent(0.5, 1.0, split.parameters["selection_epsilon"]).rates
        whole = stream_epsilon(*rates, split.training.epsilon, selection_visible=True, adjacency="null")
        assert whole <= 4.0 * (1 + 1e-9)


def test_a_falling_rate_in_hidden_windows_is_not_divided() -> None:
    falling = {"exponential_threshold": 0.5, "selection_epsilon": 1.0}
    setup = replace(OPEN, selection="exponential_screen", parameters=falling, stream=True, hidden=True)
    assert splits(setup, 4.0) == []


@pytest.mark.parametrize("selection", ["random", "uncertainty"])
def test_where_choosing_is_free_nothing_is_divided(selection: str) -> None:
    assert splits(replace(OPEN, selection=selection), 4.0) == []


def test_a_setup_survives_being_stored() -> None:
    for setup in (replace(OPEN, parameters=RATES_OF_SCREEN), ONLINE):
        assert Setup.from_json(json.loads(json.dumps(setup.as_json()))) == setup


def test_labels_come_by_rounds_by_doubling_or_by_blocks() -> None:
    assert OPEN.label_counts == [100, 200, 300]
    assert replace(OPEN, policy=Doubling().document()).label_counts == [100, 200, 400]
    assert replace(OPEN, records=150).label_counts == [100]
    assert SECRET.label_counts == list(np.cumsum([60, 120, 240]))


@pytest.mark.parametrize("setup", [SECRET, OPEN], ids=["secret", "open"])
def test_without_privacy_a_pool_has_the_same_numbers_of_labels_and_does_as_well_or_better(setup):
    clear = simulated(setup, "made_up", seeds=2, private=False)
    assert [point.labels for point in clear] == setup.label_counts
    assert clear == simulated(setup, "made_up", seeds=2, private=False)
    private = simulated(setup, "made_up", seeds=2)
    assert clear[-1].mean > max(0.7, private[-1].mean - 0.02)
