import json
import re
from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Query, Role
from annotation.people.services import members
from annotation.work.services.tokens import Scope
from learner.models import ModelRelease
from learner.rounds.next_step import Step, project_status
from privacy.accounting.events import event_from_json
from tests import learning, streaming
from tests.clients import program_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
RECORDS = 60
# Whole numbers of a promise, however many were asked: versions, classes, columns.
NO_COUNTS = {0, 1, 2, 3, 4, 6, 64}


def send(client: Client, path: str, body: object = None, **headers: str):
    return client.post(f"/api/v1/{path}", json.dumps(body or {}), content_type="application/json", headers=headers)


def truth_of(shown: dict) -> int:
    truth = int(shown["fields"]["amount"] > 0)
    return truth if shown["guess"] is None else int(shown["guess"] != streaming.CLASSES[truth])


def answer_everything(client: Client, slug: str) -> int:
    answered = 0
    while (claimed := send(client, f"projects/{slug}/assignments")).status_code == 200:
        shown = claimed.json()
        given = send(client, f"assignments/{shown['id']}/label", {"choice": truth_of(shown)})
        assert given.status_code == 200
        answered += 1
    assert claimed.status_code == 204
    return answered


def travel(preset: str, *, meanwhile: Callable[..., None] = lambda project: None, **fields):
    """Post, examine, answer and release until the third version; return the project and the number of answers."""
    manager, annotator = make_user(), make_user()
    project = streaming.open_stream(manager, preset, **fields)
    members.add_member(project=project, user=annotator, role=Role.ANNOTATOR)
    sender = program_of(manager, Scope.DATASETS_WRITE)
    expert = program_of(annotator, Scope.LABELS_WRITE)
    answered = 0
    for turn in range(60):
        body = {"records": streaming.rows(RECORDS, seed=turn)}
        for expected in (202, 200):
            sent = send(sender, f"projects/{project.slug}/records", body, **{"Idempotency-Key": f"turn {turn}"})
            assert (sent.status_code, sent.json()) == (expected, {"accepted": RECORDS, "first_slot": turn * RECORDS})
        streaming.work_off(project)
        answered += answer_everything(expert, project.slug)
        meanwhile(project)
        streaming.work_off(project)
        if ModelRelease.objects.filter(project=project, version=3).exists():
            break
    reader = program_of(manager, Scope.MODELS_READ, Scope.LEDGER_READ)
    models = reader.get(f"/api/v1/projects/{project.slug}/models").json()
    assert [model["version"] for model in models] == [3, 2, 1]
    assert project_status(project).step == Step.FINISHED
    (account,) = reader.get(f"/api/v1/projects/{project.slug}/ledger").json()
    assert 0 < account["epsilon_spent"] <= account["epsilon_limit"]
    assert len(learning.entries(project, "reserve")) == len(learning.entries(project, "commit")) == 1
    assert learning.open_reservations(project) == 0
    file = reader.get(f"/api/v1/projects/{project.slug}/models/3/files/privacy.json")
    promise = json.loads(b"".join(file.streaming_content))
    file.close()
    assert [account["limit_epsilon"] for account in promise["accounts"]] == [account["epsilon_limit"]]
    call_command("audit_ledger", stdout=StringIO())
    return project, answered, models, promise


def numbers_of(promise, slug: str) -> set[float]:
    said = re.sub(r"\b[0-9a-f]{64}\b|\b\d{4}-\d\d-\d\d\b", "", json.dumps(promise).replace(slug, ""))
    return {float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-\d+)?(?![\w.]*\w)", said)}


def whole_numbers_of(promise, slug: str) -> set[float]:
    return {number for number in numbers_of(promise, slug) if number.is_integer()}


def test_numbers_are_found_in_values_and_in_sentences_but_not_in_digests():
    promise = {
        "count": 16,
        "said": "asked 17 times, 0.18 each",
        "small": 2.5e-08,
        "head": "19" * 32,
        "name": "stream-20",
        "day": "2026-11-23",
    }
    assert numbers_of(promise, "stream-20") == {16, 17, 0.18, 2.5e-08}


@pytest.mark.slow
def test_a_fraud_stream_releases_three_models():
    project, answered, models, promise = travel(
        "fraud-stream", window_length=10, updates_per_release=2, screen_high=0.4, screen_low=0.2, pool_epsilon=2.5
    )
    assert answered == Query.objects.filter(project=project, state="closed").count()
    assert [model["questions_asked"] for model in models] == [60, 40, 20]
    assert promise["questions_shown"] is True
    assert models[0]["estimator"] == "running_sums"


def test_a_hidden_fraud_stream_releases_three_models_and_says_no_count():
    project, _, models, promise = travel(
        "fraud-stream",
        meanwhile=streaming.let_time_pass,
        update_policy="flsw_hidden",
        window_length=50,
        window_denominator=5,
        updates_per_release=1,
    )
    assert [model["questions_asked"] for model in models] == [None] * 3
    assert [model["pool_size"] for model in models] == [150, 100, 50]
    assert promise["questions_shown"] is False
    assert whole_numbers_of(promise, project.slug) - {promise["transcript_bytes"]} <= NO_COUNTS
    assert learning.entries(project, "commit")[0].parent.event["selection_visible"] is False


def test_the_stream_of_experts_as_shipped_releases_three_models_that_learn_and_says_no_count():
    project, answered, models, promise = travel(
        "fraud-stream",
        as_shipped=True,
        meanwhile=streaming.let_time_pass,
        window_length=100,
        window_denominator=10,
        updates_per_release=2,
    )
    assert answered > 0
    assert [model["estimator"] for model in models] == ["running_sums"] * 3
    assert [model["questions_asked"] for model in models] == [None] * 3
    assert promise["questions_shown"] is False
    assert whole_numbers_of(promise, project.slug) - {promise["transcript_bytes"]} <= NO_COUNTS
    (paid,) = learning.entries(project, "commit")
    assert paid.parent.event["selection_visible"] is False
    cost = event_from_json(paid.parent.event).cost()
    assert 1.99 < cost.epsilon <= 2.0
    assert 4.9e-6 < cost.delta <= 5e-6


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("classes", [streaming.CLASSES, [*streaming.CLASSES, "odd"]])
def test_confirming_or_rejecting_as_shipped_learns_from_sums(classes):
    project, answered, models, promise = travel(
        "confirm-or-reject", as_shipped=True, classes=classes, window_length=25, updates_per_release=2
    )
    assert answered >= 150
    assert [model["estimator"] for model in models] == ["running_sums"] * 3
    assert promise["questions_shown"] is True
    assert not Query.objects.filter(project=project, guess=None).exists()
    (paid,) = learning.entries(project, "commit")
    assert 1.99 < event_from_json(paid.parent.event).cost().epsilon <= 2.0
