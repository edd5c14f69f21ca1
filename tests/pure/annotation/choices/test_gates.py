import pytest

from annotation.choices.gates import (
    ONE_UPLOAD_ALONE,
    SHARED_GATE_FIELDS,
    GateChoice,
    all_gate_fields,
    first_event,
    gate_choices,
    gate_fields,
    gate_from,
)
from annotation.choices.noisy_gate import NoisyGate
from annotation.choices.sampled_gate import SampledGate
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate

SETTINGS = {
    "gate_epsilon": 2.0,
    "texts_per_contributor": 3,
    "normalizer": "L1",
    "gate_k": 20,
    "gate_sampling_rate": 0.1,
    "gate_delta": 1e-6,
    "gate_floor": 4,
    "privacy_unit": "record",
}


def test_a_sampled_gate_is_one_of_k_anonymity():
    gate = gate_from(SETTINGS | {"gate_kind": "k_anonymity"})
    assert isinstance(gate, KAnonymityGate)
    assert (gate.k, gate.sampling_rate, gate.unit, gate.texts_per_contributor) == (20, 0.1, "record", None)
    assert gate == SampledGate.of(SETTINGS).gate("record")


def test_a_noisy_gate_is_one_with_a_threshold():
    gate = gate_from(SETTINGS | {"gate_kind": "threshold", "privacy_unit": "contributor"})
    assert isinstance(gate, ThresholdGate)
    assert (gate.floor, gate.unit, gate.texts_per_contributor) == (4, "contributor", 3)
    assert gate == NoisyGate.of(SETTINGS).gate("contributor")


@pytest.mark.parametrize("choice", [SampledGate, NoisyGate])
def test_the_first_upload_pays_for_one_run_or_for_its_window(choice: type[GateChoice]):
    named = SETTINGS | {"gate_kind": choice.name}
    once, together = first_event(named), first_event(named | {"gate_window": 3})
    assert once.cost().epsilon == pytest.approx(2.0, abs=1e-6)
    if choice is NoisyGate:
        assert together.cost().epsilon == pytest.approx(6.0, abs=1e-5)
    else:
        assert 2.0 <= together.cost().epsilon < 3.0
    assert choice.of(SETTINGS | {"gate_window": 3}).rules({"privacy_unit": "contributor"}) == {
        "gate_window": ONE_UPLOAD_ALONE
    }
    assert choice.of(SETTINGS | {"gate_window": 3}).rules({"privacy_unit": "record"}) == {}


def test_the_settings_of_each_kind_are_its_own():
    own = {name: gate_fields(name) for name in gate_choices()}
    assert own == {"k_anonymity": ("gate_k", "gate_sampling_rate"), "threshold": ("gate_delta", "gate_floor")}
    assert set(all_gate_fields()) == {*SHARED_GATE_FIELDS, *own["k_anonymity"], *own["threshold"]}
