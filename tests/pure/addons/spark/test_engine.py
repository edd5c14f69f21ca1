import os
import signal
import stat

import pyarrow as pa
import pytest

from addons.spark import engine as spark
from addons.spark.engine import SparkEngine
from addons.spark.stores import Folder, columns_in
from dpal_site.embedded import host
from privacy.errors import EngineFailed, PoolDamaged
from privacy.gate.counting import ordered
from tests.faults.storm.site import descendants
from tests.pure.privacy.test_gate_engine import GATES, KEY, counted, in_files, pool
from tests.spark_cluster import PATIENCE_SECONDS, command_line, needs_spark

pytestmark = pytest.mark.faults
SAID = "what nobody else may ever read"
SIZES = (17, 400, 1, 30, 600, 200)
# Whatever is written would show its texts, if it were not encrypted.
IN_PLAIN_SIGHT = {"spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false"}


@pytest.fixture
def stored(tmp_path):
    rows = [(text if number % 9 else SAID, who or bytes(16)) for number, (text, who) in enumerate(pool(2000))]
    files, contents = in_files(rows, SIZES)
    folder = tmp_path / "pool"
    folder.mkdir()
    for file, content in zip(files, contents, strict=True):
        (folder / file.name).write_bytes(content)
    return files, folder, {name: counted(gate, files, contents) for name, gate in GATES.items()}


def configure(monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def by_engine(engine, gate, files, tell=lambda read: None):
    return pa.concat_tables(
        [gate.counts_schema.empty_table(), *ordered(engine.counted(gate, files, key=KEY, tell=tell))]
    )


def written(*folders):
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


def wait_until(condition):
    assert host.wait_until(condition, PATIENCE_SECONDS, 0.1)


@needs_spark
@pytest.mark.parametrize("executors", [1, 2, 4])
def test_any_number_of_executors_counts_to_the_byte_and_writes_nothing_to_read(
    cluster, stored, monkeypatch, tmp_path, executors
):
    files, folder, expected = stored
    changed = IN_PLAIN_SIGHT | {"spark.cores.max": executors}
    configure(monkeypatch, cluster.configuration(f"{executors} executors", **changed))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = SparkEngine(cluster.address, columns_in(Folder(str(folder))), share_rows=700)
    with engine.opened(GATES["threshold, records"], lambda read: None):
        wait_until(lambda: len(cluster.executors()) == executors)
        for name, gate in GATES.items():
            assert by_engine(engine, gate, files).equals(expected[name]), name
            assert expected[name].num_rows > 2
        (scratch,) = tmp_path.glob("dpal-spark-*")
        assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in cluster.local.iterdir()} == {0o700}
        found = written(cluster.local, cluster.work, scratch)
        assert any("shuffle_" in path.name and len(content) > 1000 for path, content in found.items())
        readable = [path for path, content in found.items() if any(each in content for each in private())]
        assert readable == []
        lines = b"".join(map(command_line, [*cluster.everything(), *descendants(os.getpid())]))
        assert b"addons.spark.driver" in lines
        assert cluster.secret.encode() not in lines
        assert not any(each in lines for each in private())
    wait_until(lambda: not cluster.executors())
    assert list(tmp_path.glob("dpal-spark-*")) == []
    wait_until(lambda: not [path for path in cluster.local.rglob("*") if path.is_file()])


def private():
    return (SAID.encode(), KEY, KEY.hex().encode())


@needs_spark
def test_a_killed_executor_changes_no_byte_and_bad_files_are_named_by_class_alone(cluster, stored, monkeypatch):
    files, folder, expected = stored
    configure(monkeypatch, cluster.configuration("killed", **{"spark.cores.max": 2}))
    engine, killed = SparkEngine(cluster.address, columns_in(Folder(str(folder))), share_rows=400), []

    def kill(read):
        if not killed and read:
            killed.append(cluster.executors()[0])
            os.kill(killed[0], signal.SIGKILL)

    with engine.opened(GATES["threshold, records"], lambda read: None):
        wait_until(lambda: len(cluster.executors()) == 2)
        for name, gate in GATES.items():
            assert by_engine(engine, gate, files, kill).equals(expected[name]), name
        assert killed
        assert command_line(killed[0]) == b""
        damaged = folder / files[1].name
        content = damaged.read_bytes()
        damaged.write_bytes(content[:-1] + b"?")
        with pytest.raises(PoolDamaged):
            by_engine(engine, GATES["threshold, records"], files)
        damaged.unlink()
        with pytest.raises(FileNotFoundError):
            by_engine(engine, GATES["threshold, records"], files)
        damaged.write_bytes(content)
        nobody, contents = in_files([(SAID, None)] * 5, ())
        (folder / nobody[0].name).write_bytes(contents[0])
        with pytest.raises(EngineFailed, match="ValueError"):
            by_engine(engine, GATES["threshold, contributors"], nobody)
    logs = b"".join(written(cluster.work).values())
    assert b"step failed with ValueError" in logs
    assert not any(each in logs for each in private())


@needs_spark
@pytest.mark.parametrize("victim", ["driver", "listener"])
def test_a_driver_ends_when_it_is_killed_or_nobody_listens(cluster, stored, monkeypatch, tmp_path, victim):
    files, folder, _ = stored
    configure(monkeypatch, cluster.configuration(f"no {victim}", **{"spark.cores.max": 1}))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine, drivers = SparkEngine(cluster.address, columns_in(Folder(str(folder))), share_rows=200), []

    class Stopped(Exception):
        """What whoever listens raises."""

    def tell(read):
        if read or victim == "driver":
            drivers.extend(pid for pid in descendants(os.getpid()) if b"addons.spark.driver" in command_line(pid))
            if victim == "listener":
                raise Stopped
            os.kill(drivers[0], signal.SIGKILL)

    wanted = EngineFailed if victim == "driver" else Stopped
    with pytest.raises(wanted), engine.opened(GATES["threshold, records"], lambda read: None):
        by_engine(engine, GATES["threshold, records"], files, tell)
    assert drivers
    # Spark's own process was of the driver's group.
    with pytest.raises(ProcessLookupError):
        os.killpg(drivers[0], 0)
    assert list(tmp_path.glob("dpal-spark-*")) == []
    wait_until(lambda: not cluster.executors())


@needs_spark
def test_a_cluster_that_talks_in_plain_is_refused(cluster, monkeypatch):
    plain = {"spark.network.crypto.enabled": "false"}
    configure(monkeypatch, cluster.configuration("plain", **plain))
    engine = SparkEngine(cluster.address, columns_in(Folder("/nowhere")))
    with pytest.raises(EngineFailed, match=r"spark\.authenticate and spark\.network\.crypto\.enabled"):
        engine.opened(GATES["threshold, records"], lambda read: None).__enter__()


def test_without_the_extra_it_says_so(monkeypatch):
    monkeypatch.setattr(spark, "find_spec", lambda name: None)
    engine = SparkEngine("local[2]", columns_in(Folder("/nowhere")))
    with pytest.raises(EngineFailed, match="the extra spark is not installed"):
        engine.opened(GATES["threshold, records"], lambda read: None).__enter__()
