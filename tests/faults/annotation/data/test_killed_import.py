import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection

from annotation.data.services import datasets
from annotation.models import Dataset, Job, Record
from tests.factories import make_project

ROWS = 300_000
REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.fixture
def import_process(transactional_db, embedded_servers, broker, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("id,text\n" + "".join(f'{n},"row {n}\n of many"\n' for n in range(ROWS)))
    environment = os.environ | {
        "DATABASE_URL": embedded_servers.database_url,
        "CELERY_BROKER_URL": broker,
        "SECRET_KEY": settings.SECRET_KEY,
        "PSEUDONYM_KEY": settings.PSEUDONYM_KEY,
        "SIGNING_KEY": settings.SIGNING_KEY,
        "WORK_LEASE_SECONDS": "2",
    }
    started = []

    def start(project):
        command = [sys.executable, "manage.py", "import_dataset", str(file), "--project", project.slug]
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=log, stderr=log)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def copying():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_progress_copy WHERE tuples_processed > %s", [ROWS // 3])
        return cursor.fetchone() == (1,)


@pytest.mark.slow
@pytest.mark.faults
def test_a_killed_import_leaves_nothing_and_is_done_once_by_the_next(import_process):
    project = make_project()
    process = import_process(project)
    wait_until(copying)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL

    dataset, job = Dataset.objects.get(), Job.objects.get()
    assert (dataset.state, job.state, job.attempt) == ("receiving", "running", 1)
    assert not Record.objects.exists()
    assert default_storage.exists(dataset.upload.name)

    def done():
        datasets.import_dataset(job_id=job.pk)
        job.refresh_from_db()
        return job.state == "done"

    wait_until(done)
    dataset.refresh_from_db()
    assert (dataset.state, dataset.row_count, job.attempt) == ("ready", ROWS, 2)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), count(DISTINCT row_number), max(row_number) FROM annotation_record")
        assert cursor.fetchone() == (ROWS, ROWS, ROWS - 1)
    assert dataset.upload.name == ""
