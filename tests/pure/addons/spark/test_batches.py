import os
import signal
from pathlib import Path

import pytest

from addons.spark import batches, engine
from addons.spark.batches import SparkBatches
from dpal_site.embedded import host
from learner.features.batches import BatchStep, features_step, values_batch
from learner.features.crew import Crew
from learner.features.text import HashingTextFeaturizer
from privacy.errors import EngineFailed
from tests.crews import batch_workers
from tests.faults.storm.site import descendants
from tests.pure.addons.spark.test_engine import IN_PLAIN_SIGHT, configure, written
from tests.pure.learner.features.test_crew import DOUBLE, many, numbers
from tests.spark_cluster import PATIENCE_SECONDS, command_line, needs_spark

SAID = "what nobody else may ever read"
SECRETS = ("DATABASE_URL", "SECRET_KEY", "CELERY_BROKER_URL", "SIGNING_KEY")
STEP = features_step(HashingTextFeaturizer(n_features=16))
BATCHES = 24


class NoHost:
    def made(self, step, batches):
        raise AssertionError("the cluster should have made it")


def texts():
    for number in range(BATCHES):
        yield values_batch([f"{SAID} {number} {place}" for place in range(number * 7 % 31)])


def by_one_host():
    return list(Crew(1).made(STEP, texts()))


def drivers():
    return [pid for pid in descendants(os.getpid()) if b"addons.spark.driver" in command_line(pid)]


def environments(pids):
    return b"".join(Path(f"/proc/{pid}/environ").read_bytes() for pid in pids if command_line(pid))


def test_what_no_cluster_makes_the_host_makes_and_says_so(monkeypatch, caplog):
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    found = list(SparkBatches("local[2]", Crew(1)).made(DOUBLE, many(5)))
    assert [batch.column(0).to_pylist() for batch in found] == [[2 * number] for number in range(5)]
    assert "so this host does" in caplog.text
    assert caplog.text.count("spark is not installed") == batches.TRIES
    assert not batch_workers()


def test_nothing_is_started_for_nothing(monkeypatch):
    monkeypatch.setattr(batches, "driver_of_a_job", None)
    assert list(SparkBatches("local[2]", NoHost()).made(DOUBLE, many(0))) == []


def test_a_cluster_that_does_nothing_is_waited_for_in_vain_for_a_while(monkeypatch):
    monkeypatch.setattr(batches, "PATIENCE_SECONDS", -60)
    with pytest.raises(EngineFailed, match="did nothing for -1 minutes"):
        batches._patience()(0)


@needs_spark
@pytest.mark.faults
@pytest.mark.parametrize("executors", [2, 4])
def test_any_number_of_executors_killed_or_not_makes_the_same_and_leaves_nothing_to_read(
    cluster, monkeypatch, tmp_path, executors
):
    expected = by_one_host()
    configure(monkeypatch, cluster.configuration(f"{executors}", **IN_PLAIN_SIGHT | {"spark.cores.max": executors}))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in SECRETS:
        monkeypatch.setenv(name, f"secret of {name}")
    read, found = [], []

    def watched():
        for batch in texts():
            read.append(batch)
            yield batch

    made = SparkBatches(cluster.address, NoHost()).made(STEP, watched())
    found.append(next(made))
    assert len(read) < BATCHES
    assert host.wait_until(lambda: len(cluster.executors()) == executors, PATIENCE_SECONDS, 0.1)
    theirs = [*drivers(), *cluster.everything()]
    told = environments(theirs) + b"".join(map(command_line, [*theirs, *descendants(os.getpid())]))
    assert b"SPARK_" in told
    assert not any(f"secret of {name}".encode() in told for name in SECRETS)
    assert SAID.encode() not in told
    for pid in (killed := cluster.executors()):
        os.kill(pid, signal.SIGKILL)
    found.append(next(made))
    (scratch,) = tmp_path.glob("dpal-spark-*")
    everything = written(cluster.local, cluster.work, scratch)
    assert [path for path, content in everything.items() if SAID.encode() in content] == []
    found.extend(made)
    assert len(found) == BATCHES
    assert all(one.equals(other) for one, other in zip(found, expected, strict=True))
    assert not any(map(command_line, killed))
    assert list(tmp_path.glob("dpal-spark-*")) == []
    assert host.wait_until(lambda: not cluster.executors(), PATIENCE_SECONDS, 0.1)
    assert not drivers()


@needs_spark
@pytest.mark.faults
def test_a_killed_driver_is_started_anew_and_then_the_host_goes_on(cluster, monkeypatch, caplog):
    configure(monkeypatch, cluster.configuration("killed", **{"spark.cores.max": 2}))
    expected, killed = by_one_host(), []

    def kill():
        killed.extend(pid for pid in drivers() if pid not in killed)
        os.kill(killed[-1], signal.SIGKILL)

    found = []
    for batch in SparkBatches(cluster.address, NoHost()).made(STEP, texts()):
        found.append(batch)
        if len(found) == 5:
            kill()
    assert all(one.equals(other) for one, other in zip(found, expected, strict=True))
    assert len(killed) == 1
    assert caplog.text.count("ended without an answer") == 1
    # One that is closed early ends with all that it started.
    made = SparkBatches(cluster.address, NoHost()).made(STEP, texts())
    next(made)
    made.close()
    assert not drivers()
    assert host.wait_until(lambda: not cluster.executors(), PATIENCE_SECONDS, 0.1)


@needs_spark
@pytest.mark.faults
def test_a_step_that_fails_is_told_by_its_class(cluster, monkeypatch, caplog):
    configure(monkeypatch, cluster.configuration("failing", **{"spark.cores.max": 1}))
    monkeypatch.setattr(batches, "TRIES", 1)
    step = BatchStep("learner.features.batches:vectors_of", '{"kind": "words of a row"}')
    with pytest.raises(EngineFailed, match="ValueError"):
        list(SparkBatches(cluster.address, Crew(1)).made(step, iter([numbers(1)])))
    assert "The work on the rows failed: ValueError." in caplog.text
    logs = b"".join(written(cluster.work).values())
    assert b"step failed with ValueError" in logs
    assert b"words of a row" not in logs
