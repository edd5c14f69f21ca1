"""The site of `benchmarks/scale.py`: its workers, what goes through them, and what each stage of it costs and makes."""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _gate_data import RATE, Data, K
from _processes import Memory, processor_seconds
from gate_service import GIVE_UP_SECONDS, wait_for_worker

DIMENSION, ASKED, START_ROWS = 32, 100, 1000
Cell = dict[str, Any]


class Costs:
    """Wall seconds, processor seconds of workers and of Postgres, and broker messages of one block.

    What a worker begins by itself is counted from the end of the block before, `since`.
    """

    def __init__(self, worker: int, postmaster: int, broker: Any, since: "Costs | None" = None) -> None:
        self._worker, self._postmaster, self._broker, self._since = worker, postmaster, broker, since

    def __enter__(self) -> "Costs":
        self._memory = Memory(self._worker)
        self._memory.__enter__()
        self._before = self._since._after if self._since else self._now()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.wall = time.perf_counter() - self._start
        self._after = self._now()
        worker, postgres, messages = (after - before for after, before in zip(self._after, self._before, strict=True))
        self._memory.__exit__()
        self.found = {
            "wall_seconds": round(self.wall, 3),
            "worker_cpu_seconds": round(worker, 2),
            "postgres_cpu_seconds": round(postgres, 2),
            "worker_mib": round(self._memory.largest_mib, 1),
            "messages": int(messages),
        }

    def _now(self) -> tuple[float, float, float]:
        pushed = self._broker.info("commandstats").get("cmdstat_lpush", {}).get("calls", 0)
        return processor_seconds(self._worker), processor_seconds(self._postmaster), pushed


class Bench:
    """One size and one number of workers after another, in the site of this run."""

    def __init__(self, folder: Path) -> None:
        import redis
        from django.conf import settings
        from django.contrib.auth.models import User

        self.folder = folder
        self.owner = User.objects.create_user("owner")
        self.broker = redis.Redis.from_url(settings.CELERY_BROKER_URL)
        # The first line of a cluster's pid file is its first process.
        self.postmaster = int(next(folder.rglob("postmaster.pid")).read_text().split()[0])
        self.projects = 0
        self.last: Costs

    def project(self, preset: str, **settings: Any) -> Any:
        from annotation.projects.services import opening

        self.projects += 1
        return opening.create_project(
            name=f"scale {self.projects}",
            preset=preset,
            owner=self.owner,
            data_kind="text",
            classes=["music", "other"],
            question="Which?",
            **settings,
        )

    def run(self, path: Path, workers: int) -> dict[str, Cell]:
        """Take a file through all stages with so many workers."""
        command = [sys.executable, "benchmarks/_seeded_worker.py", "worker", "--concurrency", str(workers)]
        with (self.folder / "worker.log").open("ab") as output:
            worker = subprocess.Popen([*command, "--without-gossip", "--without-mingle"], stdout=output, stderr=output)
        try:
            wait_for_worker()
            self.worker = worker.pid
            # A worker that has worked once has loaded everything.
            self.upload(self.trusted(), self.starting_file(), "public_start")
            dataset, stages = self.crowd_stages(path)
            return stages | self.trusted_stages(dataset)
        except Exception:
            sys.stderr.write((self.folder / "worker.log").read_text()[-4000:])
            raise
        finally:
            worker.terminate()
            worker.wait()
            forget_rows()

    def costs(self, since: Costs | None = None) -> Costs:
        return Costs(self.worker, self.postmaster, self.broker, since)

    def trusted(self) -> Any:
        return self.project(
            "pool-experts",
            selection="top_c",
            estimator="logistic",
            round_size=ASKED,
            labels_per_release=ASKED,
            feature_dimension=DIMENSION,
            training_epsilon=2.0,
            training_delta=0.0,
            selection_epsilon=0.25,
            pool_epsilon=20.0,
            pool_delta=0.0,
            maximum_releases=3,
        )

    def starting_file(self) -> Path:
        """Write the public examples that the first model is learned from."""
        path = self.folder / "start.csv"
        texts = Data(START_ROWS).texts.to_pylist()
        path.write_text("text,label\n" + "".join(f"{t},{'music' if 'music' in t else 'other'}\n" for t in texts))
        return path

    def upload(self, project: Any, path: Path, role: str = "pool", **mapping: str) -> Any:
        """Hand a file in and wait until a worker has read it."""
        from django.core.files import File

        from annotation.data.services import datasets

        with path.open("rb") as stream:
            names = {"text": "text"} | ({"label": "label"} if role == "public_start" else {}) | mapping
            dataset = datasets.receive_upload(
                project=project, file=File(stream), name=path.name, role=role, mapping=names, send=False
            )
        with self.costs() as costs:
            send(dataset.job)
            wait_for(dataset.job)
        dataset.refresh_from_db()
        self.last = costs
        return dataset

    def crowd_stages(self, path: Path) -> tuple[Any, dict[str, Cell]]:
        """Import and gate."""
        from annotation.models import GateRun, Query
        from privacy.models import LedgerEntry

        project = self.project(
            "voice-crowd",
            privacy_unit="record",
            texts_per_contributor=None,
            gate_kind="k_anonymity",
            gate_k=K,
            gate_sampling_rate=RATE,
            gate_epsilon=1.0,
            pool_epsilon=20.0,
            pool_delta=0.4,
        )
        dataset = self.upload(project, path, contributor="contributor")
        imported = self.last.found
        # Its gate was opened in the transaction that stored the rows, and sent when that was committed. The import's
        # own end was written before its commit, so what a commit takes is in the import's seconds alone.
        with self.costs(self.last) as costs:
            wait_for(dataset.gate_job)
        dataset.gate_job.refresh_from_db()
        begun = min(dataset.gate_job.sent_at, dataset.gate_job.started_at)
        waited = dataset.gate_job.finished_at - begun
        imported |= {"digest": digest_of_rows(dataset), "rows": dataset.row_count} | table_bytes()
        run = GateRun.objects.get(dataset=dataset, state="committed")
        entries = LedgerEntry.objects.filter(account=project.pool_account).count()
        passed = Query.objects.filter(gate_run=run).count()
        gated = costs.found | {"digest": run.committed_entry.output_digest, "rows": dataset.row_count}
        gated["wall_seconds"] = round(waited.total_seconds(), 3)
        return dataset, {"import": imported, "gate": gated | {"passed": passed, "ledger_rows": entries}}

    def trusted_stages(self, dataset: Any) -> dict[str, Cell]:
        """Make features and ask, then score and ask once more."""
        from annotation.models import Dataset
        from annotation.work.services.sending import send_on_commit
        from learner.models import FeatureMatrix, Round
        from learner.pools.configuration import featurizer_of
        from learner.pools.keys import RUN_ROUND_TASK
        from learner.rounds.services import loop
        from privacy.models import LedgerEntry

        project = self.trusted()
        projects = type(project).objects.filter(pk=project.pk)
        projects.update(state="paused")
        self.upload(project, self.starting_file(), "public_start")
        hand_over(dataset, project)
        projects.update(state="active")
        with self.costs() as featured:
            loop.advance_project(project_id=project.pk)
            first = Round.objects.get(project=project)
            wait_for(first)
        # The crowd's project made features of what passed, under a version of its own.
        matrix = FeatureMatrix.objects.get(dataset=dataset, version=featurizer_of(project).version)
        projects.update(state="paused")
        entries = LedgerEntry.objects.filter(account=project.pool_account).count()
        second = Round.objects.create(project=project, number=2, strategy="top_c", requested=ASKED)
        with self.costs() as scored:
            send_on_commit(RUN_ROUND_TASK, round_id=second.pk)
            wait_for(second)
        if not Dataset.objects.filter(pk=dataset.pk, row_count=matrix.rows).exists():
            raise RuntimeError("the feature file has other rows than the upload")
        ledger_rows = LedgerEntry.objects.filter(account=project.pool_account).count() - entries
        self.matrix = Path(matrix.file.path)
        self.peer_score = product_seconds(self.matrix)
        asked, choice = digest_of_choice(first), digest_of_choice(second)
        return {
            "features": featured.found | {"rows": matrix.rows, "digest": f"{matrix.sha256}{asked}"},
            "score": scored.found | {"rows": matrix.rows, "digest": choice, "ledger_rows": ledger_rows},
        }


