import os
import signal
import time
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connections

from annotation.data.services.streams import post_records
from annotation.models import Query, Record
from annotation.work.services import jobs
from learner.models import ModelRelease, Stream, StreamBatch
from learner.rounds.services import loop
from tests import learning, streaming
from tests.counting import new_counter
from tests.factories import make_user

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
RECORDS = 60
SETTINGS = {"selection": "all", "window_length": 5, "windows_ahead": 3, "updates_per_release": 4}
KILLS = 2
PATIENCE_SECONDS = 240


@pytest.fixture(autouse=True)
def quick_leases(monkeypatch, settings, tmp_path) -> None:
    """Let lost work be taken over after a second; processes started here read the same from their environment."""
    monkeypatch.setenv("WORK_LEASE_SECONDS", "1")
    monkeypatch.setenv("LEDGER_COUNTER_PATH", str(tmp_path / "ledger-counter.json"))
    settings.WORK_LEASE_SECONDS = 1
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)


def work_until(step, project):
    """Work in a process that dies at a step; return whether it did."""
    # The child must not speak over a connection of ours.
    connections.close_all()
    child = os.fork()
    if child == 0:
        os.environ["DPAL_FAULT_POINT"] = step
        try:
            streaming.work_off(project)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def check_whole(project):
    asked = list(Query.objects.filter(project=project).order_by("pk").values_list("priority", "round_number"))
    assert asked == [(slot, slot // 5 + 1) for slot in range(RECORDS)]
    assert Record.objects.filter(dataset__project=project).count() == RECORDS
    assert list(StreamBatch.objects.order_by("number").values_list("end", flat=True)) == list(range(5, RECORDS + 1, 5))
    stream = Stream.objects.get(project=project)
    assert (stream.next_slot, stream.batches_used, stream.batches_released) == (RECORDS, 12, 12)
    assert stream.learner_state["updates"] == 12
    assert list(ModelRelease.objects.order_by("version").values_list("version", flat=True)) == [1, 2, 3]
    assert [entry.mechanism for entry in learning.entries(project, "reserve")] == ["stream"]
    assert learning.open_reservations(project) == 0
    call_command("audit_ledger", stdout=StringIO())


@pytest.mark.slow
def test_a_death_at_any_step_changes_nothing():
    project = streaming.open_stream(make_user(), **SETTINGS)
    annotator = make_user()
    post_records(project=project, records=streaming.rows(RECORDS), key="once")
    assert work_until("stream_reserved", project)
    assert Stream.objects.get().entry is None
    for step in ("stream_examined", "stream_step"):
        assert work_until(step, project)
        assert not Query.objects.exists()
    for step in ("", "stream_updated", "stream_examined", "training_staged", "training_published"):
        assert work_until(step, project) == bool(step)
        post_records(project=project, records=streaming.rows(RECORDS), key="once")
        # The lease of a release that died lapses.
        time.sleep(1.1)
        streaming.work_off(project)
        streaming.answer(project, annotator)
    check_whole(project)


@pytest.mark.slow
def test_a_worker_killed_again_and_again_ends_where_it_would_have(supervisor):
    project = streaming.open_stream(make_user(), **SETTINGS)
    annotator = make_user()
    supervisor.start_worker(concurrency=2)
    post_records(project=project, records=streaming.rows(RECORDS))
    kills, seen = 0, 0
    end = time.monotonic() + PATIENCE_SECONDS
    while not ModelRelease.objects.filter(project=project, version=3).exists():
        assert time.monotonic() < end, "the stream has stopped"
        jobs.resend_stalled_work()
        loop.advance_projects()
        streaming.answer(project, annotator)
        moved = Query.objects.count() + StreamBatch.objects.count()
        if moved > seen and kills < KILLS:
            os.kill(supervisor.pid("worker"), signal.SIGKILL)
            supervisor.restart("worker")
            kills += 1
        seen = moved
        time.sleep(0.3)
    assert kills == KILLS
    check_whole(project)
