import pytest
import redis
from django.conf import settings

from annotation.models import Job
from annotation.work.services import attempts, jobs
from learner.models import TrainingRun
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def waiting(broker):
    with redis.Redis.from_url(broker) as client:
        yield lambda: client.llen("heavy")


def open_jobs(number, *, project=None, owner=None):
    for _ in range(number):
        jobs.open_job(project=project or make_project(), kind=jobs.EXPORT, owner=owner or make_user())


def test_a_project_that_starts_much_keeps_no_other_waiting(waiting):
    busy = make_project()
    open_jobs(10, project=busy)
    assert waiting() == settings.HEAVY_SHARE
    open_jobs(1)
    assert waiting() == settings.HEAVY_SHARE + 1


def test_a_person_who_starts_much_in_many_projects_keeps_no_other_waiting(waiting):
    busy = make_user()
    open_jobs(10, owner=busy)
    assert waiting() == settings.HEAVY_SHARE
    open_jobs(1)
    assert waiting() == settings.HEAVY_SHARE + 1


@pytest.mark.parametrize("ending", ["done", "failed", "cancelled"])
def test_where_a_job_ends_the_oldest_that_waits_is_sent(waiting, ending):
    open_jobs(settings.HEAVY_SHARE + 2, project=make_project())
    first, *_ = Job.objects.order_by("created_at")
    if ending == "cancelled":
        attempts.cancel_work(row=first, by="ann")
    else:
        attempts.take_work(row=first)
        end = attempts.finish_work if ending == "done" else attempts.fail_work
        end(row=first, **({} if ending == "done" else {"error": "a fault"}))
    assert waiting() == settings.HEAVY_SHARE + 1
    unsent = Job.objects.get(sent_at=None)
    assert unsent == Job.objects.order_by("created_at").last()


def test_trainings_are_part_of_the_shares_of_project_and_person(waiting):
    person = make_user()
    for _ in range(settings.HEAVY_SHARE + 2):
        project = make_project(owner=person)
        run = TrainingRun.objects.create(project=project, version=1, last_consensus_id=0, labels_used=0)
    jobs.send_unsent()
    assert waiting() == settings.HEAVY_SHARE
    open_jobs(1, owner=person)
    assert waiting() == settings.HEAVY_SHARE
    # Another person's training waits for none of them.
    other = make_project()
    TrainingRun.objects.create(project=other, version=1, last_consensus_id=0, labels_used=0)
    jobs.send_unsent()
    assert waiting() == settings.HEAVY_SHARE + 1
    attempts.take_work(row=run)
    attempts.fail_work(row=run, error="a fault")
    assert waiting() == settings.HEAVY_SHARE + 1, "this one was never sent, so no share has become free"
    sent = TrainingRun.objects.exclude(sent_at=None).exclude(project=other).first()
    attempts.take_work(row=sent)
    attempts.fail_work(row=sent, error="a fault")
    assert waiting() == settings.HEAVY_SHARE + 2


def test_what_waits_for_its_share_is_not_taken_for_lost(waiting):
    open_jobs(settings.HEAVY_SHARE + 5, project=make_project())
    Job.objects.update(created_at="2000-01-01T00:00Z")
    Job.objects.exclude(sent_at=None).update(sent_at="2000-01-01T00:00Z")
    assert jobs.resend_stalled_work() == 0
    assert waiting() == settings.HEAVY_SHARE