def hand_over(dataset: Any, project: Any) -> None:
    """Give an upload to another project: it saves reading a file again, and no rule of a site would allow it."""
    from django.db import connection, transaction

    from dpal_site.owner import as_owner

    with as_owner(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        type(dataset).objects.filter(pk=dataset.pk).update(project=project)


def send(job: Any) -> None:
    """Hand a job to a worker."""
    from annotation.work.services import jobs

    jobs.send_job(job_id=job.pk, kind=job.kind)


def wait_for(row: Any) -> None:
    """Return once a job or a round is done."""
    start = time.perf_counter()
    while row.finished_at is None:
        if time.perf_counter() - start > GIVE_UP_SECONDS:
            raise TimeoutError("the work did not end")
        time.sleep(0.02)
        row.refresh_from_db()
    if row.state != "done":
        raise RuntimeError(row.error)


def forget_rows() -> None:
    """Empty what the runs have filled; the next one begins with a small database again."""
    from django.db import connection, transaction

    from dpal_site.owner import as_owner

    with as_owner(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("TRUNCATE annotation_record, annotation_query CASCADE")


def table_bytes() -> Cell:
    """Return the size of the records and of their indexes."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_table_size('annotation_record'), pg_indexes_size('annotation_record')")
        table, indexes = cursor.fetchone()
    return {"table_bytes": table, "index_bytes": indexes}


def digest_of_rows(dataset: Any) -> str:
    """Digest all rows of an upload in their order, with numbers, and the report of bad ones."""
    from django.db import connection

    statement = (
        "SELECT md5(string_agg(one, '')) FROM (SELECT md5(string_agg(row_number || text || contributor::text, ''"
        " ORDER BY row_number)) AS one FROM annotation_record WHERE dataset_id = %s"
        " GROUP BY row_number / 10000 ORDER BY row_number / 10000) parts"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [dataset.pk])
        (digest,) = cursor.fetchone()
    return f"{digest}{json.dumps(dataset.bad_row_report)}"


def digest_of_choice(chosen: Any) -> str:
    """Digest which rows a round asked about."""
    from annotation.models import Query

    asked = Query.objects.filter(project=chosen.project, round_number=chosen.number, record__isnull=False)
    rows = sorted(asked.values_list("record__row_number", flat=True))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def timed(work: Callable[[], Any]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    work()
    return round(time.perf_counter() - start, 3)


def product_seconds(matrix: Path) -> float:
    """Time the peer of scoring: one product and one partition, in memory."""
    X = np.load(matrix)
    weights = np.ones(X.shape[1], dtype=np.float32)
    return timed(lambda: np.argpartition(np.abs(X @ weights), min(ASKED, len(X) - 1)))
