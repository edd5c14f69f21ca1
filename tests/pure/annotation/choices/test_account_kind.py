"""Which kind of account buys more, computed from declared numbers against counts made by hand."""

import math

import pytest

from annotation.choices.account_kind import broken_on, filter_of, releases_payable
from annotation.choices.presets import PRESETS
from privacy.accounting.composition import zcdp_epsilon
from privacy.accounting.events import event_from_json
from privacy.accounting.gate_events import ThresholdGateEvent
from privacy.accounting.series import SecretBlockEvent
from privacy.accounting.sums import SumsEvent
from privacy.accounting.training import GaussianEvent

CLASSES = ["a", "b", "c"]
# A fifth of the limit's for each release, which the numbers below are counted at.
DELTA = {"training_delta": 1e-6}


def settings(**changed):
    of_preset = PRESETS["pool-experts"].defaults
    return {
        **of_preset,
        "oracle": "trusted",
        "data_kind": "text",
        "classes": CLASSES,
        "selection": "random",
        **DELTA,
    } | changed


@pytest.mark.parametrize(
    ("epsilon", "pure", "zcdp", "kind"), [(1.7, 1, 1, "pure"), (0.5, 4, 9, "zcdp"), (0.25, 5, 36, "zcdp")]
)
def test_many_gaussian_releases_add_up_in_rho(epsilon, pure, zcdp, kind):
    declared = settings(training_epsilon=epsilon)
    assert releases_payable(declared, "pure") == pure
    assert releases_payable(declared, "zcdp") == zcdp
    assert filter_of(declared) == kind


@pytest.mark.parametrize(
    "changed",
    [
        {"selection": "secret_sample"},
        {"selection": "top_c"},
        {"arrival": "stream"},
        {"oracle": "crowd"},
        {"pool_delta": 0.0},
    ],
)
def test_what_has_no_rho_of_its_own_sums_epsilons(changed):
    assert filter_of(settings(training_epsilon=0.25) | changed) == "pure"


def test_a_crowd_pays_for_as_many_uploads_either_way_and_a_first_one_is_cheaper_by_epsilons():
    """What managing.md says: rho is cheaper from the second upload on, and delta ends both after the third."""
    chosen = PRESETS["voice-crowd"].defaults
    epsilon, delta = chosen["gate_epsilon"], chosen["gate_delta"]
    gate = ThresholdGateEvent(
        epsilon, delta, "contributor", chosen["texts_per_contributor"], "weighted_gaussian", chosen["gate_floor"]
    )
    once, whole = gate.cost(adjacency="null"), chosen["pool_delta"]
    by_rho = [zcdp_epsilon(uploads * once.rho, whole - uploads * once.delta) for uploads in (1, 2, 3)]
    assert by_rho == pytest.approx([1.214, 1.770, 2.257], abs=1e-3)
    assert 3 * once.epsilon <= chosen["pool_epsilon"]
    assert 4 * once.delta > whole
    # A smaller delta of the gate would change that: seven uploads by rho, where epsilons go on paying for three.
    small = ThresholdGateEvent(epsilon, 1e-6, "contributor", 2, "weighted_gaussian", 2).cost(adjacency="null")
    assert zcdp_epsilon(7 * small.rho, whole - 7 * small.delta) <= chosen["pool_epsilon"]


def test_a_series_of_secret_blocks_has_no_rho():
    training = GaussianEvent(1.0, 4.0, delta=1e-6)
    block = SecretBlockEvent.next_of(None, training, block=1, rates=(0.1, 0.1))
    assert block is not None
    assert math.isinf(block.cost(adjacency="null").rho)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_says_which_answers_a_release_is_made_of(preset):
    chosen = PRESETS[preset]
    assert chosen.made_of.startswith(("Each release uses all", "Each release is trained on its own block"))
    every_answer = chosen.defaults["estimator"] in ("channel", "running_sums")
    assert every_answer == chosen.made_of.startswith("Each release uses all")


def test_a_charged_account_refuses_what_has_no_rho():
    assert broken_on(settings(training_epsilon=0.25), "zcdp") == {}
    assert "selection" in broken_on(settings(selection="secret_sample"), "zcdp")
    assert broken_on(settings(selection="secret_sample"), "pure") == {}


@pytest.mark.parametrize("event", [SumsEvent(3, 2, 1.0, 5.0, 5.0, delta=1e-6), GaussianEvent(1.0, 4.0, delta=1e-6)])
def test_in_rho_the_noise_is_the_same_and_no_point_is_charged(event):
    counted = event.in_rho()
    assert counted.gaussian_mu() == event.gaussian_mu()
    assert (counted.cost().rho, counted.cost().delta) == (event.cost().rho, 0.0)
    assert event.cost().delta > 0
    assert event_from_json(counted.to_json()) == counted
