"""One scan of a pool lets the same out as the rows in the database, in however many files it lies."""

from types import SimpleNamespace

import pytest
from django.db import connection

from annotation.data.services import pool_files
from annotation.gates import services as gates
from annotation.models import PoolPart, Record
from privacy.gate import threshold
from privacy.gate.engine import ProcessEngine
from privacy.ledger.models import LedgerEntry
from privacy.mechanisms.randomness import SimulationRandom
from tests.gate_scans import TEXTS, THRESHOLD, crowd, passed, upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]


@pytest.mark.parametrize("kind", ["k_anonymity", "threshold"])
@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_neither_the_place_of_the_rows_nor_the_number_of_files_changes_a_byte(monkeypatch, settings, kind, unit):
    """Under one key, and for the threshold gate one source of noise."""
    monkeypatch.setattr(gates, "new_key", lambda: bytes(range(32)))
    monkeypatch.setattr(threshold, "SecureRandom", lambda: SimulationRandom(7))
    chosen = THRESHOLD if kind == "threshold" else {}
    found = {}
    for rows in (None, 10_000, 100):
        settings.POOLS_IN_DATABASE = rows is None
        monkeypatch.setattr(pool_files, "PART_ROWS", rows)
        dataset = upload(crowd(unit, **chosen))
        assert Record.objects.filter(dataset=dataset).exists() == (rows is None)
        assert PoolPart.objects.filter(dataset=dataset).count() == {None: 0, 10_000: 1, 100: 8}[rows]
        found[rows] = passed(dataset)
    assert found[None] == found[10_000] == found[100]
    texts = found[100][1]
    assert 1 < len(texts) < len(set(TEXTS))
    assert "only once" not in dict(texts)


def test_the_key_is_nowhere_and_another_run_has_another(monkeypatch):
    keys = []
    real = gates.new_key
    monkeypatch.setattr(gates, "new_key", lambda: keys.append(real()) or keys[-1])
    for _ in range(2):
        passed(upload(crowd()))
    assert len(set(keys)) == 2
    assert {len(key) for key in keys} == {32}
    for key in keys:
        assert not holders(key.hex())


def holders(hexadecimal):
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{hexadecimal}%"])
            found += [table] * bool(cursor.fetchone()[0])
    return found


@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_a_survey_counts_columns_as_it_counts_rows(monkeypatch, settings, unit):
    monkeypatch.setattr(gates, "new_key", lambda: bytes(range(32)))
    counted = []
    for in_database in (False, True):
        settings.POOLS_IN_DATABASE = in_database
        counted.append(gates.frequencies_of(upload(crowd(unit))).to_json())
    assert counted[0] == counted[1]


def test_progress_ends_with_the_last_row(monkeypatch):
    monkeypatch.setattr(pool_files, "PART_ROWS", 300)
    dataset = upload(crowd())
    told = []
    lease = SimpleNamespace(check=lambda: None, report=lambda **news: told.append(news["progress_done"]))
    gate = gates.gate_of(dataset.project)
    with gates.ready_engine(dataset, gate, lease) as engine:
        gates.release([dataset], gate, lease, engine)
    assert told == [300, 600, len(TEXTS)]


def know_the_coins(monkeypatch):
    monkeypatch.setattr(gates, "new_key", lambda: bytes(range(32)))
    monkeypatch.setattr(threshold, "SecureRandom", lambda: SimulationRandom(7))


def spends(dataset):
    entries = LedgerEntry.objects.filter(account=dataset.project.pool_account).order_by("pk")
    return [kind for kind in entries.values_list("kind", flat=True) if kind != "grant"]


def test_a_file_that_is_rewritten_meanwhile_is_found_under_its_new_name(monkeypatch):
    dataset, tries = upload(crowd()), []
    counted = ProcessEngine.counted

    def rewritten_once(engine, gate, files, *, key, tell):
        tries.append(key)
        if len(tries) == 1:
            raise FileNotFoundError(files[0].name)
        return counted(engine, gate, files, key=key, tell=tell)

    monkeypatch.setattr(ProcessEngine, "counted", rewritten_once)
    passed(dataset)
    assert len(tries) == 2
    assert len(set(tries)) == 1
    assert spends(dataset) == ["reserve", "commit"]
