import contextlib
import os
import resource
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import redis
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from annotation.data.services import datasets
from annotation.models import Assignment, Dataset, Job, Label, Query, Record, Role
from annotation.people.services import members
from annotation.questions.services import labels, queue
from annotation.tasks import import_dataset_task
from annotation.work.services import broker as broker_service
from annotation.work.services import interruptions, jobs, tokens
from annotation.work.services.tokens import Scope
from dpal_site.celery import app
from dpal_site.embedded import host
from learner.models import ModelRelease, Round, TrainingRun
from learner.rounds.services import loop, training
from privacy.ledger.models import LedgerEntry
from tests import learning
from tests.factories import make_annotators, make_project, make_user, open_records, receive_upload
from tests.faults.storm.site import descendants

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_counter")]
ROOM_BYTES = 4096


@contextlib.contextmanager
def no_room_for_more_than(size):
    """Let no file of this process grow beyond `size` bytes, as on a full disk; the kernel refuses the write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def locked(url, table, mode="ACCESS EXCLUSIVE"):
    """Hold a table so that nobody else reads or writes it; with the mode EXCLUSIVE everybody reads."""
    with psycopg.connect(url) as other:
        other.execute(f"LOCK TABLE {table} IN {mode} MODE")
        yield
        other.rollback()


def bearer(user):
    scopes = [scope.value for scope in Scope]
    _, secret = tokens.create_token(user=user, name="t", scopes=scopes, lifetime=timedelta(days=1))
    return {"Authorization": f"Bearer {secret}"}


def left_behind():
    return [path for path in Path(default_storage.location).rglob("*") if path.name.startswith(".")]


def send(project, content=b"text\na\nb\n"):
    return receive_upload(project=project, file=ContentFile(content, name="rows.csv"), name="rows.csv")


def waiting():
    return broker_service.depths()["heavy"]


# A flushed broker.


def test_work_whose_message_was_lost_is_sent_again_and_no_more_than_that(broker, settings):
    settings.WORK_LEASE_SECONDS = 1
    send(make_project())
    assert waiting() == 1
    long_ago = Now() - timedelta(seconds=10)
    Job.objects.update(sent_at=long_ago)
    assert jobs.resend_stalled_work() == 0  # it is there, however long it waits
    with redis.Redis.from_url(broker) as client:
        client.flushdb()
    assert jobs.resend_stalled_work() == 1
    assert waiting() == 1


def test_rounds_and_trainings_whose_messages_were_lost_are_sent_again(broker):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    loop.advance_project(project_id=project.pk)
    chosen = Round.objects.get()
    with redis.Redis.from_url(broker) as client:
        client.flushdb()
    Round.objects.update(sent_at=timezone.now() - timedelta(minutes=1))
    jobs.resend_stalled_work()
    assert waiting() == 1
    jobs.resend_stalled_work()
    assert waiting() == 1
    loop.run_round(round_id=chosen.pk)
    learning.label_everything(project, make_user())
    loop.advance_project(project_id=project.pk)
    with redis.Redis.from_url(broker) as client:
        client.flushdb()
    TrainingRun.objects.update(sent_at=timezone.now() - timedelta(minutes=1))
    jobs.resend_stalled_work()
    assert waiting() == 1


# A full disk.


def test_an_upload_without_room_is_refused_and_leaves_nothing(broker, client):
    manager = make_user()
    project = make_project()
    members.add_member(project=project, user=manager, role=Role.MANAGER)
    address, headers = f"/api/v1/projects/{project.slug}/datasets", bearer(manager)
    rows = b"text\n" + b"row\n" * ROOM_BYTES
    with no_room_for_more_than(ROOM_BYTES):
        refused = client.post(address, {"file": ContentFile(rows, name="rows.csv")}, headers=headers)
    assert refused.status_code == 507
    assert "The disk is full" in refused.json()["detail"]
    assert int(refused["Retry-After"]) > 0
    assert not Dataset.objects.exists()
    folder = f"datasets/{project.pk}"
    left = default_storage.listdir(folder)[0] if default_storage.exists(folder) else []
    assert [file for each in left for file in default_storage.listdir(f"{folder}/{each}")[1]] == []
    taken = client.post(address, {"file": ContentFile(rows, name="rows.csv")}, headers=headers)
    assert taken.status_code == 202, taken.content


def test_a_training_without_room_fails_with_a_reason_and_the_next_one_succeeds():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    annotator = make_user()
    learning.work_off(project)
    learning.label_everything(project, annotator)
    loop.advance_project(project_id=project.pk)
    run = TrainingRun.objects.get()
    # Of processes that other tests killed.
    before = set(left_behind())
    with no_room_for_more_than(256), pytest.raises(OSError, match=r"File too large|Errno"):
        training.train_model(run_id=str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.error) == ("failed", interruptions.DISK_FULL)
    assert learning.open_reservations(project) == 0
    assert not ModelRelease.objects.exists()
    # It was seen before a row was read, so nothing is spent on it, and nothing of it lies about.
    assert not LedgerEntry.objects.filter(subject="release:1").exists()
    assert set(left_behind()) <= before
    for _ in range(3):
        learning.work_off(project)
        learning.label_everything(project, annotator)
    assert ModelRelease.objects.filter(project=project, version=1, state="released").exists()


def test_an_import_without_room_says_so_and_is_done_when_there_is_some(broker, settings):
    project = make_project(data_kind="image", image_height=8, image_width=8)
    header = "label," + ",".join(f"pixel_{n}" for n in range(64))
    row = "sport," + ",".join(["7"] * 64)
    dataset = receive_upload(
        project=project, file=ContentFile("\n".join([header, *[row] * 400]).encode(), name="rows.csv"), name="rows.csv"
    )
    with no_room_for_more_than(ROOM_BYTES), pytest.raises(OSError, match=r"File too large|Errno"):
        datasets.import_dataset(job_id=dataset.job_id)
    job = Job.objects.get()
    assert (job.state, job.error) == ("running", interruptions.DISK_FULL)
    assert not Record.objects.exists()
    Job.objects.update(leased_until=Now() - timedelta(minutes=10))
    datasets.import_dataset(job_id=dataset.job_id)
    job.refresh_from_db()
    assert (job.state, job.error, Record.objects.count()) == ("done", "", 400)


# Clocks that jump.


JUMPS = {
    "days behind": timedelta(days=-3),
    "an hour behind": timedelta(hours=-1),
    "an hour ahead": timedelta(hours=1),
    "days ahead": timedelta(days=3),
}


@pytest.fixture(params=JUMPS.values(), ids=JUMPS)
def clock_jumps(request, monkeypatch):
    """Return a function that moves this process's clock; the database keeps its own."""

    def jump():
        monkeypatch.setattr(timezone, "now", lambda: datetime.now(UTC) + request.param)

    return jump


