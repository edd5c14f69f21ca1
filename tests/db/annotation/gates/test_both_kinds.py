"""Both kinds of gate behind one service: what each hands out, what it is charged, what may not be configured."""

import hashlib
import json
import secrets

import pytest
from django.db import IntegrityError
from django.db.models.functions import Now

from annotation.choices.presets import PRESETS, broken_rules
from annotation.errors import InvalidConfiguration
from annotation.gates import services as gates
from annotation.models import GateRun, Project, Query
from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.ledger import services as ledger
from tests.db.annotation.gates.test_planning import created
from tests.factories import make_project, make_records, write_settings

pytestmark = pytest.mark.django_db(transaction=True)
# Thresholds lie below 60; noise of this size never moves 400 copies or 5 copies across them in practice: the chance is
# below 1e-30 for the truncated geometric noise, whose support ends before that.
OFTEN, RARE = 400, 5
TEXTS = ["Play  Jazz"] * OFTEN + ["my very own secret"] * RARE + ["stop"] * OFTEN
GATED = "annotation_project_crowd_has_gate"
THRESHOLD = {
    "gate_kind": "threshold",
    "gate_k": None,
    "gate_sampling_rate": None,
    "gate_epsilon": 0.5,
    "gate_delta": 1e-5,
    "gate_floor": 6,
}


def account(unit="record"):
    return ledger.open_account(
        scope=f"gate {secrets.token_hex(4)}",
        label="pool",
        unit=unit,
        filter="pure",
        epsilon_limit=10.0,
        delta_limit=1e-3,
        actor="test",
        reason="test",
    )


def crowd(**fields):
    unit = fields.get("privacy_unit", "record")
    return make_project(**{"oracle": "crowd", "normalizer": "L1", "pool_account": account(unit), **fields})


def gated(project, texts, contributors=None):
    records = make_records(project, texts)
    if contributors:
        for record, contributor in zip(records, contributors, strict=True):
            record.contributor = contributor
        type(records[0]).objects.bulk_update(records, ["contributor"])
    job = gates.start_gate(dataset=records[0].dataset)
    gates.run_gate(job_id=job.pk)
    job.refresh_from_db()
    return job


def test_a_threshold_gate_hands_out_noisy_counts_and_is_charged_as_one():
    project = crowd(**THRESHOLD)
    job = gated(project, TEXTS)
    assert (job.state, job.error) == ("done", "")
    passed = list(Query.objects.order_by("text").values_list("text", "noisy_count", "sample_count"))
    assert [(text, sampled) for text, _noisy, sampled in passed] == [("play jazz", None), ("stop", None)]
    reservation = GateRun.objects.get().reservation
    event = ThresholdGate(epsilon=0.5, delta=1e-5, floor=6).event()
    assert (reservation.event["kind"], reservation.event["threshold"]) == ("threshold_gate", event.threshold)
    assert reservation.epsilon_nano == 500_000_000
    lines = "".join(json.dumps([text, int(noisy)]) + "\n" for text, noisy, _sampled in passed)
    assert GateRun.objects.get().committed_entry.output_digest == hashlib.sha256(lines.encode()).hexdigest()


def test_a_contributor_shouting_passes_neither_gate():
    people = [index.to_bytes(16, "big") for index in range(OFTEN)]
    project = crowd(**THRESHOLD, privacy_unit="contributor", texts_per_contributor=2)
    gated(project, ["many"] * OFTEN + ["shouted"] * OFTEN, people + [b"x" * 16] * OFTEN)
    assert list(Query.objects.values_list("text", flat=True)) == ["many"]
    # A Gaussian gate covers all texts of a person at once, so the cap does not multiply its price.
    assert GateRun.objects.get().reservation.epsilon_nano == 500_000_000


@pytest.mark.parametrize("level", ["L0", "L1", "L2", "L3"])
def test_texts_come_out_in_the_form_the_project_chose(level):
    gated(crowd(normalizer=level), ["Wake me at 7:30 on Monday!"] * OFTEN)
    shown = {
        "L0": "Wake me at 7:30 on Monday!",
        "L1": "wake me at 7 30 on monday",
        "L2": "wake me at <number> on <weekday>",
    }
    text = Query.objects.get().text
    assert text == shown[level] if level in shown else set(text.split()) >= {"<number>", "<weekday>", "wake"}


