import hashlib
import json
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.data.services import exports, label_files, retention
from annotation.data.services import forgetting as records
from annotation.errors import StorageAway
from annotation.models import Job, Record, Role, WorkState
from annotation.models.exports import Export
from annotation.models.letters import Notice
from annotation.models.people import Membership
from annotation.people.services import members
from annotation.projects.services import lifecycle
from annotation.questions.services import labels, queue
from annotation.work.services import attempts, files, jobs, tokens
from annotation.work.services.tokens import Scope
from learner.rounds.services import closing as deletion
from learner.rounds.services import forgetting as rounds_forgetting
from learner.rounds.services.forgetting import apply_retention
from tests.clients import browser_of
from tests.factories import make_annotators, make_project, make_user, open_records, write_settings

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]


@pytest.fixture
def project(manager):
    opened = make_project(owner=manager)
    members.add_member(project=opened, user=manager, role=Role.MANAGER)
    (person,) = make_annotators(opened, 1)
    open_records(opened, 3)
    (hers,) = open_records(opened)
    Record.objects.filter(pk=hers.record_id).update(contributor=records.pseudonym_of("anna"))
    for _ in range(4):
        labels.submit_label(assignment=queue.claim_next(project=opened, user=person), choice=0)
    return opened


def read(answer):
    if answer.streaming:
        answer.body = b"".join(answer.streaming_content)
        answer.close()
    return answer


class Program:
    """A program with a token of somebody's; it reads every answer to its end."""

    def __init__(self, person, scopes=(Scope.LABELS_READ,)):
        _, secret = tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))
        self.headers = {"Authorization": f"Bearer {secret}"}

    def get(self, path, **headers):
        return read(Client().get(f"/api/v1/{path}", headers=self.headers | headers))

    def post(self, path, body, **headers):
        more = {"headers": self.headers | headers, "content_type": "application/json"}
        return Client().post(f"/api/v1/{path}", json.dumps(body), **more)


@pytest.fixture
def ask(manager):
    return Program(manager)


def written(project, *, format_name="csv", owner=None):
    export = exports.start_export(project=project, owner=owner or project.created_by, format=format_name)
    exports.make_export(job_id=str(export.job_id))
    return Export.objects.get(pk=export.pk)


def stored():
    return sorted(files.names_in(exports.FOLDER))


def file_of(export):
    return f"projects/{export.project.slug}/exports/{export.job_id}/file"


