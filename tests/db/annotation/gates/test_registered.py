"""A gate over a table where it lies lets out what the same rows uploaded would, and pays the same; or reads nothing."""

import pyarrow.parquet as pq
import pytest

from annotation.budget.charges import gate_charge
from annotation.data.readers import registered as rows
from annotation.data.services import pool_files, registered
from annotation.gates import services as gates
from annotation.models import GateRun, Job, Query
from privacy.ledger.models import LedgerEntry
from tests.db.annotation.gates.test_scan import know_the_coins
from tests.gate_scans import TEXTS, THRESHOLD, crowd, passed, upload
from tests.lakes import register, spoil_pages, write_table

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lake(tmp_path, settings):
    settings.POOL_SOURCES = [tmp_path.as_uri()]
    return tmp_path


def entries(dataset):
    held = LedgerEntry.objects.filter(account=dataset.project.pool_account).exclude(kind="grant")
    return list(held.order_by("pk"))


@pytest.mark.parametrize("kind", ["k_anonymity", "threshold"])
@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_a_table_lets_out_what_its_upload_does_under_one_key_at_one_price(monkeypatch, lake, kind, unit):
    know_the_coins(monkeypatch)
    monkeypatch.setattr(pool_files, "PART_ROWS", 100)
    monkeypatch.setattr(rows, "BATCH_ROWS", 50)
    chosen = THRESHOLD if kind == "threshold" else {}
    uploaded = upload(crowd(unit, **chosen))
    expected = passed(uploaded)
    assert 1 < len(expected[1]) < len(set(TEXTS))
    for files in (1, 5):
        dataset = register(crowd(unit, **chosen), write_table(lake / f"log-{files}", files=files))
        assert passed(dataset) == expected
        (paid, _committed), (would, _) = entries(dataset), entries(uploaded)
        assert (paid.epsilon_nano, paid.delta_atto) == (would.epsilon_nano, would.delta_atto)
        assert paid.event["kind"] == "gate_of_snapshot"
        assert paid.event["inner"] == would.event
        assert paid.event["snapshot"] == registered.source_of(dataset).snapshot
        assert paid.mechanism == "gate_of_snapshot"


def fails(dataset):
    gates.run_gate(job_id=dataset.gate_job_id)
    job = Job.objects.get(pk=dataset.gate_job_id)
    assert job.state == "failed"
    assert not Query.objects.filter(project=dataset.project).exists()
    return job.error


@pytest.mark.parametrize("change", ["written again", "one more file", "gone", "spoiled"])
def test_a_table_that_changed_is_refused_before_a_row_and_before_anything_is_paid(monkeypatch, lake, change):
    table = write_table(lake / "log")
    dataset = register(crowd(), table)
    monkeypatch.setattr(rows.pq, "ParquetFile", None)
    if change == "written again":
        write_table(table)
    elif change == "one more file":
        write_table(table / "more", files=1)
    elif change == "gone":
        (table / "part-1.parquet").unlink()
    else:
        spoil_pages(table)
    error = fails(dataset)
    assert error.startswith("The table has changed")
    assert entries(dataset) == []
    assert not GateRun.objects.exists()


def test_a_newer_snapshot_is_another_upload_and_pays_again(lake):
    table = write_table(lake / "log")
    project = crowd()
    price = gate_charge(project)
    first = register(project, table)
    passed(first)
    write_table(table, texts=[*TEXTS[1:], "more"])
    second = register(project, table)
    gates.run_gate(job_id=second.gate_job_id)
    paid = [entry for entry in entries(first) if entry.kind == "reserve"]
    assert [entry.epsilon_nano for entry in paid] == [paid[0].epsilon_nano] * 2
    assert paid[0].epsilon_nano == pytest.approx(price.epsilon * 1e9)
    assert len({entry.event["snapshot"] for entry in paid}) == 2


def test_a_table_that_changes_while_it_is_read_is_charged_and_gives_nothing(monkeypatch, lake):
    table = write_table(lake / "log")
    dataset = register(crowd(), table)
    real = pq.ParquetFile

    def written_again(*given, **options):
        write_table(table)
        return real(*given, **options)

    monkeypatch.setattr(rows.pq, "ParquetFile", written_again)
    assert fails(dataset).endswith("What the gate reserved stays charged.")
    assert [entry.kind for entry in entries(dataset)] == ["reserve", "charge"]
    assert GateRun.objects.get().state == "lost"


def test_spoiled_pages_are_found_by_the_gate_alone_and_are_charged(lake):
    table = write_table(lake / "log")
    spoil_pages(table)
    dataset = register(crowd(), table)
    assert (dataset.state, dataset.row_count) == ("ready", len(TEXTS))
    assert fails(dataset).startswith("address: a file of the table is no Parquet file, or is cut off")
    assert [entry.kind for entry in entries(dataset)] == ["reserve", "charge"]


def test_a_worker_that_dies_is_charged_and_the_next_attempt_pays_anew(monkeypatch, lake):
    class Killed(BaseException):
        """What nobody catches."""

    dataset = register(crowd(), write_table(lake / "log"))

    def killed(*given, **options):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(gates, "release", killed)
        with pytest.raises(Killed):
            gates.run_gate(job_id=dataset.gate_job_id)
    Job.objects.filter(pk=dataset.gate_job_id).update(leased_until="2020-01-01T00:00:00Z")
    gates.run_gate(job_id=dataset.gate_job_id)
    kinds = [entry.kind for entry in entries(dataset)]
    assert kinds == ["reserve", "charge", "reserve", "commit"]
    assert GateRun.objects.get(state="committed").passed_count > 1


def test_rows_that_an_upload_would_refuse_end_no_run(lake):
    texts = [None, "", "\0", "x" * 20_001] * 20 + ["fine"] * 80
    dataset = register(crowd(), write_table(lake / "log", texts=texts, people=["A"] * len(texts)))
    assert [text for text, _ in passed(dataset)[1]] == ["fine"]
