"""One scan of a pool lets the same out as the rows in the database, in however many files it lies."""

import secrets
from types import SimpleNamespace

import pytest
from django.core.files.base import ContentFile
from django.db import connection
from django.db.models import FloatField
from django.db.models.functions import Coalesce

from annotation.data.services import datasets, pool_files
from annotation.gates.services import gate, gate_planning, scan
from annotation.models import GateRun, PoolPart, Query, Record
from privacy import threshold_gate
from privacy.mechanisms.randomness import SimulationRandom
from privacy.services import ledger
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = [f"text {number % (7 + number // 40)}" for number in range(600)] + ["Stop!", "stop"] * 60 + ["only once"]
GATE = {"gate_k": 8, "gate_sampling_rate": 0.5, "gate_epsilon": 1.0}
THRESHOLD = {
    "gate_kind": "threshold",
    "gate_k": None,
    "gate_sampling_rate": None,
    "gate_epsilon": 1.0,
    "gate_delta": 1e-3,
    "gate_floor": 4,
}


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch):
    """Keep the broker out of it."""
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **options: None)


def upload(unit="record", **fields):
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
    project = make_project(oracle="crowd", normalizer="L1", pool_account=pool, **chosen)
    lines = "".join(f"{text},person {number * 7 % 90}\n" for number, text in enumerate(TEXTS))
    dataset = datasets.receive_upload(
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


def passed(dataset):
    gate.run_gate(job_id=dataset.gate_job_id)
    run = GateRun.objects.get(dataset=dataset)
    assert run.state == "committed"
    found = Query.objects.filter(gate_run=run).order_by("text")
    texts = list(found.values_list("text", Coalesce("sample_count", "noisy_count", output_field=FloatField())))
    return run.committed_entry.output_digest, texts


@pytest.mark.parametrize("kind", ["k_anonymity", "threshold"])
@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_neither_the_place_of_the_rows_nor_the_number_of_files_changes_a_byte(monkeypatch, settings, kind, unit):
    """Under one key, and for the threshold gate one source of noise."""
    monkeypatch.setattr(scan, "secrets", SimpleNamespace(token_bytes=lambda count: bytes(range(count))))
    monkeypatch.setattr(threshold_gate, "SecureRandom", lambda: SimulationRandom(7))
    chosen = THRESHOLD if kind == "threshold" else {}
    found = {}
    for rows in (None, 10_000, 100):
        settings.POOLS_IN_DATABASE = rows is None
        monkeypatch.setattr(pool_files, "PART_ROWS", rows)
        dataset = upload(unit, **chosen)
        assert Record.objects.filter(dataset=dataset).exists() == (rows is None)
        assert PoolPart.objects.filter(dataset=dataset).count() == {None: 0, 10_000: 1, 100: 8}[rows]
        found[rows] = passed(dataset)
    assert found[None] == found[10_000] == found[100]
    texts = found[100][1]
    assert 1 < len(texts) < len(set(TEXTS))
    assert "only once" not in dict(texts)


def test_the_key_is_nowhere_and_another_run_has_another(monkeypatch):
    keys = []
    real = secrets.token_bytes
    monkeypatch.setattr(
        scan, "secrets", SimpleNamespace(token_bytes=lambda count: keys.append(real(count)) or keys[-1])
    )
    for _ in range(2):
        passed(upload())
    assert len(set(keys)) == 2
    assert {len(key) for key in keys} == {32}
    for key in keys:
        assert not holders(key.hex())


def holders(hexadecimal):
    """Return the tables with these bytes anywhere."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{hexadecimal}%"])
            found += [table] * bool(cursor.fetchone()[0])
    return found


@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_a_survey_counts_columns_as_it_counts_rows(monkeypatch, settings, unit):
    monkeypatch.setattr(gate_planning, "secrets", SimpleNamespace(token_bytes=lambda count: bytes(range(count))))
    counted = []
    for in_database in (False, True):
        settings.POOLS_IN_DATABASE = in_database
        counted.append(gate_planning.frequencies_of(upload(unit)).to_json())
    assert counted[0] == counted[1]


def test_progress_ends_with_the_last_row(monkeypatch):
    monkeypatch.setattr(pool_files, "PART_ROWS", 300)
    dataset = upload()
    told = []
    lease = SimpleNamespace(check=lambda: None, report=lambda **news: told.append(news["progress_done"]))
    scan.release(dataset, gate.gate_of(dataset.project), lease)
    assert told == [300, 600, len(TEXTS)]
