"""Checks, people and comparisons over the REST interface: what managers see, do, and are refused as on the page."""

import pytest

from annotation.models import Dataset, DatasetRole, Membership, Query, QueryState, Role
from annotation.models.quality import GoldQuery
from annotation.questions.services import comparing, labels, queue
from tests.factories import (
    add_members,
    make_annotators,
    make_manager,
    make_project,
    make_records,
    make_user,
    open_records,
)
from tests.rest_caller import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **kwargs: None)


@pytest.fixture
def project():
    return make_project(overlap=2)


@pytest.fixture
def program(project):
    return Caller(make_manager(project))


def public_examples(project, number=3) -> Dataset:
    records = make_records(project, [f"example {place}" for place in range(number)], role=DatasetRole.PUBLIC_TEST)
    for record in records:
        record.label = 1
        record.save(update_fields=["label"])
    return records[0].dataset


def test_checks_are_made_listed_and_retired(project, program):
    dataset, at = public_examples(project), f"projects/{project.slug}/checks"
    for _again in range(2):
        added = program.post(at, {"dataset": dataset.pk, "most": 2}, key="one")
        assert (added.status_code, added.json()) == (201, {"added": 2})
    assert Query.objects.filter(project=project, state=QueryState.GOLD).count() == 2
    first, second = program.get(at).json()
    assert (first["source"], first["answer"], first["right"], first["wrong"]) == ("public", "music", 0, 0)
    assert first["text"].startswith("example")
    assert not first["has_image"]
    assert program.get(at, limit=1).json() == [first]
    for _again in range(2):
        assert program.delete(f"{at}/{first['check']}").status_code == 204
    assert [row["check"] for row in program.get(at).json()] == [second["check"]]
    assert GoldQuery.objects.get(pk=first["check"]).retired_at is not None
    assert program.get(f"{at}/{second['check']}/image").status_code == 404


def test_checks_come_from_public_examples_alone(project, program):
    at = f"projects/{project.slug}/checks"
    (private, *_more) = make_records(project, ["private"])
    refused = program.post(at, {"dataset": private.dataset_id})
    assert refused.status_code == 422
    assert "Checks come from public examples only" in refused.json()["code"]
    elsewhere = program.post(at, {"dataset": public_examples(make_project()).pk})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (422, "Choose a public upload with labels.")
    assert not GoldQuery.objects.exists()


def test_somebody_pauses_and_goes_on(project, program):
    open_records(project, 2)
    (ann,) = make_annotators(project, 1)
    labels.submit_label(assignment=queue.claim_next(project=project, user=ann), choice=0)
    held = Membership.objects.get(user=ann)
    (sheet,) = program.get(f"projects/{project.slug}/annotators").json()
    assert (sheet["membership"], sheet["username"], sheet["answers"], sheet["paused_at"]) == (
        held.pk,
        ann.get_username(),
        1,
        None,
    )
    at = f"projects/{project.slug}/members/{held.pk}/pause"
    assert program.post(at, key="one").status_code == 204
    assert queue.claim_next(project=project, user=ann) is None
    (sheet,) = program.get(f"projects/{project.slug}/annotators").json()
    assert (sheet["pause_reason"], sheet["paused_at"] is None) == ("manager", False)
    assert program.delete(at).status_code == 204
    assert queue.claim_next(project=project, user=ann) is not None
    held.refresh_from_db()
    assert held.judged_from is not None
    # Whoever annotates nothing cannot be paused, as on the page.
    boss = Membership.objects.get(project=project, role=Role.MANAGER)
    assert program.post(f"projects/{project.slug}/members/{boss.pk}/pause").status_code == 404


def test_answers_are_compared_once_a_key(project, program):
    open_records(project, 1)
    for person in make_annotators(project, 2):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=1)
    at = f"projects/{project.slug}/agreement"
    assert program.get(at).status_code == 404
    begun = [program.post(at, key="one").json() for _ in range(2)]
    assert begun[0] == begun[1]
    assert (begun[0]["made_at"], begun[0]["job"]["state"]) == (None, "waiting")
    comparing.make_report(job_id=begun[0]["job"]["id"])
    made = program.get(at).json()
    assert (made["answers"], made["questions"], made["job"]["state"]) == (2, 1, "done")


@pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.ENGINEER, Role.REVIEWER])
def test_others_are_told_that_there_is_nothing(project, role):
    other = make_user()
    add_members(project, other, role=role)
    program, base = Caller(other), f"projects/{project.slug}"
    own = Membership.objects.get(user=other)
    for path in ("checks", "annotators", "agreement"):
        assert program.get(f"{base}/{path}").status_code == 404
    assert program.post(f"{base}/checks", {"dataset": public_examples(project).pk}).status_code == 404
    assert program.delete(f"{base}/members/{own.pk}/pause").status_code == 404
    assert program.post(f"{base}/agreement").status_code == 404