def test_leases_tokens_and_keys_follow_the_databases_clock(clock_jumps, client, broker):
    project = make_project()
    open_records(project, 3)
    (person,) = make_annotators(project, 1)
    headers, key = bearer(person), str(uuid4())
    clock_jumps()
    claimed = client.post(f"/api/v1/projects/{project.slug}/assignments", headers=headers)
    assert claimed.status_code == 200, claimed.content
    assert queue.return_expired_leases() == 0
    address = f"/api/v1/assignments/{claimed.json()['id']}/label"
    answers = [
        client.post(address, {"choice": 0}, content_type="application/json", headers=headers | {"Idempotency-Key": key})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1]["Idempotency-Replayed"] == "true"
    assert Label.objects.count() == 1
    # A token that is made now lives as long as it says, by the clock that ends it.
    again = client.post(f"/api/v1/projects/{project.slug}/assignments", headers=bearer(person))
    assert again.status_code == 200


def test_work_is_taken_over_by_the_databases_clock(clock_jumps, broker, settings):
    project = make_project()
    clock_jumps()
    dataset = send(project)
    job = Job.objects.get()
    with redis.Redis.from_url(broker) as client:
        client.flushdb()
    # Whatever the writing process believed, it is neither too old nor not yet there.
    Job.objects.update(sent_at=None)
    assert jobs.resend_stalled_work() == 1
    datasets.import_dataset(job_id=job.pk)
    dataset.refresh_from_db()
    assert dataset.state == "ready"


def test_leases_that_a_jump_of_the_databases_clock_ends_lose_no_answer():
    project = make_project(overlap=1)
    open_records(project, 1)
    first, second = make_annotators(project, 2)
    held = queue.claim_next(project=project, user=first)
    Assignment.objects.update(leased_until=Now() - timedelta(hours=1))
    assert queue.return_expired_leases() == 1
    # The answer comes late and finds its question free.
    labels.submit_label(assignment=held, choice=1)
    assert queue.claim_next(project=project, user=second) is None
    assert (Label.objects.count(), Query.objects.get().state) == (1, "closed")


# A slow database.


def test_a_page_that_waits_too_long_says_so_and_comes_back(client, embedded_servers):
    client.raise_request_exception = False
    project = make_project()
    open_records(project, 2)
    (person,) = make_annotators(project, 1)
    headers = bearer(person)
    claimed = client.post(f"/api/v1/projects/{project.slug}/assignments", headers=headers).json()
    client.force_login(person)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '2s'")
    address = f"/api/v1/assignments/{claimed['id']}/label"
    try:
        with locked(embedded_servers.owner_url, "annotation_label"):
            slow = client.post(address, {"choice": 0}, content_type="application/json", headers=headers)
        with locked(embedded_servers.owner_url, "annotation_project"):
            page = client.get("/")
        stored = client.post(address, {"choice": 0}, content_type="application/json", headers=headers)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    assert (slow.status_code, slow["Content-Type"]) == (503, "application/problem+json")
    assert int(slow["Retry-After"]) > 0
    assert page.status_code == 503
    assert "does not answer in time" in page.content.decode()
    assert stored.status_code == 200
    assert Label.objects.count() == 1


