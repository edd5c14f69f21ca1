"""Another process works on the parts of an upload, under a key that never travelled, and the result is the same."""

import time

import pytest

from annotation.gates.services import gate, gate_parts
from annotation.models import GatePart, GatePiece, GateRun, Query
from annotation.work.services import jobs
from dpal_site.embedded.processes import Supervisor
from privacy import threshold_gate
from privacy.mechanisms.randomness import SimulationRandom
from tests.factories import make_account, make_project, make_records

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = [f"text {number % (5 + number // 60)}" for number in range(900)]
CONTRIBUTORS = [(number * 7 % 300).to_bytes(16, "big") for number in range(len(TEXTS))]
GATES = {
    "k_anonymity": {"gate_k": 8, "gate_epsilon": 1.0},
    "threshold": {
        "gate_kind": "threshold",
        "gate_k": None,
        "gate_sampling_rate": None,
        "gate_epsilon": 1.0,
        "gate_delta": 1e-3,
        "gate_floor": 3,
    },
}


@pytest.mark.parametrize("kind", GATES)
def test_a_worker_does_every_part_and_the_holder_decides(
    celery_worker_process: Supervisor, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    project = make_project(
        oracle="crowd",
        normalizer="L1",
        privacy_unit="contributor",
        texts_per_contributor=2,
        pool_account=make_account(delta_limit=0.5, unit="contributor"),
        **GATES[kind],
    )
    records = make_records(project, TEXTS)
    for record, contributor in zip(records, CONTRIBUTORS, strict=True):
        record.contributor = contributor
    type(records[0]).objects.bulk_update(records, ["contributor"])
    dataset = records[0].dataset
    keys = []
    coin_key = gate_parts.coin_key

    def remember(salt: bytes) -> bytes:
        keys.append(coin_key(salt))
        return keys[-1]

    deadline = time.monotonic() + 60

    def wait_for_the_others(*, run_id: int) -> bool:
        assert time.monotonic() < deadline, "no worker came"
        return False

    monkeypatch.setattr(gate_parts, "coin_key", remember)
    # Noise is drawn by the holder, which is this process.
    monkeypatch.setattr(threshold_gate, "SecureRandom", lambda: SimulationRandom(7))
    monkeypatch.setattr(gate_parts, "collect_part", wait_for_the_others)
    monkeypatch.setattr(gate_parts, "PART_ROWS", len(TEXTS) // 4)
    # This process holds the job; the worker hears of the parts alone.
    monkeypatch.setattr(jobs, "send_job", lambda **job: None)
    job = gate.start_gate(dataset=dataset)
    assert job is not None
    gate.run_gate(job_id=job.pk)
    run = GateRun.objects.get()
    assert run.state == "committed"
    configured = gate.gate_of(project)
    whole = configured.read(gate_parts.records(dataset, lambda read: None), key=keys[0])
    expected = configured.decide(whole, key=keys[0])
    count = "sample_count" if kind == "k_anonymity" else "noisy_count"
    passed = Query.objects.order_by("text").values_list("text", count)
    assert list(passed) == list(zip(*expected.to_pydict().values(), strict=True))
    assert len(passed) > 1
    assert not GatePart.objects.exists()
    assert not GatePiece.objects.exists()
