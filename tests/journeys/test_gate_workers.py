"""Another process digests the ranges of an upload, under a key that never travelled, and the result is the same."""

import time

import pytest

from annotation.models import GatePart, GateRun, Query
from annotation.services import gate, gate_parts, jobs
from dpal_site.embedded.processes import Supervisor
from privacy.gate import KAnonymityGate
from tests.factories import make_account, make_project, make_records

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = [f"text {number % (5 + number // 60)}" for number in range(900)]


def test_a_worker_digests_every_range_and_the_holder_decides(
    celery_worker_process: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(
        oracle="crowd", normalizer="L1", gate_k=8, gate_epsilon=1.0, pool_account=make_account(delta_limit=0.5)
    )
    dataset = make_records(project, TEXTS)[0].dataset
    keys = []
    decide = KAnonymityGate.decide

    def remember(self, parts, *, key):
        keys.append(key)
        return decide(self, parts, key=key)

    deadline = time.monotonic() + 60

    def wait_for_the_others(*, run_id: int) -> bool:
        assert time.monotonic() < deadline, "no worker came"
        return False

    monkeypatch.setattr(KAnonymityGate, "decide", remember)
    monkeypatch.setattr(gate_parts, "collect_part", wait_for_the_others)
    monkeypatch.setattr(gate_parts, "PART_ROWS", len(TEXTS) // 4)
    # This process holds the job; the worker hears of the ranges alone.
    monkeypatch.setattr(jobs, "send_job", lambda **job: None)
    job = gate.start_gate(dataset=dataset)
    assert job is not None
    gate.run_gate(job_id=job.pk)
    run = GateRun.objects.get()
    assert run.state == "committed"
    expected = gate.gate_of(project).release(gate_parts.records(dataset, lambda read: None), key=keys[0])
    passed = Query.objects.order_by("text").values_list("text", "sample_count")
    assert list(passed) == list(zip(*expected.to_pydict().values(), strict=True))
    assert not GatePart.objects.exists()
