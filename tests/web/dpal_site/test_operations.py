from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.models import Job
from annotation.models.history import Action
from annotation.questions.services import queue
from annotation.work.services import broker as broker_service
from dpal_site.celery import app
from dpal_site.operations import checks
from learner.models import Round
from tests.factories import make_annotators, make_project, make_user, open_records
from tests.programs import Caller
from tests.scanner import SmallScanner

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/operations/"


@pytest.fixture
def staff(client):
    client.force_login(make_user("staff", is_staff=True))
    return client


def stalled(project, **fields):
    job = Job.objects.create(project=project, kind="import", state="running", attempt=2)
    Job.objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(minutes=5), **fields)
    return job


def test_a_silent_virus_scanner_is_told(staff, settings):
    silent = "The virus scanner does not answer"
    with SmallScanner() as scanner:
        settings.CLAMD_URL = scanner.url
        assert silent not in staff.get(PAGE).content.decode()
    assert silent in staff.get(PAGE).content.decode()
    assert checks.scanner() == "no answer"
    settings.CLAMD_URL = ""
    assert silent not in staff.get(PAGE).content.decode()


def test_the_page_shows_queues_work_and_failures_and_no_content(staff, broker):
    project = make_project()
    open_records(project, 2)
    (person,) = make_annotators(project, 1)
    queue.claim_next(project=project, user=person)
    checks.write_heartbeat("heavy")
    stalled(project)
    waiting = Job.objects.create(project=project, kind="gate")
    Job.objects.filter(pk=waiting.pk).update(created_at=timezone.now() - timedelta(hours=1))
    Round.objects.create(project=project, number=1, strategy="random", requested=1)
    ended = {"state": "failed", "error": "The disk is full.", "finished_at": timezone.now()}
    Job.objects.create(project=project, kind="survey", **ended)
    page = staff.get(PAGE)
    text = page.content.decode()
    assert page.status_code == 200
    assert "its worker is gone" in text
    assert "waits for long" in text
    assert "The disk is full." in text
    assert text.count(project.slug) >= 5
    assert "nobody works here" in text  # the light queue was never heard of
    assert "less than a minute ago" in text
    assert "0\xa0minutes ago" not in text
    assert "record 0" not in text
    assert person.username not in text


def test_work_nobody_is_at_is_sent_again_by_hand_and_other_work_is_not(staff, broker):
    project = make_project()
    gone = stalled(project)
    held = Job.objects.create(project=project, kind="import", state="running", attempt=1)
    Job.objects.filter(pk=held.pk).update(leased_until=timezone.now() + timedelta(minutes=5))
    round_ = Round.objects.create(project=project, number=1, strategy="random", requested=1)
    for kind, key, depth in (("job", gone.pk, 1), ("job", held.pk, 1), ("round", round_.pk, 2), ("round", "none", 2)):
        answer = staff.post(reverse("operations:send_again", args=[kind, key]))
        assert answer.status_code == 302
        assert broker_service.depths()["heavy"] == depth
    assert staff.post(reverse("operations:send_again", args=["nothing", "1"])).status_code == 404
    assert staff.get(reverse("operations:send_again", args=["job", gone.pk])).status_code == 405


def test_waiting_work_is_cancelled_at_once(staff):
    job = Job.objects.create(project=make_project(), kind="import")
    staff.post(reverse("operations:cancel", args=["job", job.pk]))
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "Cancelled by staff.")


def test_the_page_stands_while_the_broker_is_away(staff, monkeypatch):
    monkeypatch.setitem(app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    assert "The broker does not answer" in staff.get(PAGE).content.decode()


@pytest.fixture
def staff_program():
    return Caller(make_user("staff", is_staff=True))


def test_queues_and_work_are_told_without_content(staff_program, broker):
    project = make_project()
    open_records(project, 2)
    checks.write_heartbeat("heavy")
    gone = Job.objects.create(project=project, kind="import", state="running", attempt=2)
    Job.objects.filter(pk=gone.pk).update(leased_until=timezone.now() - timedelta(minutes=5))
    ended = {"state": "failed", "error": "The disk is full.", "finished_at": timezone.now()}
    Job.objects.create(project=project, kind="survey", **ended)
    answer = staff_program.get("operations/work")
    told = answer.json()
    assert {one["name"]: one["silent"] for one in told["queues"]}["heavy"] is False
    (work,) = (one for one in told["unfinished"] if one["id"] == str(gone.pk))
    assert (work["project"], work["name"]) == (project.slug, "Reading an upload")
    assert (work["trouble"], work["may_be_sent"]) == ("its worker is gone", True)
    assert [(one["error"], one["may_be_sent"]) for one in told["failed"]] == [("The disk is full.", False)]
    assert [(one["project"], one["held"]) for one in told["leases"]] == [(project.slug, 0)]
    assert "record 0" not in answer.content.decode()


def test_work_nobody_is_at_is_sent_and_stopped_once(staff_program, broker):
    job = Job.objects.create(project=make_project(), kind="import")
    at = f"operations/work/job/{job.pk}"
    assert staff_program.post(f"{at}/send", key="once").json() == {"kind": "job", "id": str(job.pk)}
    assert staff_program.post(f"{at}/send", key="once").status_code == 202
    assert broker_service.depths()["heavy"] == 1
    assert staff_program.post(f"{at}/cancel").status_code == 202
    job.refresh_from_db()
    assert (job.state, job.cancelled_by) == ("failed", "staff")
    # Whoever comes later is told, and no line says that they did something.
    assert [staff_program.post(f"{at}/{done}").status_code for done in ("send", "cancel")] == [409, 409]
    assert staff_program.post("operations/work/nothing/1/send").status_code == 404
    lines = Action.objects.filter(actor="staff").order_by("pk").values_list("route", flat=True)
    assert list(dict.fromkeys(lines)) == ["api:send_work_again", "api:stop_work"]
