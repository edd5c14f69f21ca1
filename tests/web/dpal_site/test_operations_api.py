from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import Job
from annotation.models.history import Action
from annotation.work.services import broker as broker_service
from dpal_site.operations import checks
from tests.factories import make_project, make_user, open_records
from tests.programs import Caller

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def staff():
    return Caller(make_user("staff", is_staff=True))


def test_queues_and_work_are_told_without_content(staff, broker):
    project = make_project()
    open_records(project, 2)
    checks.write_heartbeat("heavy")
    gone = Job.objects.create(project=project, kind="import", state="running", attempt=2)
    Job.objects.filter(pk=gone.pk).update(leased_until=timezone.now() - timedelta(minutes=5))
    ended = {"state": "failed", "error": "The disk is full.", "finished_at": timezone.now()}
    Job.objects.create(project=project, kind="survey", **ended)
    answer = staff.get("operations/work")
    told = answer.json()
    assert {one["name"]: one["silent"] for one in told["queues"]}["heavy"] is False
    (work,) = (one for one in told["unfinished"] if one["id"] == str(gone.pk))
    assert (work["project"], work["name"]) == (project.slug, "Reading an upload")
    assert (work["trouble"], work["may_be_sent"]) == ("its worker is gone", True)
    assert [(one["error"], one["may_be_sent"]) for one in told["failed"]] == [("The disk is full.", False)]
    assert [(one["project"], one["held"]) for one in told["leases"]] == [(project.slug, 0)]
    assert "record 0" not in answer.content.decode()


def test_work_nobody_is_at_is_sent_and_stopped_once(staff, broker):
    job = Job.objects.create(project=make_project(), kind="import")
    at = f"operations/work/job/{job.pk}"
    assert staff.post(f"{at}/send", key="once").json() == {"kind": "job", "id": str(job.pk)}
    assert staff.post(f"{at}/send", key="once").status_code == 202
    assert broker_service.depths()["heavy"] == 1
    assert staff.post(f"{at}/cancel").status_code == 202
    job.refresh_from_db()
    assert (job.state, job.cancelled_by) == ("failed", "staff")
    # Whoever comes later is told, and no line says that they did something.
    assert [staff.post(f"{at}/{done}").status_code for done in ("send", "cancel")] == [409, 409]
    assert staff.post("operations/work/nothing/1/send").status_code == 404
    lines = Action.objects.filter(actor="staff").order_by("pk").values_list("route", flat=True)
    assert list(dict.fromkeys(lines)) == ["api:send_work_again", "api:stop_work"]
