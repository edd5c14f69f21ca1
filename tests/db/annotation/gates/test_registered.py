"""A gate over a table where it lies lets out what the same rows uploaded would, and pays the same; or reads nothing."""

import os
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from annotation.budget.charges import gate_charge
from annotation.data.services import pool_files
from annotation.gates.services import runs, scan
from annotation.models import GateRun, Job, Query
from annotation.tables import rows, sources
from annotation.tables.executors import folder_reader
from annotation.tables.footers import TableColumns
from annotation.tables.pseudonym_keys import table_key
from privacy.engines.spark import Driver
from privacy.ledger import services as ledger
from privacy.ledger.models import LedgerEntry
from tests.db.annotation.gates.test_scan import know_the_coins
from tests.faults.storm.site import descendants
from tests.gate_scans import TEXTS, THRESHOLD, crowd, passed, upload
from tests.iceberg import write_iceberg
from tests.lakes import register, spoil_pages, write_table
from tests.spark_cluster import needs_spark

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch):
    """Keep the broker out of it."""
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **options: None)


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
        registered = register(crowd(unit, **chosen), write_table(lake / f"log-{files}", files=files))
        assert passed(registered) == expected
        (paid, _committed), (would, _) = entries(registered), entries(uploaded)
        assert (paid.epsilon_nano, paid.delta_atto) == (would.epsilon_nano, would.delta_atto)
        assert paid.event["kind"] == "gate_of_snapshot"
        assert paid.event["inner"] == would.event
        assert paid.event["snapshot"] == sources.source_of(registered).snapshot
        assert paid.mechanism == "gate_of_snapshot"


