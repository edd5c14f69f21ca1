import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.data.services import retention
from annotation.models import Assignment, Dataset, Label, Query, Record, Report, Role
from annotation.models.history import Action
from annotation.models.retention import SlotMark
from dpal_site.schedule import BEAT_SCHEDULE
from learner import tasks
from learner.pools import features
from learner.rounds.services import forgetting
from tests import learning, streaming
from tests.clients import browser_of
from tests.factories import add_members, make_project, make_user, open_records
from tests.owning import as_owner

pytestmark = pytest.mark.django_db
KINDS = ("records", "answers", "comments", "uploads", "actions")


def days_ago(days):
    return timezone.now() - timedelta(days=days)


def keep(project, **days):
    retention.set_retention(project=project, actor="m", **{f"{kind}_days": days.get(kind) for kind in KINDS})


def apply(project):
    due = project.pk in retention.due_projects()
    gone = dict(forgetting.apply_retention(project_id=project.pk))
    assert due or not gone
    return gone


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user("manager"), selection="random")
    learning.upload(opened, [[text] for text in learning.sentences(6)], ["text"])
    return opened


def age_uploads(project, days):
    Dataset.objects.filter(project=project).update(created_at=days_ago(days))


def test_nothing_goes_by_the_defaults_but_what_is_named(project) -> None:
    assert {due.kind: due.days for due in retention.what_is_due(project)} == {
        "records": None,
        "answers": None,
        "comments": 365,
        "uploads": 90,
        "actions": 1095,
    }
    age_uploads(project, 10_000)
    assert apply(project) == {}


def test_records_go_after_their_days_with_their_features(project) -> None:
    dataset = Dataset.objects.get(project=project)
    assert features.open_features(dataset).any()
    keep(project, records=30)
    age_uploads(project, 29)
    due = retention.what_is_due(project)[0]
    assert (due.now, due.following.date()) == (0, (timezone.now() + timedelta(days=1)).date())
    assert apply(project) == {}
    age_uploads(project, 31)
    assert retention.what_is_due(project)[0].now == 6
    assert apply(project) == {"records": 6}
    assert set(Record.objects.values_list("text", "emptied")) == {("", True)}
    assert not features.open_features(dataset).any()
    assert apply(project) == {}
    assert Action.objects.get(route="retention").target == {"records": 6}


def test_only_projects_with_something_overdue_are_looked_at(project, monkeypatch):
    sent = []
    monkeypatch.setattr(
        tasks.apply_project_retention_task, "apply_async", lambda **options: sent.append(options), raising=True
    )
    idle = [make_project() for _ in range(3)]
    tasks.apply_retention_task()
    assert sent == []
    keep(project, records=30)
    age_uploads(project, 31)
    with CaptureQueriesContext(connection) as few:
        tasks.apply_retention_task()
    assert sent == [{"kwargs": {"project_id": project.pk}, "expires": tasks.RETENTION_SECONDS}]
    assert BEAT_SCHEDULE["apply-retention"]["schedule"] == tasks.RETENTION_SECONDS
    idle += [make_project() for _ in range(5)]
    with CaptureQueriesContext(connection) as more:
        tasks.apply_retention_task()
    assert len(more) <= len(few) + 1 <= 4
    assert len(sent) == 2


def test_what_an_attempt_left_in_files_is_looked_at_again(project):
    dataset = Dataset.objects.get(project=project)
    assert retention.due_projects() == []
    Record.objects.filter(dataset=dataset, row_number=0).update(emptied=True, text="")
    assert retention.due_projects() == [project.pk]


def test_public_examples_stay(project) -> None:
    learning.upload(project, [["a plum", "fruit"]], ["text", "label"], role="public_test")
    keep(project, records=1)
    age_uploads(project, 5)
    apply(project)
    assert list(Record.objects.filter(emptied=False).values_list("text", flat=True)) == ["a plum"]


