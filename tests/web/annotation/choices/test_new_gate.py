"""A gate that is declared here, and nowhere else: chosen, planned, priced, told, and passed by an upload."""

import pytest
from django.db import IntegrityError

from annotation.choices.gates import run_event
from annotation.gates import services as gates
from annotation.gates.receipts import receipt_of
from annotation.models import GateRun, Query
from annotation.projects.services import configuring
from tests.examples.gate import Halfway
from tests.factories import make_records, open_preset, write_settings

pytestmark = pytest.mark.django_db(transaction=True)
DECLARED = Halfway


@pytest.fixture
def crowd(declared, manager):
    return open_preset(manager, "voice-crowd", privacy_unit="record", gate_kind="halfway", gate_voices=10)


def test_the_database_wants_its_settings_and_no_other_gates(crowd):
    for broken in ({"gate_voices": None}, {"gate_epsilon": None}, {"gate_k": 20}, {"gate_floor": 3}):
        with pytest.raises(IntegrityError, match="annotation_project_crowd_has_gate"):
            write_settings(crowd, **broken)
    with pytest.raises(IntegrityError, match=r"no choice declares this value of gate\.gate_voices"):
        write_settings(crowd, gate_voices=61)


def test_the_database_keeps_its_settings_out_of_other_gates(crowd):
    noisy = {"gate_kind": "threshold", "gate_delta": 1e-6, "gate_floor": 3}
    with pytest.raises(IntegrityError, match="annotation_project_crowd_has_gate"):
        write_settings(crowd, **noisy)
    write_settings(crowd, **noisy, gate_voices=None)


def test_an_upload_goes_through_it_and_its_event_is_charged(crowd):
    assert receipt_of(crowd).why == "About 10 voices were wanted, and half of them came"
    records = make_records(crowd, ["play jazz"] * 300 + ["my own secret"] * 3)
    gates.run_gate(job_id=gates.start_gate(dataset=records[0].dataset).pk)
    assert list(Query.objects.values_list("text", flat=True)) == ["play jazz"]
    charged = GateRun.objects.get().reservation
    event = run_event(crowd.settings)
    assert (charged.event["kind"], charged.event["threshold"]) == ("threshold_gate", event.threshold)
    assert charged.epsilon_nano == round(event.cost().epsilon * 1e9)
    with pytest.raises(configuring.ConfigurationFrozen):
        configuring.configure_project(project=crowd, changes={"gate_voices": 20}, actor=crowd.created_by)