@needs_spark
def test_a_cluster_lets_the_same_out_to_the_byte_and_has_the_key_of_one_registration_alone(
    monkeypatch, lake, settings, caplog
):
    know_the_coins(monkeypatch)
    monkeypatch.setattr(rows, "BATCH_ROWS", 50)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    table, reserve, shown = write_iceberg(lake / "ice", files=5).folder, ledger.reserve, []
    alone = passed(register(crowd("contributor", **THRESHOLD), table))
    assert len(alone[1]) > 1

    def reserve_and_look(**given):
        for pid in [os.getpid(), *descendants(os.getpid())]:
            with suppress(FileNotFoundError, ProcessLookupError):
                shown.extend(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        return reserve(**given)

    monkeypatch.setattr(runs.ledger, "reserve", reserve_and_look)
    settings.SPARK_MASTER = "local[2]"
    dataset = register(crowd("contributor", **THRESHOLD), table)
    assert passed(dataset) == alone
    told = b"".join(shown).decode() + caplog.text
    assert "privacy.engines.spark_driver" in told
    assert table_key(bytes(sources.source_of(dataset).secret)).hex() not in told


@needs_spark
@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_row_groups_of_one_file_are_tasks_of_their_own_and_change_no_byte(monkeypatch, lake, settings, unit):
    know_the_coins(monkeypatch)
    monkeypatch.setattr(rows, "TASK_ROWS", 150)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    table, ordered, orders = write_table(lake / "log", files=2, row_group_size=60), Driver.order, []
    alone = passed(register(crowd(unit, **THRESHOLD), table))
    assert len(alone[1]) > 1

    def order(driver, **given):
        orders.append(given)
        ordered(driver, **given)

    monkeypatch.setattr(Driver, "order", order)
    settings.SPARK_MASTER = "local[2]"
    assert passed(register(crowd(unit, **THRESHOLD), table)) == alone
    (counting,) = [given["files"] for given in orders if "files" in given]
    assert sum(part["row_count"] for part in counting) == len(TEXTS)
    assert {part["name"] for part in counting} == {"part-0.parquet", "part-1.parquet"}
    assert [part["row_count"] for part in counting] == [120, 120, 121, 120, 120, 120]


def test_an_iceberg_snapshot_lets_out_what_its_rows_do_whatever_is_written_after_it(monkeypatch, lake):
    know_the_coins(monkeypatch)
    plain = passed(register(crowd("contributor"), write_table(lake / "log")))
    table = write_iceberg(lake / "ice")
    dataset = register(crowd("contributor"), lake / "ice")
    first = table.snapshots[0]
    table.commit([table.manifest("more.avro", [table.data_file("more.parquet", ["more"] * 99, ["A"] * 99)])])
    assert passed(dataset) == plain
    noted = sources.source_of(dataset)
    assert noted.iceberg_snapshot == first["snapshot-id"]
    assert entries(dataset)[0].event["snapshot"] == noted.snapshot
    again = register(crowd("contributor"), lake / "ice", snapshot=first["snapshot-id"])
    assert passed(again) == plain
    assert [text for text, _ in passed(register(crowd(), lake / "ice"))[1]] == ["more"]


def test_an_iceberg_snapshot_whose_files_were_cleared_away_is_refused_unpaid(lake):
    write_iceberg(lake / "ice")
    dataset = register(crowd(), lake / "ice")
    (lake / "ice" / "data" / "part-1.parquet").unlink()
    assert fails(dataset).startswith("The table is not the one that was registered.")
    assert entries(dataset) == []


@needs_spark
def test_executors_that_do_not_see_the_table_are_found_before_anything_is_paid(monkeypatch, lake, settings):
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    dataset = register(crowd(), write_table(lake / "log"))
    settings.SPARK_MASTER = "local[1]"
    elsewhere = folder_reader(lake / "not mounted", lake, TableColumns("said", None), key=bytes(32))
    monkeypatch.setattr(sources, "shared_table", lambda *given: elsewhere)
    assert fails(dataset).startswith("An executor of the cluster does not find a file of the registered table")
    assert entries(dataset) == []


@needs_spark
def test_a_cluster_reads_a_bucket_by_a_key_of_its_own(monkeypatch, lake, settings, bucket):
    know_the_coins(monkeypatch)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    settings.POOL_SOURCES = ["s3://lake"]
    for path in write_table(lake / "log").iterdir():
        bucket.objects[f"/lake/log/{path.name}"] = path.read_bytes()
    alone = passed(register(crowd(), "s3://lake/log"))
    settings.SPARK_MASTER = "local[2]"
    assert passed(register(crowd(), "s3://lake/log")) == alone


def fails(dataset):
    runs.run_gate(job_id=dataset.gate_job_id)
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
    assert error.startswith("The table is not the one that was registered. Register it again to take its newer")
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
    runs.run_gate(job_id=second.gate_job_id)
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
    assert fails(dataset).startswith("A file of the registered table cannot be read to its end.")
    assert [entry.kind for entry in entries(dataset)] == ["reserve", "charge"]


def test_a_worker_that_dies_is_charged_and_the_next_attempt_pays_anew(monkeypatch, lake):
    class Killed(BaseException):
        """What nobody catches."""

    dataset = register(crowd(), write_table(lake / "log"))

    def killed(*given, **options):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(scan, "release", killed)
        with pytest.raises(Killed):
            runs.run_gate(job_id=dataset.gate_job_id)
    Job.objects.filter(pk=dataset.gate_job_id).update(leased_until="2020-01-01T00:00:00Z")
    runs.run_gate(job_id=dataset.gate_job_id)
    kinds = [entry.kind for entry in entries(dataset)]
    assert kinds == ["reserve", "charge", "reserve", "commit"]
    assert GateRun.objects.get(state="committed").passed_count > 1


def test_rows_that_an_upload_would_refuse_end_no_run(lake):
    texts = [None, "", "\0", "x" * 20_001] * 20 + ["fine"] * 80
    dataset = register(crowd(), write_table(lake / "log", texts=texts, people=["A"] * len(texts)))
    assert [text for text, _ in passed(dataset)[1]] == ["fine"]
