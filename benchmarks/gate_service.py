"""Pass 5 M records through a project's gate: real Postgres, real workers, one and two of them, beside a GROUP BY.

Run: python benchmarks/gate_service.py [--rows N] [--unit record|contributor]

The queries are those of `benchmarks/gate.py`. They are copied into the records of a crowd project, once for each run,
and the job is sent to Celery workers as an upload sends it: reservation, reading, stages, commit with the questions.
The peer is Postgres itself, `GROUP BY text HAVING count(*) >= k` over the same records, which neither samples,
normalises, caps nor pays. Load on the machine is printed, for it moves wall seconds; memory it does not move.

Limits: a worker's memory at N rows at most 1.3 times that at N / 2, and two workers not slower than one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gate import BATCH_ROWS, CAP, RATE, VOCABULARY, Data, K

CELERY = (sys.executable, "-m", "celery", "-A", "dpal_site.celery:app")
MEMORY_LIMIT, WORKERS_LIMIT = 1.3, 1.05
GIVE_UP_SECONDS = 1800
EPSILON = {"record": 1.0, "contributor": 0.5}


class Memory:
    """The largest memory of its own that any process under one process has held, looked at every so many seconds."""

    def __init__(self, root: int, *, every: float = 0.1) -> None:
        self.largest_mib = 0.0
        self._root, self._every, self._stop = root, every, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            for pid in under(self._root):
                try:
                    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                except (FileNotFoundError, ProcessLookupError, PermissionError):
                    continue
                held = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
                self.largest_mib = max(self.largest_mib, held / 1024)


def under(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def open_upload(project: Any, data: Data, rows: int) -> Any:
    """Copy the queries into the records of an upload, as if it had been read."""
    from django.db import connection

    from annotation.models import Dataset, DatasetState, Job, WorkState

    read = Job.objects.create(project=project, kind="import", state=WorkState.DONE, finished_at=datetime.now(UTC))
    dataset = Dataset.objects.create(
        project=project, name="queries", role="pool", job=read, state=DatasetState.READY, row_count=rows
    )
    columns = "dataset_id, row_number, text, contributor"
    with connection.cursor() as cursor, cursor.copy(f"COPY annotation_record ({columns}) FROM STDIN") as copy:
        for number in range(rows // BATCH_ROWS):
            batch = data.batch(number)
            first = number * BATCH_ROWS
            texts, people = (batch.column(name).to_pylist() for name in ("text", "contributor"))
            lines = (
                f"{dataset.pk}\t{first + place}\t{text}\t\\\\x{int(person):032x}\n"
                for place, (text, person) in enumerate(zip(texts, people, strict=True))
            )
            copy.write("".join(lines))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE annotation_record")
    return dataset


def grouped_seconds(dataset: Any) -> float:
    """Time the peer."""
    from django.db import connection

    statement = (
        "SELECT count(*) FROM (SELECT text FROM annotation_record WHERE dataset_id = %s"
        " GROUP BY text HAVING count(*) >= %s) frequent"
    )
    start = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(statement, [dataset.pk, K])
        cursor.fetchone()
    return time.perf_counter() - start


def gated(dataset: Any, log: Path, workers: int) -> dict[str, float]:
    """Send the job of an upload to that many workers and wait until it is done."""
    from annotation.gates.services import gate
    from annotation.models import GateRun

    command = [*CELERY, "worker", "--concurrency", str(workers), "--without-gossip", "--without-mingle"]
    with log.open("ab") as output:
        worker = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        # A worker that has answered once has loaded everything.
        wait_for_worker()
        with Memory(worker.pid) as memory:
            start = time.perf_counter()
            job = gate.start_gate(dataset=dataset)
            assert job is not None
            while job.finished_at is None:
                if time.perf_counter() - start > GIVE_UP_SECONDS:
                    raise TimeoutError("the gate did not end")
                time.sleep(0.1)
                job.refresh_from_db()
            seconds = time.perf_counter() - start
    finally:
        worker.terminate()
        worker.wait()
    if job.state != "done":
        raise RuntimeError(job.error)
    passed = GateRun.objects.get(dataset=dataset, state="committed").passed_count
    return {"wall_seconds": round(seconds, 2), "worker_mib": round(memory.largest_mib, 1), "passed": passed or 0}


def wait_for_worker() -> None:
    """Return once a worker answers."""
    from celery import current_app

    end = time.monotonic() + 120
    while not current_app.control.ping(timeout=1.0):
        if time.monotonic() > end:
            raise TimeoutError("no worker answers")


def measure(rows: int, unit: str, folder: Path) -> dict[str, Any]:
    """Run N / 2 and N rows with one worker, and N rows with two."""
    from django.contrib.auth.models import User

    from annotation.projects.services import projects

    project = projects.create_project(
        name="benchmark",
        preset="voice-crowd",
        owner=User.objects.create_user("owner"),
        data_kind="text",
        classes=["yes", "no"],
        question="Which?",
        privacy_unit=unit,
        texts_per_contributor=CAP if unit == "contributor" else None,
        gate_kind="k_anonymity",
        gate_k=K if unit == "record" else 30,
        gate_sampling_rate=RATE,
        gate_epsilon=EPSILON[unit],
        pool_epsilon=20.0,
        pool_delta=0.4,
    )
    data = Data(VOCABULARY)
    report: dict[str, Any] = {"rows": rows, "unit": unit, "load_before": os.getloadavg()[0]}
    for name, size, workers in (("half", rows // 2, 1), ("one_worker", rows, 1), ("two_workers", rows, 2)):
        dataset = open_upload(project, data, size)
        print(f"{size:,} records are copied, {workers} worker(s) begin", file=sys.stderr, flush=True)
        found = gated(dataset, folder / "worker.log", workers)
        report[name] = found | {"rows_per_second": round(size / found["wall_seconds"])}
    report["group_by_seconds"] = round(grouped_seconds(dataset), 2)
    report["load_after"] = os.getloadavg()[0]
    report["times_the_group_by"] = round(report["one_worker"]["wall_seconds"] / report["group_by_seconds"], 2)
    report["memory_at_n_over_half"] = round(report["one_worker"]["worker_mib"] / report["half"]["worker_mib"], 2)
    report["two_workers_over_one"] = round(
        report["two_workers"]["wall_seconds"] / report["one_worker"]["wall_seconds"], 2
    )
    return report


def main() -> int:
    """Measure, print one JSON object, and return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--unit", choices=("record", "contributor"), default="record")
    arguments = parser.parse_args()
    for name in ("DATABASE_URL", "CELERY_BROKER_URL", "STORAGE_URL"):
        os.environ.pop(name, None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
    with tempfile.TemporaryDirectory(prefix="dpal-gate-") as folder:
        Path(folder).chmod(0o711)
        os.environ["DPAL_VAR"] = folder
        import django
        from django.core.management import call_command
        from django.db import connections

        from dpal_site.embedded import servers

        try:
            django.setup()
            call_command("prepare_database", verbosity=0, skip_checks=True)
            report = measure(arguments.rows, arguments.unit, Path(folder))
        finally:
            connections.close_all()
            servers.stop_started()
    print(json.dumps(report, indent=2))
    return int(report["memory_at_n_over_half"] > MEMORY_LIMIT or report["two_workers_over_one"] > WORKERS_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
