import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
import yaml

from addons.spark.engine import SparkEngine
from annotation.data.services import pool_files
from annotation.gates import services as gates
from annotation.models import GateRun, Job, Query
from dpal_site.embedded import host
from dpal_site.embedded.servers import REPOSITORY
from tests.db.annotation.gates.test_scan import know_the_coins, spends
from tests.faults.storm.site import descendants
from tests.gate_scans import crowd, passed, upload
from tests.spark_cluster import PATIENCE_SECONDS, block, command_line, needs_spark

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True), needs_spark]
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
FILE_ROWS = 20


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(pool_files, "PART_ROWS", FILE_ROWS)


def pointed_at(cluster, executors, monkeypatch, settings):
    told = cluster.configuration(f"{executors} executors, {os.urandom(4).hex()}", **{"spark.cores.max": executors})
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    settings.SPARK_MASTER = cluster.address


def struck(monkeypatch, strike):
    counted = SparkEngine.counted

    def counting(engine, gate, files, *, key, tell):
        def told(read):
            if read:
                strike()
            tell(read)

        return counted(engine, gate, files, key=key, tell=told)

    monkeypatch.setattr(SparkEngine, "counted", counting)


def drivers():
    return [pid for pid in descendants(os.getpid()) if b"addons.spark.driver" in command_line(pid)]


@pytest.mark.parametrize("executors", [2, 4])
def test_every_executor_is_killed_once_and_the_bytes_are_the_same(cluster, monkeypatch, settings, executors):
    know_the_coins(monkeypatch)
    alone = passed(upload(crowd()))
    pointed_at(cluster, executors, monkeypatch, settings)
    killed: set[int] = set()

    def strike():
        if len(killed) < executors:
            for pid in cluster.executors():
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)

    struck(monkeypatch, strike)
    dataset = upload(crowd())
    assert passed(dataset) == alone
    assert len(killed) >= executors
    assert spends(dataset) == ["reserve", "commit"]


@pytest.mark.parametrize("executors", [2, 4])
def test_a_driver_killed_while_it_counts_is_charged_once_and_the_next_lets_the_same_out(
    cluster, monkeypatch, settings, executors
):
    know_the_coins(monkeypatch)
    alone = passed(upload(crowd()))
    pointed_at(cluster, executors, monkeypatch, settings)
    dataset = upload(crowd())

    def strike():
        for pid in drivers():
            os.kill(pid, signal.SIGKILL)

    with monkeypatch.context() as patch:
        struck(patch, strike)
        gates.run_gate(job_id=dataset.gate_job_id)
    assert Job.objects.get(pk=dataset.gate_job_id).state == "failed"
    assert spends(dataset) == ["reserve", "charge"]
    assert not Query.objects.filter(project=dataset.project).exists()
    assert host.wait_until(lambda: not cluster.executors(), PATIENCE_SECONDS, 0.1)
    # Charged once: taken up again, the job is over, and pays no more.
    gates.run_gate(job_id=dataset.gate_job_id)
    assert spends(dataset) == ["reserve", "charge"]
    gates.run_gate(job_id=gates.start_gate(dataset=dataset).pk)
    run = GateRun.objects.get(dataset=dataset, state="committed")
    assert run.committed_entry.output_digest == alone[0]
    assert spends(dataset) == ["reserve", "charge", "reserve", "commit"]


def test_the_manuals_lines_and_the_compose_file_point_a_site_at_it(cluster, monkeypatch, supervisor):
    """The site's worker starts by the line of the page; its job's driver reads what the compose file mounts."""
    (line,) = block("spark-site")
    settings, *command = shlex.split(line.replace("$MASTER", "127.0.0.1").replace("$PORT", str(cluster.port)))
    name, _, master = settings.partition("=")
    assert name in COMPOSE["services"]["worker"]["environment"]
    folder = Path(cluster.configuration("site")["SPARK_CONF_DIR"])
    (folder / "spark-defaults.conf").rename(folder / "spark_defaults")
    submit = COMPOSE["services"]["worker"]["environment"]["PYSPARK_SUBMIT_ARGS"]
    told = {
        name: master,
        "PYSPARK_SUBMIT_ARGS": submit.replace("/run/secrets", str(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    monkeypatch.setattr("tests.db.annotation.gates.test_scan.TEXTS", ["said by many"] * 2000)
    dataset = upload(crowd())
    job = Job.objects.get(pk=dataset.gate_job_id)
    supervisor.start("worker", [str(Path(sys.executable).parent / command[0]), *command[1:]], told)
    seen: set[int] = set()

    def ended():
        seen.update(cluster.executors())
        job.refresh_from_db()
        return job.finished_at is not None

    assert host.wait_until(ended, 2 * PATIENCE_SECONDS, 0.2), supervisor.log_path("worker").read_text()[-4000:]
    assert (job.state, job.error) == ("done", "")
    assert GateRun.objects.get(dataset=dataset).state == "committed"
    assert spends(dataset) == ["reserve", "commit"]
    assert seen