@pytest.mark.parametrize("format_name", ["csv", "jsonl", "parquet"])
def test_a_program_has_a_file_written_and_gets_it_whole_or_in_parts(project, ask, sent_tasks, format_name):
    key = {"Idempotency-Key": "one"}
    asked = ask.post(f"projects/{project.slug}/exports", {"format": format_name, "history": True}, **key)
    assert asked.status_code == 202
    job = asked.json()
    assert (job["kind"], job["state"], job["export"]["file"]) == ("export", "waiting", None)
    again = ask.post(f"projects/{project.slug}/exports", {"format": format_name, "history": True}, **key)
    assert (again.json()["id"], again["Idempotency-Replayed"]) == (job["id"], "true")
    assert sent_tasks.count("annotation.tasks.export_labels_task") == Export.objects.count() == 1
    exports.make_export(job_id=job["id"])
    done = ask.get(f"jobs/{job['id']}").json()
    assert (done["state"], done["progress_done"]) == ("done", done["progress_total"])
    told = done["export"]
    whole = ask.get(told["file"])
    body = whole.body
    if format_name != "parquet":
        streamed = label_files.export_labels(project=project, format=format_name, history=True)
        assert body == b"".join(streamed)
    assert (told["size"], told["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())
    assert whole["ETag"] == f'"{told["sha256"]}"'
    part = ask.get(told["file"], Range="bytes=10-")
    assert (part.status_code, part.body) == (206, body[10:])
    assert ask.get(told["file"], **{"If-None-Match": whole["ETag"]}).status_code == 304


def test_what_is_asked_for_twice_is_one_and_a_newer_file_takes_the_place_of_the_older(project):
    first = exports.start_export(project=project, owner=project.created_by, format="csv")
    assert exports.start_export(project=project, owner=project.created_by, format="csv") == first
    exports.make_export(job_id=str(first.job_id))
    second = written(project)
    assert second.pk != first.pk
    other = written(project, format_name="jsonl")
    assert stored() == sorted([second.file, other.file])


def test_a_link_opens_nothing_without_a_right_that_still_stands(project, manager):
    """Not without signing in, not for others, not for a token of another scope, and not once the role is gone."""
    export = written(project)
    page = reverse("annotation:export_file", args=[project.slug, export.job_id])
    second = make_user()
    members.add_member(project=project, user=second, role=Role.MANAGER)
    elsewhere = make_project(owner=make_user("other"))
    members.add_member(project=elsewhere, user=elsewhere.created_by, role=Role.MANAGER)
    ways = {Program(second): 200, Program(elsewhere.created_by): 404, Program(manager, [Scope.DATASETS_WRITE]): 403}
    for program, status in ways.items():
        assert program.get(file_of(export)).status_code == status
    assert Client().get(page).status_code == 302
    browser = browser_of(second)
    assert read(browser.get(page)).status_code == 200
    crossed = f"projects/{elsewhere.slug}/exports/{export.job_id}/file"
    assert Program(elsewhere.created_by).get(crossed).status_code == 404
    Membership.objects.filter(user=second).delete()
    assert browser.get(page).status_code == 404
    assert Program(second).get(file_of(export)).status_code == 404
    assert Program(second).get(f"jobs/{export.job_id}").status_code in (403, 404)


def test_a_file_whose_time_is_over_is_gone_at_once_and_swept_away(project, ask):
    export = written(project)
    assert timedelta(days=6) < export.expires_at - timezone.now() <= timedelta(days=7)
    assert exports.forget_exports() == 0
    Export.objects.update(expires_at=Now())
    assert ask.get(file_of(export)).status_code == 404
    assert ask.get(f"jobs/{export.job_id}").json()["export"]["file"] is None
    assert stored() != []
    assert exports.forget_exports() == 1
    assert stored() == []
    assert exports.forget_exports() == 0


def forget(project):
    request = records.request_forgetting(project=project, name="anna", actor="manager", send=False)
    records.forget_records(forgetting=request)
    return request


def test_what_is_forgotten_takes_every_file_along(project, ask):
    export = written(project)
    request = forget(project)
    # The records are gone by now and the file is still there; nobody gets it.
    assert ask.get(file_of(export)).status_code == 404
    rounds_forgetting.forget_contributor(job_id=request.job_id)
    assert stored() == []
    assert written(project).may_be_read


def test_what_is_over_its_period_takes_every_file_along(project):
    written(project)
    apply_retention(project_id=project.pk)
    assert len(stored()) == 1
    retention.set_retention(project=project, actor="manager", answers_days=1)
    project.queries.first().assignments.update(finished_at=timezone.now() - timedelta(days=3))
    apply_retention(project_id=project.pk)
    assert stored() == []


def test_what_is_forgotten_while_a_file_is_written_spoils_it(project, monkeypatch):
    monkeypatch.setattr(exports, "fault_point", lambda reached: forget(project))
    export = written(project)
    assert (export.job.state, export.may_be_read) == (WorkState.FAILED, False)
    assert "Records were erased" in export.job.error
    assert stored() == []


def test_a_deleted_project_leaves_no_file(project, ask):
    export = written(project)
    asked = lifecycle.request_deletion(project=project, typed=project.slug, keep_releases=False, actor="m", send=False)
    assert ask.get(file_of(export)).status_code == 404
    waiting = jobs.open_job(project=project, kind=jobs.EXPORT, owner=project.created_by)
    Export.objects.create(project=project, job=waiting, format="csv")
    exports.make_export(job_id=str(waiting.pk))
    deletion.delete_project(job_id=asked.job_id)
    assert stored() == []
    assert not Export.objects.exists()
    waiting.refresh_from_db()
    assert (waiting.state, waiting.error) == (WorkState.FAILED, "The project was deleted.")


def test_after_a_killed_attempt_the_next_one_writes_the_whole_file(project):
    export = exports.start_export(project=project, owner=project.created_by, format="csv")
    left = f"exports/{project.pk}/{export.pk}-1"
    default_storage.save(left, ContentFile(b"half a fi"))
    Job.objects.filter(pk=export.job_id).update(
        state=WorkState.RUNNING, attempt=1, leased_until=timezone.now() + timedelta(seconds=60)
    )
    # While its lease stands nobody else begins, and what it writes is not swept away.
    exports.make_export(job_id=str(export.job_id))
    assert exports.forget_exports() == 0
    Job.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    exports.make_export(job_id=str(export.job_id))
    export.refresh_from_db()
    assert export.file.endswith("-2")
    with default_storage.open(export.file) as file:
        assert file.read() == b"".join(label_files.export_labels(project=project, format="csv"))
    assert exports.forget_exports() == 1
    assert stored() == [export.file]


def test_after_five_killed_attempts_it_is_given_up_in_words_and_can_be_started_anew(project, manager):
    export = exports.start_export(project=project, owner=manager, format="csv")
    Job.objects.filter(pk=export.job_id).update(
        state=WorkState.RUNNING, attempt=attempts.MAXIMUM_ATTEMPTS, leased_until=timezone.now() - timedelta(seconds=1)
    )
    exports.make_export(job_id=str(export.job_id))
    job = Job.objects.get(pk=export.job_id)
    assert (job.state, job.error) == (WorkState.FAILED, "Given up: 5 attempts were killed.")
    browser = browser_of(manager)
    assert browser.post(reverse("learner:retry_work", args=[project.slug, "job", job.pk])).status_code == 302
    assert Export.objects.filter(project=project, job__state=WorkState.WAITING).count() == 1


@pytest.mark.parametrize("error", [StorageAway("no answer"), OSError(28, "No space left on device")])
def test_trouble_with_the_store_is_told_and_leaves_nothing(project, monkeypatch, error):
    def trouble(reached):
        raise error

    monkeypatch.setattr(exports, "fault_point", trouble)
    with pytest.raises(type(error)):
        written(project)
    job = Job.objects.get(kind=jobs.EXPORT)
    assert (job.state, bool(job.error)) == (WorkState.FAILED, True)
    assert stored() == []


def test_a_worker_that_was_taken_over_gives_out_nothing(project, monkeypatch):
    later = timezone.now() + timedelta(seconds=60)
    taken = {"attempt": 2, "leased_until": later}
    monkeypatch.setattr(exports, "fault_point", lambda reached: Job.objects.update(**taken))
    export = written(project)
    assert (export.file, export.job.state) == ("", WorkState.RUNNING)
    assert stored() == []


class TestPages:
    @pytest.fixture
    def browser(self, manager):
        return browser_of(manager)

    def test_a_file_is_asked_for_followed_and_fetched(self, project, browser):
        page = reverse("annotation:exports", args=[project.slug])
        assert browser.post(page, {"format": "none"}).status_code == 422
        assert browser.post(page, {"format": "parquet", "history": "1"}).status_code == 302
        assert 'hx-trigger="every 2s"' in browser.get(page).content.decode()
        export = Export.objects.get()
        exports.make_export(job_id=str(export.job_id))
        shown = browser.get(page, headers={"HX-Request": "true"}).content.decode()
        assert "<html" not in shown
        assert "every 2s" not in shown
        file = reverse("annotation:export_file", args=[project.slug, export.job_id])
        assert file in shown
        assert read(browser.get(file))["Content-Disposition"] == f'attachment; filename="{project.slug}-labels.parquet"'
        forget(project)
        assert file not in browser.get(page).content.decode()
        assert browser.get(reverse("annotation:log", args=[project.slug])).content.decode().count("Labels: exported")

    @pytest.mark.parametrize("hides", [False, True])
    def test_who_asked_for_it_is_told_by_mail_but_where_nothing_may_leave(self, project, manager, hides):
        EmailAddress.objects.create(user=manager, email="m@example.org", verified=True, primary=True)
        if hides:
            write_settings(project, selection="secret_sample", selection_rate=0.1)
        written(project)
        told = list(Notice.objects.filter(kind="export").values_list("person__username", flat=True))
        assert told == ([] if hides else ["manager"])
