import json

import pytest

from annotation.data.services import forgetting
from annotation.models import Consensus, Query, QueryState, Report, Role
from annotation.models.people import IdempotentAnswer
from annotation.models.quality import GoldQuery
from annotation.questions.services import labels, queue
from annotation.work.services.tokens import Scope
from tests.clients import program_of
from tests.factories import add_members, make_annotators, make_manager, make_project, make_user, open_records
from tests.programs import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    project = make_project(overlap=2, reviewed="all")
    open_records(project, 2)
    for person, choices in zip(make_annotators(project, 2), ((0, 1), (2, 1)), strict=True):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    return project


@pytest.fixture
def disputed(project):
    return Query.objects.get(project=project, state=QueryState.DISPUTED)


@pytest.fixture
def send(project):
    reviewer = make_user("reviewer")
    add_members(project, reviewer, role=Role.REVIEWER)
    client = program_of(reviewer, Scope.LABELS_WRITE)

    def sent(to="", body=None, key=""):
        headers = {"Idempotency-Key": key} if key else {}
        address = f"/api/v1/projects/{project.slug}/reviews{to}"
        return client.post(address, json.dumps(body or {}), content_type="application/json", headers=headers)

    sent.progress = lambda: client.get(f"/api/v1/projects/{project.slug}/reviews").json()
    return sent


def test_the_queue_names_nobody(project, disputed, send):
    asked = send().json()
    assert (asked["id"], asked["text"], asked["is_disputed"], asked["agreed"]) == (disputed.pk, "record 0", True, None)
    assert asked["votes"] == [{"answer": "sport", "people": 1}, {"answer": "other", "people": 1}]
    assert send().json()["id"] == disputed.pk
    assert send.progress() == {"reviewed": 0, "waiting": 2}
    assert "person-" not in json.dumps(asked)


def test_decisions(project, disputed, send):
    assert send(f"/{disputed.pk}", {"decision": "settle", "choice": 1}).status_code == 204
    assert Consensus.objects.get(query=disputed).choice == 1
    assert send("/undo").status_code == 204
    assert send(f"/{disputed.pk}", {"decision": "skip"}).status_code == 204
    agreed = send().json()
    assert (agreed["is_disputed"], agreed["agreed"]) == (False, [1])
    assert send(f"/{agreed['id']}", {"decision": "settle", "choice": agreed["agreed"][0]}).status_code == 204
    assert send.progress() == {"reviewed": 1, "waiting": 1}
    assert send(f"/{disputed.pk}", {"decision": "return", "comment": ""}).status_code == 422
    assert send(f"/{disputed.pk}", {"decision": "return", "comment": "Look again."}).status_code == 204
    assert Report.objects.filter(kind="returned").count() == 2
    assert send().status_code == 204
    assert send("/undo").status_code == 204
    assert send(f"/{disputed.pk}", {"decision": "set_aside"}).status_code == 204
    disputed.refresh_from_db()
    assert disputed.state == QueryState.SET_ASIDE


OF_MANAGERS = (
    ({"decision": "ask"}, QueryState.OPEN),
    ({"decision": "leave_out"}, QueryState.WITHDRAWN),
    ({"decision": "settle", "choice": 1, "keep_as_check": True}, QueryState.GOLD),
)


@pytest.mark.parametrize(("body", "state"), OF_MANAGERS)
def test_managers_alone_do_what_their_page_offers_them_alone(project, disputed, send, body, state):
    assert send(f"/{disputed.pk}", body).status_code == 403
    disputed.refresh_from_db()
    assert disputed.state == QueryState.DISPUTED
    manager = Caller(make_manager(project))
    assert manager.post(f"projects/{project.slug}/reviews/{disputed.pk}", body).status_code == 204
    disputed.refresh_from_db()
    assert disputed.state == state
    assert GoldQuery.objects.count() == body.get("keep_as_check", False)
    # Of what is disputed no more there is nothing to ask.
    again = manager.post(f"projects/{project.slug}/reviews/{disputed.pk}", {"decision": "ask"})
    assert again.status_code == 422


def test_no_kept_answer_shows_an_emptied_record(project, disputed, send):
    assert "record 0" in send(key="first").content.decode()
    assert "record 0" in IdempotentAnswer.objects.get().body
    forgetting.empty_questions(Query.objects.filter(pk=disputed.pk), project=project)
    assert not IdempotentAnswer.objects.exists()