def test_a_project_keeps_the_numbers_of_its_own_gate_only():
    sampled, noisy = created(), created(gate_kind="threshold", gate_delta=1e-6, gate_epsilon=1.0)
    assert isinstance(gates.gate_of(sampled), KAnonymityGate)
    assert (sampled.gate_delta, sampled.gate_floor) == (None, None)
    found = gates.gate_of(noisy)
    assert isinstance(found, ThresholdGate)
    # Of two texts a person geometric noise lets more pass, and charges each of them half.
    assert (found.floor, found.noise) == (2, "truncated_geometric")
    assert (found.epsilon, found.delta) == (pytest.approx(0.5), pytest.approx(5e-7))
    assert found.event().cost().epsilon <= 1.0
    assert (noisy.gate_k, noisy.gate_sampling_rate) == (None, None)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"gate_kind": "sketch"}, "gate_kind"),
        ({"gate_kind": "threshold", "gate_delta": 0.0}, "gate_delta"),
        ({"gate_kind": "threshold", "gate_delta": 1.0}, "gate_delta"),
        ({"gate_kind": "threshold", "gate_delta": 1e-4}, "gate_delta"),
        ({"gate_kind": "threshold", "gate_floor": 1}, "gate_floor"),
        ({"gate_kind": "threshold", "gate_epsilon": 0}, "gate_epsilon"),
        ({"gate_kind": "threshold", "gate_epsilon": 50.0}, "pool_epsilon"),
        ({"gate_k": 1}, "gate_k"),
        ({"gate_sampling_rate": 0.0}, "gate_sampling_rate"),
        ({"gate_sampling_rate": 1.0}, "gate_sampling_rate"),
        ({"gate_sampling_rate": 1e-12}, "gate_epsilon"),
        ({"gate_epsilon": -1.0}, "gate_epsilon"),
        ({"normalizer": "L9"}, "normalizer"),
        ({"privacy_unit": "household"}, "privacy_unit"),
        ({"texts_per_contributor": None}, "texts_per_contributor"),
    ],
)
def test_what_has_no_proof_is_refused_at_its_field(changes, field):
    settings = dict(PRESETS["voice-crowd"].defaults) | {"oracle": "crowd", "data_kind": "text", "classes": ["a", "b"]}
    assert broken_rules(settings) == {}
    settings |= {"gate_kind": "k_anonymity", "gate_epsilon": 0.5}
    assert broken_rules(settings) == {}
    assert list(broken_rules(settings | changes)) == [field]
    with pytest.raises(InvalidConfiguration, match=field):
        created(**changes)
    assert not Project.objects.exists()


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"gate_delta": None}, GATED),
        ({"gate_delta": 0.0}, "no choice declares this value of gate.gate_delta"),
        ({"gate_delta": 1.0}, "no choice declares this value of gate.gate_delta"),
        ({"gate_floor": None}, GATED),
        ({"gate_floor": 1}, "no choice declares this value of gate.gate_floor"),
        ({"gate_k": 20}, GATED),
        ({"gate_sampling_rate": 0.3}, GATED),
        ({"gate_epsilon": None}, GATED),
        ({"gate_epsilon": 0.0}, "no choice declares this value of gate.gate_epsilon"),
        ({"gate_kind": "k_anonymity"}, GATED),
        ({"gate_kind": None}, GATED),
        ({"gate_kind": "none"}, "no choice declares this value of gate.gate_kind"),
    ],
)
def test_the_database_knows_two_gates_and_no_mixture(fields, rule):
    with pytest.raises(IntegrityError, match=rule):
        crowd(**{**THRESHOLD, **fields})


def test_a_gate_stays_once_it_was_paid_for():
    project = crowd()
    write_settings(project, gate_k=18)
    project.refresh_from_db()
    gated(project, ["stop"] * OFTEN)
    to_threshold = dict.fromkeys(("gate_k", "gate_sampling_rate"))
    for change, rule in (
        ({"gate_k": 5}, "annotation_project_successor"),
        ({"gate_epsilon": 0.1}, "annotation_project_successor"),
        ({"normalizer": "L3"}, "annotation_project_successor"),
        ({"texts_per_contributor": 3}, "annotation_project_successor"),
        ({**THRESHOLD, **to_threshold}, "annotation_project_successor"),
        ({"privacy_unit": "contributor"}, "annotation_project_under_guarantee"),
    ):
        with pytest.raises(IntegrityError) as refusal:
            write_settings(project, **change)
        assert refusal.value.__cause__.diag.constraint_name == rule
    write_settings(project, gate_k=18, round_size=5, created_at=Now())


def test_a_noisy_count_belongs_to_what_a_question_shows():
    gated(crowd(**THRESHOLD), ["stop"] * OFTEN)
    for change in ({"noisy_count": 9.5}, {"noisy_count": None, "sample_count": 9}):
        with pytest.raises(IntegrityError) as refusal:
            Query.objects.update(**change)
        assert refusal.value.__cause__.diag.constraint_name == "annotation_query_source_fixed"
