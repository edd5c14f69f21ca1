"""Crowd projects over one log, with what their gates let out: for scans of an upload, and of a table where it lies."""

import secrets
from collections.abc import Iterable
from typing import Any

from django.core.files.base import ContentFile
from django.db.models import FloatField
from django.db.models.functions import Coalesce

from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Dataset, GateRun, Project, Query
from privacy.ledger import services as ledger
from tests.factories import make_project, make_user, receive_upload
from tests.in_process import reading_here

TEXTS = [f"text {number % (7 + number // 40)}" for number in range(600)] + ["Stop!", "stop"] * 60 + ["only once"]
PEOPLE = [f"person {number * 7 % 90}" for number in range(len(TEXTS))]
GATE = {"gate_k": 8, "gate_sampling_rate": 0.5, "gate_epsilon": 1.0}
THRESHOLD = {
    "gate_kind": "threshold",
    "gate_k": None,
    "gate_sampling_rate": None,
    "gate_epsilon": 1.0,
    "gate_delta": 1e-3,
    "gate_floor": 4,
}


def crowd(unit: str = "record", **fields: Any) -> Project:
    pool = ledger.open_account(
        scope=f"gate {secrets.token_hex(4)}",
        label="pool",
        unit=unit,
        filter="pure",
        epsilon_limit=10.0,
        delta_limit=0.5,
        actor="test",
        reason="test",
    )
    cap = 3 if unit == "contributor" else None
    chosen = GATE | {"privacy_unit": unit, "texts_per_contributor": cap} | fields
    return make_project(oracle="crowd", normalizer="L1", pool_account=pool, **chosen)


def upload(project: Project, rows: Iterable[tuple[str, str]] = tuple(zip(TEXTS, PEOPLE, strict=True))) -> Dataset:
    lines = "".join(f"{text},{who}\n" for text, who in rows)
    with reading_here():
        dataset = receive_upload(
            project=project,
            file=ContentFile(f"text,contributor\n{lines}".encode()),
            name="log.csv",
            mapping={"text": "text", "contributor": "contributor"},
            uploaded_by=make_user(),
            send=False,
        )
        datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    return dataset


def passed(dataset: Dataset) -> tuple[str, list[Any]]:
    gates.run_gate(job_id=dataset.gate_job_id)
    run = GateRun.objects.get(dataset=dataset)
    assert run.state == "committed"
    found = Query.objects.filter(gate_run=run).order_by("text")
    texts = list(found.values_list("text", Coalesce("sample_count", "noisy_count", output_field=FloatField())))
    return run.committed_entry.output_digest, texts
