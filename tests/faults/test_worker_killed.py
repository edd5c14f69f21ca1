import os
import signal
import time
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command

from annotation.models import Query, WorkState
from annotation.work.services import jobs
from learner.models import ModelRelease, Round, TrainingRun
from learner.releases.artifacts.files import verify_manifest
from learner.rounds.services import loop
from tests import learning
from tests.counting import new_counter
from tests.factories import make_user

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
LEASE_SECONDS = 1
KILLS = 3
PATIENCE_SECONDS = 90


@pytest.fixture
def quick_leases(monkeypatch, settings, tmp_path) -> None:
    """Let lost work be taken over after a second; the worker reads the same numbers from its environment."""
    monkeypatch.setenv("WORK_LEASE_SECONDS", str(LEASE_SECONDS))
    monkeypatch.setenv("LEDGER_COUNTER_PATH", str(tmp_path / "ledger-counter.json"))
    settings.WORK_LEASE_SECONDS = LEASE_SECONDS
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)


def somebody_works(project) -> bool:
    return any(
        model.objects.filter(project=project, state=WorkState.RUNNING).exists() for model in (Round, TrainingRun)
    )


@pytest.mark.slow
def test_a_worker_killed_again_and_again_ends_where_it_would_have(quick_leases, supervisor):
    project = learning.open_trusted(make_user(), pool_epsilon=60.0)
    learning.fill_trusted(project)
    annotator = make_user()
    supervisor.start_worker(concurrency=1)
    kills = 0
    end = time.monotonic() + PATIENCE_SECONDS
    while not ModelRelease.objects.filter(project=project, version=3).exists():
        assert time.monotonic() < end, "the loop has stopped"
        jobs.resend_stalled_work()
        loop.advance_projects()
        learning.label_everything(project, annotator)
        while kills < KILLS and somebody_works(project):
            os.kill(supervisor.pid("worker"), signal.SIGKILL)
            supervisor.restart("worker")
            kills += 1
        time.sleep(0.005)
    assert kills >= 1
    assert list(ModelRelease.objects.order_by("version").values_list("version", "labels_used")) == [
        (1, 12),
        (2, 24),
        (3, 36),
    ]
    assert Query.objects.filter(project=project).count() == 36
    assert learning.open_reservations(project) == 0
    for release in ModelRelease.objects.all():
        assert verify_manifest(Path(default_storage.path(release.folder))) == release.digests
    call_command("audit_ledger", stdout=StringIO())
