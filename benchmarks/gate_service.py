"""Whole service of a gate by every engine, beside DuckDB and Spark: real Postgres, a real worker, seeded coins.

Run: python benchmarks/gate_service.py [--rows N ...] [--write]

Limits: the same bytes from every engine; from 10 M records on at most .2 core seconds a million in process and at most
3 times DuckDB's; memory at the most rows at most 1.3 times that at a million and what all different texts take. Option
`--write` puts figures and tables into docs/results.
"""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
from _embedded import own_site
from _gate_data import BATCH_ROWS, RATE, VOCABULARY, Data, K
from _gate_report import COUNTED_BYTES, different, engine_table, write_section
from _processes import Usage, processor_seconds
from _seeded_worker import FOLDER_PREFIX

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
EXECUTORS = (2, 4)
CORE_SECONDS_LIMIT, DUCKDB_LIMIT, LIMITS_FROM_ROWS = 0.2, 3.0, 10_000_000
MEMORY_LIMIT, MEMORY_FROM_ROWS = 1.3, 1_000_000
GIVE_UP_SECONDS = 1800
MILLION = 10**6
WITHOUT_SPARK = [
    name for name, found in (("pyspark", find_spec("pyspark")), ("Java", shutil.which("java"))) if not found
]
# A cluster as the manual has it: encrypted between processes and on disk.
SPARK_SETTINGS = """
spark.authenticate true
spark.authenticate.secret {secret}
spark.network.crypto.enabled true
spark.io.encryption.enabled true
spark.executor.cores 1
spark.executor.memory 640m
spark.driver.memory 640m
"""
Cell = dict[str, Any]


def master_of(executors: int) -> str:
    return f"local-cluster[{executors},1,640]" if executors else ""


class Bench:
    def __init__(self, folder: Path) -> None:
        from django.contrib.auth.models import User
        from django.core.files.storage import default_storage

        self.folder, self.projects = folder, 0
        self.owner = User.objects.create_user("owner")
        self.storage = Path(default_storage.location)
        # The first line of a cluster's pid file is its first process.
        self.postmaster = int(next(folder.rglob("postmaster.pid")).read_text().split()[0])
        (folder / "spark").mkdir()
        configuration = folder / "spark" / "spark-defaults.conf"
        configuration.touch(mode=0o600)
        configuration.write_text(SPARK_SETTINGS.format(secret=secrets.token_hex(16)))
        self.told = os.environ | {"SPARK_CONF_DIR": str(configuration.parent), "SPARK_LOCAL_IP": "127.0.0.1"}
        self.told |= {"PYSPARK_PYTHON": sys.executable, "SPARK_WORKER_DIR": str(folder / "executors")}

    def project(self) -> Any:
        from annotation.projects.services import opening

        self.projects += 1
        return opening.create_project(
            name=f"benchmark {self.projects}",
            preset="voice-crowd",
            owner=self.owner,
            data_kind="text",
            classes=["yes", "no"],
            question="Which?",
            privacy_unit="record",
            texts_per_contributor=None,
            gate_kind="k_anonymity",
            gate_k=K,
            gate_sampling_rate=RATE,
            gate_epsilon=1.0,
            pool_epsilon=20.0,
            pool_delta=0.4,
        )

    def imported(self, path: Path) -> tuple[Any, Cell]:
        from django.core.files import File

        from annotation.data.services import datasets
        from dpal_site.celery import app

        with path.open("rb") as stream:
            dataset = datasets.receive_upload(
                project=self.project(),
                file=File(stream),
                name=path.name,
                mapping={"text": "text", "contributor": "contributor"},
                confirm_few=True,
                send=False,
            )
        with self.costs(os.getpid()) as found:
            datasets.import_dataset(job_id=dataset.job_id)
        # Its own gate waits for no worker: every engine has a pool of its own.
        app.control.purge()
        dataset.refresh_from_db()
        stored = sum((self.storage / part.file).stat().st_size for part in dataset.pool_parts.all())
        return dataset, found | {"upload_bytes": path.stat().st_size, "stored_bytes": stored}

    def copied(self, source: Any) -> Any:
        from annotation.data.services import pool_files
        from annotation.models import Dataset, DatasetState, Job, WorkState

        project = self.project()
        read = Job.objects.create(project=project, kind="import", state=WorkState.DONE, finished_at=datetime.now(UTC))
        dataset = Dataset.objects.create(project=project, name="queries", job=read, in_columns=True)
        written = []
        for part in source.pool_parts.order_by("number"):
            name = f"{part.file.removesuffix('.parquet')}-{dataset.pk}.parquet"
            os.link(self.storage / part.file, self.storage / name)
            written.append(pool_files.WrittenFile(name, part.sha256, part.row_count, part.named))
        pool_files.note_parts(dataset, written)
        dataset.state, dataset.row_count = DatasetState.READY, source.row_count
        dataset.save(update_fields=["state", "row_count"])
        return dataset

    @contextmanager
    def costs(self, root: int, every: float = 0.1) -> Iterator[Cell]:
        found: Cell = {}
        postgres, start = processor_seconds(self.postmaster), time.perf_counter()
        with Usage(root, every=every) as usage:
            yield found
            found["wall_seconds"] = round(time.perf_counter() - start, 2)
        found |= {
            "processor_seconds": round(usage.processor_seconds, 2),
            "postgres_seconds": round(processor_seconds(self.postmaster) - postgres, 2),
            "process_mib": round(usage.largest_mib, 1),
            "together_mib": round(usage.together_mib, 1),
        }

    def gated(self, source: Any, executors: int) -> Cell:
        from annotation.gates import services as gates
        from dpal_site.celery import app

        dataset = self.copied(source)
        # Rounds of the projects before are none of this gate's work.
        app.control.purge()
        load = os.getloadavg()[0]
        command = [sys.executable, "benchmarks/_seeded_worker.py", "worker", "--concurrency", "1"]
        told = self.told | {"DPAL_ADDONS": "spark", "SPARK_MASTER": master_of(executors), "PYTHONPATH": "."}
        log = self.folder / "worker.log"
        with log.open("ab") as output:
            options = {"stdout": output, "stderr": output, "env": told}
            worker = subprocess.Popen([*command, "--without-gossip", "--without-mingle"], **options)
        try:
            # A worker that has answered once has loaded everything.
            wait_for_worker()
            with self.costs(worker.pid, 0.5 if executors else 0.1) as found:
                job = gates.start_gate(dataset=dataset)
                wait_for(job)
        except Exception:
            sys.stderr.write(log.read_text()[-4000:])
            raise
        finally:
            worker.terminate()
            worker.wait()
        return found | outcome(dataset, job) | {"load": round(load, 2)}


