import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from annotation.data.services import datasets
from annotation.models import ApiToken, Dataset, Label, Project, Record, Role
from annotation.people.services import members
from annotation.questions.services import queue
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from tests.clients import browser_of, program_of
from tests.factories import open_preset, receive_upload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def manager() -> User:
    return User.objects.create_user("manager")


@pytest.fixture
def project(manager: User) -> Project:
    return open_preset(
        manager, "pool-experts", name="Messages", data_kind="text", classes=["spam", "ham"], question="Is this spam?"
    )


def csv(content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("pool.csv", content, content_type="text/csv")


def with_open_question(project: Project, owner: User) -> None:
    dataset = receive_upload(
        project=project,
        file=csv(b"text\nyou won\n"),
        name="pool.csv",
        role="pool",
        bad_rows="keep_good",
        mapping={"text": "text", "has_header": True},
        uploaded_by=owner,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    records = list(Record.objects.values_list("pk", flat=True))
    queue.open_queries(project=project, round_number=1, record_ids=records)


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer dpal_nonsense"}])
def test_without_a_valid_token_nothing_is_said(project: Project, header: dict[str, str]) -> None:
    response = Client(headers=header).get("/api/v1/projects")
    assert response.status_code == 401
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("ended", ["revoked", "expired", "inactive"])
def test_an_ended_token_opens_nothing(project: Project, manager: User, ended: str) -> None:
    client = program_of(manager, Scope.PROJECTS_READ)
    assert client.get("/api/v1/projects").status_code == 200
    if ended == "revoked":
        tokens.revoke_token(token=ApiToken.objects.get())
    elif ended == "expired":
        ApiToken.objects.update(expires_at=timezone.now())
    else:
        User.objects.update(is_active=False)
    assert client.get("/api/v1/projects").status_code == 401


def test_a_session_is_no_token(project: Project, manager: User) -> None:
    client = browser_of(manager)
    assert client.get("/api/v1/projects").status_code == 401


def test_an_upload_is_accepted_and_its_job_can_be_watched(project: Project, manager: User) -> None:
    client = program_of(manager, Scope.DATASETS_WRITE)
    url = f"/api/v1/projects/{project.slug}/datasets"
    response = client.post(url, {"file": csv(b"text\nyou won\n\xff\xfe\nhello\n"), "text_column": "text"})
    assert response.status_code == 202, response.json()
    job = response.json()["job"]["id"]
    assert client.get(f"/api/v1/jobs/{job}").json()["state"] == "waiting"
    (waiting,) = client.get(url).json()
    assert (waiting["state"], waiting["row_count"], waiting["bad_row_count"]) == ("receiving", None, None)
    datasets.import_dataset(job_id=job)
    listed = client.get(url).json()[0]
    assert (listed["state"], listed["row_count"], listed["bad_row_count"]) == ("ready", 2, 1)
    assert listed["bad_rows"][0]["line"] == 3


def test_an_unreadable_upload_is_a_problem_that_names_the_rule(project: Project, manager: User) -> None:
    client = program_of(manager, Scope.DATASETS_WRITE)
    url = f"/api/v1/projects/{project.slug}/datasets"
    response = client.post(url, {"file": csv(b"words\nyou won\n"), "text_column": "text"})
    assert response.status_code == 422
    assert "text" in response.json()["detail"]
    assert not Dataset.objects.exists()
    response = client.post(url, {"file": csv(b"text\na\n"), "role": "nonsense"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"].endswith("role")


def test_a_question_is_claimed_labelled_once_and_then_there_is_none(project: Project, manager: User) -> None:
    annotator = User.objects.create_user("annotator")
    members.add_member(project=project, user=annotator, role=Role.ANNOTATOR)
    with_open_question(project, manager)
    client = program_of(annotator, Scope.LABELS_WRITE)
    claim = f"/api/v1/projects/{project.slug}/assignments"
    question = client.post(claim).json()
    assert (question["text"], question["classes"]) == ("you won", ["spam", "ham"])
    url = f"/api/v1/assignments/{question['id']}/label"
    assert client.post(url, {"choice": 7}, content_type="application/json").status_code == 422
    first = client.post(url, {"choice": 0}, content_type="application/json")
    again = client.post(url, {"choice": 0}, content_type="application/json")
    # A number of its own would be one of the whole site, whose gaps tell of answers in other projects.
    assert first.json()["id"] == again.json()["id"] == question["id"]
    assert client.post(url, {"choice": 1}, content_type="application/json").status_code == 409
    assert Label.objects.get().choice == 0
    assert client.post(claim).status_code == 204


def test_an_assignment_of_somebody_else_does_not_exist(project: Project, manager: User) -> None:
    annotators = [User.objects.create_user(name) for name in ("first", "second")]
    for annotator in annotators:
        members.add_member(project=project, user=annotator, role=Role.ANNOTATOR)
    with_open_question(project, manager)
    question = program_of(annotators[0], Scope.LABELS_WRITE).post(f"/api/v1/projects/{project.slug}/assignments").json()
    other = program_of(annotators[1], Scope.LABELS_WRITE)
    url = f"/api/v1/assignments/{question['id']}"
    assert other.post(f"{url}/label", {"choice": 0}, content_type="application/json").status_code == 404
    assert other.post(f"{url}/skip", {}, content_type="application/json").status_code == 404


def test_a_skipped_question_goes_back(project: Project, manager: User) -> None:
    annotators = [User.objects.create_user(name) for name in ("first", "second")]
    for annotator in annotators:
        members.add_member(project=project, user=annotator, role=Role.ANNOTATOR)
    with_open_question(project, manager)
    claim = f"/api/v1/projects/{project.slug}/assignments"
    client = program_of(annotators[0], Scope.LABELS_WRITE)
    question = client.post(claim).json()
    skip = f"/api/v1/assignments/{question['id']}/skip"
    assert client.post(skip, {"reason": "blurred"}, content_type="application/json").status_code == 204
    assert client.post(claim).status_code == 204
    assert program_of(annotators[1], Scope.LABELS_WRITE).post(claim).status_code == 200


def test_the_ledger_is_readable(project: Project, manager: User) -> None:
    client, address = program_of(manager, Scope.LEDGER_READ), f"/api/v1/projects/{project.slug}/ledger"
    (account,) = client.get(address).json()
    assert account["scope"] == f"project:{project.slug}:pool"
    (entry,) = client.get(f"{address}/entries").json()
    assert (entry["kind"], entry["account"], account["entries"]) == ("grant", account["scope"], 1)
    assert account["chain_head"] == entry["hash"]
