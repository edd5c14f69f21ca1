"""A cluster lets out what one process does, and pays the same; so do tables as clusters keep them."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from addons.spark import engine, services
from addons.spark.engine import Driver
from addons.spark.tables import folder_reader
from annotation.data.readers import registered as rows
from annotation.data.readers.registered import TableColumns
from annotation.data.services import pool_files, registered
from annotation.data.services.pseudonyms import table_key
from annotation.gates import services as gates
from annotation.models import GateRun, Job, Query
from privacy.ledger import services as ledger
from tests.db.annotation.gates.test_registered import entries, fails
from tests.db.annotation.gates.test_scan import know_the_coins, spends
from tests.faults.storm.site import descendants
from tests.gate_scans import TEXTS, THRESHOLD, crowd, passed, upload
from tests.iceberg import write_iceberg
from tests.lakes import register, write_table
from tests.spark_cluster import command_line, needs_spark

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lake(tmp_path, settings):
    settings.POOL_SOURCES = [tmp_path.as_uri()]
    return tmp_path


@needs_spark
def test_spark_lets_the_same_out_to_the_byte(monkeypatch, settings):
    know_the_coins(monkeypatch)
    monkeypatch.setattr(pool_files, "PART_ROWS", 100)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    for unit, chosen in (("record", {}), ("contributor", THRESHOLD)):
        settings.SPARK_MASTER = ""
        alone = passed(upload(crowd(unit, **chosen)))
        settings.SPARK_MASTER = "local[2]"
        assert passed(upload(crowd(unit, **chosen))) == alone
        assert len(alone[1]) > 1


@needs_spark
def test_a_driver_that_is_killed_is_charged_and_the_next_attempt_pays_anew(monkeypatch, settings):
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    settings.SPARK_MASTER = "local[1]"
    dataset, reserve = upload(crowd()), ledger.reserve

    def reserve_and_kill(**given):
        reservation = reserve(**given)
        (driver, *_) = [pid for pid in descendants(os.getpid()) if b"addons.spark.driver" in command_line(pid)]
        os.kill(driver, signal.SIGKILL)
        return reservation

    with monkeypatch.context() as patch:
        patch.setattr(gates.ledger, "reserve", reserve_and_kill)
        gates.run_gate(job_id=dataset.gate_job_id)
    job = Job.objects.get(pk=dataset.gate_job_id)
    assert job.state == "failed"
    assert job.error.endswith("ended without an answer. What the gate reserved stays charged.")
    assert GateRun.objects.get(dataset=dataset).state == "lost"
    assert spends(dataset) == ["reserve", "charge"]
    assert not Query.objects.filter(project=dataset.project).exists()
    settings.SPARK_MASTER = ""
    gates.run_gate(job_id=gates.start_gate(dataset=dataset).pk)
    assert spends(dataset) == ["reserve", "charge", "reserve", "commit"]


def test_what_is_missing_is_found_before_anything_is_paid(monkeypatch, settings):
    settings.SPARK_MASTER = "spark://127.0.0.1:1"
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    dataset = upload(crowd())
    gates.run_gate(job_id=dataset.gate_job_id)
    job = Job.objects.get(pk=dataset.gate_job_id)
    assert (job.state, job.error) == ("failed", "SPARK_MASTER names a cluster and the extra spark is not installed.")
    assert spends(dataset) == []


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

    monkeypatch.setattr(gates.ledger, "reserve", reserve_and_look)
    settings.SPARK_MASTER = "local[2]"
    dataset = register(crowd("contributor", **THRESHOLD), table)
    assert passed(dataset) == alone
    told = b"".join(shown).decode() + caplog.text
    assert "addons.spark.driver" in told
    assert table_key(bytes(registered.source_of(dataset).secret)).hex() not in told


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
    noted = registered.source_of(dataset)
    assert noted.snapshot_number == first["snapshot-id"]
    assert entries(dataset)[0].event["snapshot"] == noted.snapshot
    again = register(crowd("contributor"), lake / "ice", snapshot=first["snapshot-id"])
    assert passed(again) == plain
    assert [text for text, _ in passed(register(crowd(), lake / "ice"))[1]] == ["more"]


def test_an_iceberg_snapshot_whose_files_were_cleared_away_is_refused_unpaid(lake):
    write_iceberg(lake / "ice")
    dataset = register(crowd(), lake / "ice")
    (lake / "ice" / "data" / "part-1.parquet").unlink()
    assert fails(dataset).startswith("The table has changed")
    assert entries(dataset) == []


@needs_spark
def test_executors_that_do_not_see_the_table_are_found_before_anything_is_paid(monkeypatch, lake, settings):
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    dataset = register(crowd(), write_table(lake / "log"))
    settings.SPARK_MASTER = "local[1]"
    elsewhere = folder_reader(lake / "not mounted", lake, TableColumns("said", None), key=bytes(32))
    monkeypatch.setattr(services, "shared_table", lambda *given: elsewhere)
    assert fails(dataset).startswith("An executor cannot read a file")
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