# Tasks without end.


@pytest.mark.slow
def test_a_task_without_end_is_stopped_and_a_hanging_worker_killed(supervisor, embedded_servers, settings, monkeypatch):
    # Whoever sends a task that it knows sends its limits along, and they go before the worker's own.
    for name, value in {"soft_time_limit": 12, "time_limit": 15, "_exec_options": None}.items():
        monkeypatch.setattr(import_dataset_task, name, value)
    # A lease that a busy machine can renew in time: one that is lost is nobody's to end.
    settings.WORK_LEASE_SECONDS = 10
    for name, value in {"HEAVY_TASK_SECONDS": "12", "TASK_GRACE_SECONDS": "3", "WORK_LEASE_SECONDS": "10"}.items():
        supervisor._environment[name] = value
    project = make_project()
    supervisor.start_worker(concurrency=1)
    # Whoever uploads reads records; an import writes them.
    with locked(embedded_servers.owner_url, "annotation_record", "EXCLUSIVE"):
        endless = send(project)
        assert host.wait_until(lambda: Job.objects.get(pk=endless.job_id).state == "failed", 120, 0.2)
    assert Job.objects.get(pk=endless.job_id).error == interruptions.TOOK_TOO_LONG
    assert not Record.objects.exists()
    with locked(embedded_servers.owner_url, "annotation_record", "EXCLUSIVE"):
        hanging = send(project)
        assert host.wait_until(lambda: Job.objects.get(pk=hanging.job_id).state == "running", 120, 0.2)
        # Its child does the task, and the child's own reads the file.
        child, _reader = descendants(supervisor.pid("worker"))
        os.kill(child, signal.SIGSTOP)
        assert host.wait_until(lambda: host.running_process(child) is None, 120, 0.2)
    # The beat's part: nobody holds it any more.
    assert host.wait_until(lambda: jobs.resend_stalled_work() == 1, 120, 0.2)
    assert host.wait_until(lambda: Job.objects.get(pk=hanging.job_id).state == "done", 120, 0.2)
    assert Record.objects.count() == 2


def test_every_trouble_has_its_sentence():
    known = {
        psycopg.errors.DiskFull("x"): interruptions.DISK_FULL,
        psycopg.errors.QueryCanceled("x"): interruptions.DATABASE_SLOW,
        psycopg.errors.LockNotAvailable("x"): interruptions.DATABASE_SLOW,
        MemoryError(): interruptions.NO_MEMORY,
    }
    assert {error: interruptions.reason_of(error) for error in known} == known
    assert interruptions.reason_of(ValueError("a row's text")) == "Stopped by ValueError; see the worker's log."
    assert interruptions.passes_by_itself(psycopg.OperationalError("the connection is lost"))
    assert interruptions.passes_by_itself(psycopg.errors.AdminShutdown("x"))
    assert not any(interruptions.passes_by_itself(error) for error in known)


# More work than workers.


def test_a_full_backlog_refuses_uploads_and_puts_trainings_off_while_people_go_on(broker, client, settings):
    manager, annotator = make_user(), make_user()
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    learning.work_off(project)
    waiting_jobs = [Job.objects.create(project=project, kind="import") for _ in range(3)]
    settings.HEAVY_BACKLOG_LIMIT = len(waiting_jobs)
    address, headers = f"/api/v1/projects/{project.slug}/datasets", bearer(manager)
    refused = client.post(address, {"file": ContentFile(b"text\na\n", name="rows.csv")}, headers=headers)
    assert (refused.status_code, refused["Content-Type"]) == (503, "application/problem+json")
    assert int(refused["Retry-After"]) > 0
    # What people do by hand neither waits nor is refused.
    assert learning.label_everything(project, annotator) == project.labels_per_release
    loop.advance_project(project_id=project.pk)
    assert not TrainingRun.objects.exists()
    Job.objects.filter(pk=waiting_jobs[0].pk).delete()
    loop.advance_project(project_id=project.pk)
    assert TrainingRun.objects.count() == 1
    taken = client.post(address, {"file": ContentFile(b"text\na\n", name="rows.csv")}, headers=headers)
    assert taken.status_code == 202, taken.content


@pytest.mark.slow
def test_light_tasks_are_done_however_much_heavy_work_waits(supervisor, broker, settings):
    settings.HEAVY_SHARE = 20
    project = make_project()
    open_records(project, 1)
    (person,) = make_annotators(project, 1)
    queue.claim_next(project=project, user=person)
    Assignment.objects.update(leased_until=Now() - timedelta(hours=1))
    for _ in range(20):
        send(project)
    assert waiting() == 20
    app.send_task("annotation.tasks.return_expired_leases_task")
    supervisor.start_worker(concurrency=1, queues="light")
    assert host.wait_until(lambda: Assignment.objects.get().state == "expired", 120, 0.2)
    assert waiting() == 20
