import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now

from annotation.errors import WorkLost
from annotation.models import Job, WorkState
from annotation.models.jobs import UNFINISHED
from annotation.work.services import attempts
from dpal_site.embedded import host
from tests.factories import make_project
from tests.owning import as_owner, waits_for_a_lock


@pytest.fixture
def job(transactional_db):
    return Job.objects.create(project=make_project(), kind="import")


def copy_of(job):
    return Job.objects.get(pk=job.pk)


@transaction.atomic
def store_output(job):
    Job.objects.create(project=job.project, kind="output")
    attempts.finish_work(row=job)


def let_lapse(job):
    Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(minutes=10))


def sessions():
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type ~ 'client'"
        )
        return {pid for (pid,) in cursor.fetchall()}


def in_thread(function, *args):
    def call():
        try:
            return function(*args)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_a_row_is_taken_once(job):
    assert attempts.take_work(row=job)
    assert (job.state, job.attempt) == ("running", 1)
    assert Job.objects.filter(pk=job.pk, leased_until__gt=Now()).exists()
    assert not attempts.take_work(row=copy_of(job))


def test_of_many_workers_one_takes_it(job):
    gate = threading.Barrier(6)

    def take():
        try:
            mine = copy_of(job)
            gate.wait()
            return attempts.take_work(row=mine)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(lambda _: take(), range(6))) == 1
    assert copy_of(job).attempt == 1


def test_work_that_is_just_written_to_is_taken_all_the_same(job):
    """The process that sent the task notes when it did, at the moment the worker comes."""

    def take():
        try:
            return attempts.take_work(row=copy_of(job))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Job.objects.filter(pk=job.pk).update(sent_at=Now())
            taken = pool.submit(take)
            assert host.wait_until(lambda: taken.done() or waits_for_a_lock(), 120)
        assert taken.result(120)
    assert copy_of(job).state == "running"


def test_a_lapsed_row_that_is_being_finished_is_left_alone(job):
    assert attempts.take_work(row=job)
    let_lapse(job)
    with transaction.atomic():
        attempts.finish_work(row=job)
        assert not in_thread(lambda: attempts.take_work(row=copy_of(job)))
    assert copy_of(job).state == "done"


def test_a_lapsed_lease_is_taken_over_and_the_first_worker_can_store_nothing(job):
    first, second = copy_of(job), copy_of(job)
    assert attempts.take_work(row=first)
    let_lapse(job)
    assert attempts.take_work(row=second)
    assert second.attempt == 2
    with pytest.raises(WorkLost):
        store_output(first)
    with pytest.raises(WorkLost):
        attempts.fail_work(row=first, error="too late")
    assert Job.objects.count() == 1
    attempts.finish_work(row=second, message="stored")
    ended = copy_of(job)
    assert (ended.state, ended.message, ended.leased_until) == ("done", "stored", None)
    assert ended.finished_at is not None


@pytest.mark.parametrize("end", [attempts.finish_work, lambda row: attempts.fail_work(row=row, error="x" * 5000)])
def test_what_ended_is_never_taken_again(job, end):
    attempts.take_work(row=job)
    end(row=job)
    assert not attempts.take_work(row=copy_of(job))
    with pytest.raises(WorkLost):
        attempts.finish_work(row=job)


@pytest.mark.parametrize("state", WorkState)
def test_cancelled_in_any_state_it_is_never_done_afterwards(job, state):
    """Where it was done already it stays so; a worker that died with it running leaves it to the next attempt."""
    open_still = state in UNFINISHED
    Job.objects.filter(pk=job.pk).update(state=state, finished_at=None if open_still else Now())
    if state == WorkState.RUNNING:
        let_lapse(job)
    assert attempts.cancel_work(row=copy_of(job), by="ada") is open_still
    with attempts.attempt_at(copy_of(job)) as lease:
        assert lease is None
    kept = copy_of(job)
    assert kept.state == (WorkState.DONE if state == WorkState.DONE else WorkState.FAILED)
    assert (kept.cancelled_by, kept.error) == (("ada", "Cancelled by ada.") if open_still else ("", ""))


def test_taking_inside_a_transaction_is_refused_because_nobody_would_see_it(job):
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        attempts.take_work(row=job)