def test_a_streams_records_go_by_the_day_they_came(project) -> None:
    stream = streaming.open_stream(make_user(), "fraud-stream")
    pool = Dataset.objects.get(project=stream, role="pool")
    Record.objects.bulk_create(Record(dataset=pool, row_number=row, payload={"amount": row}) for row in range(4))
    Dataset.objects.filter(pk=pool.pk).update(row_count=4, created_at=days_ago(400))
    keep(stream, records=10)
    SlotMark.objects.create(project=stream, day=days_ago(11).date(), slots=3)
    assert apply(stream) == {"records": 3}
    assert list(Record.objects.filter(dataset=pool, emptied=False).values_list("row_number", flat=True)) == [3]
    assert SlotMark.objects.get(project=stream, day=timezone.now().date()).slots == 4


def answered(project, *, days):
    (query,) = open_records(project)
    assignment = Assignment.objects.create(
        project=project,
        query=query,
        annotator=make_user(),
        state="labelled",
        leased_until=timezone.now(),
        finished_at=days_ago(days),
    )
    Label.objects.create(assignment=assignment, query=query, annotator=assignment.annotator, choice=1)
    Query.objects.filter(pk=query.pk).update(state="closed", open_slots=0)
    return query


def test_answers_go_with_the_record_behind_them_and_young_ones_stay() -> None:
    project = make_project()
    old, young = answered(project, days=40), answered(project, days=20)
    keep(project, answers=30)
    assert apply(project) == {"answers": 1}
    assert Query.objects.get(emptied=True) == old
    assert list(Label.objects.filter(choice__isnull=False).values_list("query", flat=True)) == [young.pk]
    assert Record.objects.get(emptied=True).pk == old.record_id


def test_comments_go_once_they_are_settled_and_old() -> None:
    project, manager = make_project(), make_user()
    (query,) = open_records(project)
    for days in (None, 10, 400):
        Report.objects.create(
            project=project,
            query=query,
            annotator=make_user(),
            kind="comment",
            comment=f"settled {days}",
            resolved_at=days and days_ago(days),
            resolved_by=manager if days else None,
        )
    assert apply(project) == {"comments": 1}
    assert set(Report.objects.values_list("comment", flat=True)) == {"settled None", "settled 10"}


def test_the_log_loses_old_lines_only_and_only_so() -> None:
    project = make_project()
    for days in (0, 200):
        Action.objects.create(project=project, actor=f"{days} days", route="r", created_at=days_ago(days))
    with pytest.raises(IntegrityError, match="never rewritten"), transaction.atomic():
        Action.objects.filter(project=project).delete()
    keep(project, actions=100)
    with pytest.raises(IntegrityError, match="never rewritten"), transaction.atomic():
        Action.objects.filter(project=project).delete()
    with as_owner(), pytest.raises(IntegrityError, match="never rewritten"), transaction.atomic():
        Action.objects.filter(actor="200 days").update(actor="nobody")
    with pytest.raises(IntegrityError, match="annotation_retention_actions"), transaction.atomic():
        keep(project, actions=89)
    assert apply(project) == {"actions": 1}
    assert set(Action.objects.values_list("actor", "target__actions")) == {("0 days", None), ("", 1)}


def test_the_page_shows_what_goes_and_changes_the_periods(project) -> None:
    manager = make_user()
    add_members(project, manager, role=Role.MANAGER)
    client = browser_of(manager)
    page = reverse("annotation:retention", args=[project.slug])
    assert client.post(page, {"actions_days": "5"}).status_code == 422
    assert client.post(page, {"records_days": "30", "actions_days": "90"}).status_code == 302
    kept = retention.retention_of(project)
    assert (kept.records_days, kept.comments_days, kept.actions_days) == (30, None, 90)
    age_uploads(project, 31)
    assert ">6</td>" in client.get(page).content.decode()


def test_the_command_says_first_and_does_then(project) -> None:
    keep(project, records=30)
    age_uploads(project, 31)
    out = io.StringIO()
    call_command("apply_retention", project.slug, "--dry-run", stdout=out)
    assert f"{project.slug}: records (30 days): 6 due" in out.getvalue()
    assert not Record.objects.filter(emptied=True).exists()
    call_command("apply_retention", stdout=out)
    assert f"{project.slug}: 6 records" in out.getvalue()
    with pytest.raises(CommandError, match="no project called nowhere"):
        call_command("apply_retention", "nowhere")