def outcome(dataset: Any, job: Any) -> Cell:
    from annotation.models import GateRun

    run = GateRun.objects.select_related("committed_entry", "reservation").get(dataset=dataset, state="committed")
    ready = run.reservation.created_at - job.started_at
    return {
        "passed": run.passed_count,
        "digest": run.committed_entry.output_digest,
        # Two clocks: of the worker, and of the database.
        "ready_seconds": max(0.0, round(ready.total_seconds(), 2)),
    }


def wait_for(job: Any) -> None:
    start = time.perf_counter()
    while job.finished_at is None:
        if time.perf_counter() - start > GIVE_UP_SECONDS:
            raise TimeoutError("the gate did not end")
        time.sleep(0.1)
        job.refresh_from_db()
    if job.state != "done":
        raise RuntimeError(job.error)


def wait_for_worker() -> None:
    from celery import current_app

    end = time.monotonic() + GIVE_UP_SECONDS
    while not current_app.control.ping(timeout=1.0):
        if time.monotonic() > end:
            raise TimeoutError("no worker answers")


def counted_by(bench: Bench, folder: Path, engine: str, executors: int = 0) -> Cell:
    command = [sys.executable, "-W", "ignore", "benchmarks/_gate_peers.py", engine, str(folder), str(K)]
    command += [master_of(executors)] * bool(executors)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=bench.told)
    with Usage(process.pid, every=0.1) as usage:
        said, complaint = process.communicate()
    if process.returncode:
        raise RuntimeError(complaint[-4000:])
    found = {name: round(value, 2) for name, value in json.loads(said.splitlines()[-1]).items()}
    return {"processor_seconds": round(usage.processor_seconds, 2), "together_mib": round(usage.together_mib)} | found