def test_a_kept_lease_outlives_its_length_and_leaves_no_connection(job, settings):
    settings.WORK_LEASE_SECONDS = 3
    attempts.take_work(row=job)
    before, first = sessions(), job.leased_until
    with attempts.keep_lease(job) as lease:
        lease.report(progress_done=7, message="seven")
        assert host.wait_until(lambda: Job.objects.filter(leased_until__gt=first, progress_done=7).exists(), 60)
        lease.check()
        assert copy_of(job).message == "seven"
        assert len(sessions() - before) == 1
        assert not in_thread(lambda: attempts.take_work(row=copy_of(job)))
    # The server says goodbye a moment after we do.
    assert host.wait_until(lambda: sessions() <= before, 60)
    let_lapse(job)
    assert in_thread(lambda: attempts.take_work(row=copy_of(job)))


def test_a_worker_learns_that_it_lost_its_row(job, settings):
    settings.WORK_LEASE_SECONDS = 0.3
    attempts.take_work(row=job)

    def is_lost(lease):
        try:
            lease.check()
        except WorkLost:
            return True
        return False

    with attempts.keep_lease(job) as lease:
        assert not is_lost(lease)
        Job.objects.filter(pk=job.pk).update(attempt=2)
        assert host.wait_until(lambda: is_lost(lease), 60)


def test_the_lease_never_waits_for_the_transaction_that_finishes_the_work(job, settings, monkeypatch):
    settings.WORK_LEASE_SECONDS = 0.15
    attempts.take_work(row=job)
    tried = []
    monkeypatch.setattr(
        attempts.Lease, "_renew", lambda lease, renew=attempts.Lease._renew: tried.append(renew(lease)) or tried[-1]
    )
    with transaction.atomic(), attempts.keep_lease(job) as lease:
        attempts.finish_work(row=job)
        # It would wait here for our own transaction, for ever.
        assert host.wait_until(lambda: len(tried) > 1, 60)
        lease.check()
    assert set(tried) == {True}
    assert copy_of(job).state == "done"


def test_a_database_that_is_away_for_a_moment_costs_no_lease(job, settings, monkeypatch):
    settings.WORK_LEASE_SECONDS = 0.3
    attempts.take_work(row=job)
    calls, first = [], job.leased_until

    def fail_once(row, held_rows=attempts._held_rows):
        calls.append(row)
        if len(calls) == 1:
            return held_rows(row).extra(where=["1 / (1 - 1) = 1"])
        return held_rows(row)

    monkeypatch.setattr(attempts, "_held_rows", fail_once)
    with attempts.keep_lease(job) as lease:
        assert host.wait_until(lambda: Job.objects.filter(pk=job.pk, leased_until__gt=first).exists(), 60)
        lease.check()
    assert len(calls) > 1
    with pytest.raises(DatabaseError):
        list(Job.objects.extra(where=["1 / (1 - 1) = 1"]))


class TestAnAttemptAtAJob:
    def test_an_error_fails_it_with_a_reason_and_without_its_words(self, job):
        with pytest.raises(ValueError, match="a text"), attempts.attempt_at(job):
            raise ValueError("a text of the pool")
        kept = copy_of(job)
        assert kept.state == "failed"
        assert "ValueError" in kept.error
        assert "a text" not in kept.error

    def test_where_the_database_goes_away_the_next_attempt_has_it(self, job):
        with attempts.attempt_at(job), connection.cursor() as cursor:
            cursor.execute("SET ROLE none")
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        connection.close()
        assert copy_of(job).state == "running"
        let_lapse(job)
        with attempts.attempt_at(copy_of(job)):
            attempts.finish_work(row=copy_of(job))
        assert copy_of(job).state == "done"

    def test_cancelled_it_stops_at_its_next_check(self, job):
        with attempts.attempt_at(job) as lease:
            assert lease is not None
            attempts.cancel_work(row=copy_of(job), by="ada")
            host.wait_until(lambda: lease.check() is not None, 60, 0.05)
        kept = copy_of(job)
        assert (kept.state, kept.error) == ("failed", "Cancelled by ada.")

    def test_cancelled_before_it_ends_it_does_not_end_well(self, job):
        with attempts.attempt_at(job):
            attempts.cancel_work(row=copy_of(job), by="ada")
            attempts.finish_work(row=job)
        kept = copy_of(job)
        assert (kept.state, kept.error) == ("failed", "Cancelled by ada.")

    def test_the_attempt_after_the_last_is_not_made(self, job):
        Job.objects.filter(pk=job.pk).update(attempt=attempts.MAXIMUM_ATTEMPTS)
        with attempts.attempt_at(copy_of(job)) as lease:
            assert lease is None
        assert copy_of(job).state == "failed"

    def test_who_comes_second_has_nothing_to_do(self, job):
        with attempts.attempt_at(job):
            with attempts.attempt_at(copy_of(job)) as second:
                assert second is None
            attempts.finish_work(row=job)
        assert copy_of(job).state == "done"