def write_csv(data: Data, rows: int, path: Path) -> None:
    with pa_csv.CSVWriter(path, schema=data.batch(0).schema) as writer:
        for number in range(-(-rows // BATCH_ROWS)):
            writer.write_batch(data.batch(number).slice(0, min(BATCH_ROWS, rows - number * BATCH_ROWS)))


def measure(folder: Path, sizes: list[int]) -> Cell:
    started = time.monotonic()
    bench, data = Bench(folder), Data(VOCABULARY)
    engines = [0] if WITHOUT_SPARK else [0, *EXECUTORS]
    report: Cell = {"cores": os.cpu_count(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    report |= {"k": K, "sampling_rate": RATE, "imports": [], "cells": [], "peers": [], "left_out": []}
    report["texts"] = VOCABULARY
    report["text_bytes"] = len("".join(data.texts.to_pylist())) / len(data.texts)
    if WITHOUT_SPARK:
        report["left_out"].append(f"Spark, for want of {' and '.join(WITHOUT_SPARK)}")
    if not find_spec("duckdb"):
        report["left_out"].append("DuckDB, for want of duckdb")
    for rows in sizes:
        path = folder / "rows.csv"
        write_csv(data, rows, path)
        source, brought = bench.imported(path)
        report["imports"].append(brought | {"rows": rows})
        pool = (bench.storage / source.pool_parts.first().file).parent
        # Links of earlier engines lie beside the files: the peers come first.
        if find_spec("duckdb"):
            report["peers"].append(counted_by(bench, pool, "duckdb") | {"rows": rows, "name": "duckdb", "executors": 0})
        for executors in engines[1:]:
            counted = counted_by(bench, pool, "spark", executors)
            report["peers"].append(counted | {"rows": rows, "name": "spark", "executors": executors})
        for executors in engines:
            found = bench.gated(source, executors)
            report["cells"].append({"rows": rows, "executors": executors} | found)
            print(f"{rows:,} rows, {executors} executors: {json.dumps(found)}", file=sys.stderr, flush=True)
    report["seconds"] = round(time.monotonic() - started)
    return report


def broken_limits(report: Cell) -> list[str]:
    broken = [f"{rows:,} rows: engines let different texts out" for rows in different(report)]
    found = {(peer["rows"], peer["frequent"]) for peer in report["peers"]}
    if len(found) > len({rows for rows, _ in found}):
        broken.append("peers count differently")
    alone = sorted((cell for cell in report["cells"] if not cell["executors"]), key=lambda cell: cell["rows"])
    most = alone[-1]
    # Fewer rows fill neither a file's groups nor the tables that are merged.
    fewest = next((cell for cell in alone if cell["rows"] >= MEMORY_FROM_ROWS), most)
    texts_mib = report["texts"] * (report["text_bytes"] + COUNTED_BYTES) / 2**20
    if most["process_mib"] > MEMORY_LIMIT * fewest["process_mib"] + texts_mib:
        broken.append(
            f"{most['process_mib']} MiB at {most['rows']:,} rows, more than {MEMORY_LIMIT} times the"
            f" {fewest['process_mib']} at {fewest['rows']:,} and {texts_mib:.0f} for all texts there are"
        )
    if most["rows"] < LIMITS_FROM_ROWS:
        return broken
    used = most["processor_seconds"] + most["postgres_seconds"]
    if (each := used / most["rows"] * MILLION) > CORE_SECONDS_LIMIT:
        broken.append(
            f"{each:.2f} core seconds a million at {most['rows']:,} rows, where {CORE_SECONDS_LIMIT} is the limit"
        )
    for peer in report["peers"]:
        named = (peer["name"], peer["rows"]) == ("duckdb", most["rows"])
        if named and used > DUCKDB_LIMIT * peer["processor_seconds"]:
            broken.append(f"{used / peer['processor_seconds']:.1f} times DuckDB")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--write", action="store_true", help="write docs/results/gate_service.json and gate_service.md")
    arguments = parser.parse_args()
    # A hundred million records are one file.
    with own_site(FOLDER_PREFIX, UPLOAD_MAX_BYTES=str(2**33)) as folder:
        report = measure(folder, sorted(arguments.rows))
    report["broken"] = broken_limits(report)
    print(json.dumps(report, indent=1))
    print(engine_table(report))
    if arguments.write:
        write_section(report)
    for line in report["broken"]:
        print(f"Broken: {line}", file=sys.stderr)
    return int(bool(report["broken"]))


if __name__ == "__main__":
    sys.exit(main())
