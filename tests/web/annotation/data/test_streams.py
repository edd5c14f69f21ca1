import json
import re

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.budget import charges
from annotation.models import Job, Label, Query, RecordPost, Role, WorkState
from annotation.people.services import members
from annotation.work.services.tokens import Scope
from tests import learning, streaming
from tests.clients import program_of
from tests.factories import add_members, make_opener, make_user
from tests.markup import tight
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def manager():
    return make_opener()


def post(client, project, records, **headers):
    return client.post(
        f"/api/v1/projects/{project.slug}/records",
        json.dumps({"records": records}),
        content_type="application/json",
        headers=headers,
    )


def test_records_are_taken_and_a_retry_changes_nothing(manager):
    project = streaming.open_stream(manager)
    client = program_of(manager, Scope.DATASETS_WRITE)
    records = streaming.rows(3)
    first = post(client, project, records, **{"Idempotency-Key": "a"})
    again = post(client, project, records, **{"Idempotency-Key": "a"})
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json() == again.json() == {"accepted": 3, "first_slot": 0}
    other = post(client, project, records[:2], **{"Idempotency-Key": "a"})
    assert other.status_code == 422
    assert RecordPost.objects.count() == 1


def test_what_cannot_be_read_is_named_by_row_field_and_rule(manager):
    project = streaming.open_stream(manager)
    client = program_of(manager, Scope.DATASETS_WRITE)
    bad = streaming.rows(1)[0] | {"amount": "a secret"}
    answer = post(client, project, [streaming.rows(1)[0], bad])
    assert answer.status_code == 422
    assert answer["Content-Type"] == "application/problem+json"
    rule = "is not a finite number"
    said = {"rule": rule, "rule_as_code": {"code": rule, "parameters": {}}}
    assert answer.json()["errors"] == [{"row": 2, "field": "amount", **said}]
    assert "a secret" not in answer.content.decode()
    for body in (b"{", b"[]", b'{"records": 1}', b'{"records": []}'):
        url = f"/api/v1/projects/{project.slug}/records"
        assert client.post(url, body, content_type="application/json").status_code == 422
    assert not RecordPost.objects.exists()


def test_a_long_key_and_a_large_body_are_refused(manager, settings):
    project = streaming.open_stream(manager)
    client = program_of(manager, Scope.DATASETS_WRITE)
    assert post(client, project, streaming.rows(1), **{"Idempotency-Key": "k" * 201}).status_code == 422
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    assert post(client, project, streaming.rows(1)).status_code == 413
    assert not RecordPost.objects.exists()


PAGES = (
    "learner:overview",
    "learner:standing",
    "learner:releases",
    "annotation:data",
    "annotation:budget",
    "annotation:people",
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("policy", [{}, {"update_policy": "flsw_hidden", "window_denominator": 5, "window_length": 60}])
def test_every_page_of_a_stream_opens_at_every_stage(manager, client, policy):
    client.force_login(manager)
    project = streaming.open_stream(manager, **{"window_length": 10, "updates_per_release": 1} | policy)

    def visit():
        for page in PAGES:
            assert client.get(reverse(page, args=[project.slug])).status_code == 200, page

    visit()
    streaming.posts.post_records(project=project, records=streaming.rows(400))
    visit()
    streaming.work_off(project)
    visit()
    streaming.answer(project, manager)
    streaming.let_time_pass(project)
    streaming.work_off(project)
    visit()
    assert project.releases.exists()
    assert client.get(reverse("learner:release", args=[project.slug, 1])).status_code == 200
    reader = program_of(manager, Scope.MODELS_READ)
    for route in ("models", "models/1", "rounds"):
        assert reader.get(f"/api/v1/projects/{project.slug}/{route}").status_code == 200


@pytest.mark.parametrize("preset", ["fraud-stream", "confirm-or-reject"])
def test_the_upload_form_of_a_stream_offers_a_start(manager, client, preset):
    project = streaming.open_stream(manager, preset)
    client.force_login(manager)
    form = client.get(reverse("annotation:data", args=[project.slug])).context["form"]
    offered = [key for key, _ in form.fields["role"].choices]
    assert offered == ["public_test", "public_start"]


def test_the_label_page_asks_to_confirm_the_guess(manager, client):
    project = streaming.open_stream(manager, "confirm-or-reject")
    streaming.posts.post_records(project=project, records=streaming.rows(3))
    streaming.work_off(project)
    client.force_login(manager)
    members.add_member(project=project, user=manager, role=Role.ANNOTATOR)
    page = client.get(reverse("annotation:label", args=[project.slug]))
    guess = streaming.CLASSES[Query.objects.order_by("priority").first().guess]
    assert page.context["guess"] == guess
    offered = re.findall(
        r'<button class="choice"[^>]*>.*?<span dir="auto">([^<]*)</span>', tight(page.content.decode())
    )
    assert offered == ["Yes, it is right", "No, it is wrong"]
    submit = reverse("annotation:submit", args=[page.context["assignment"].pk])
    assert client.post(submit, {"choice": 2}).status_code == 422
    assert client.post(submit, {"choice": 1}).status_code in (200, 303)
    assert Label.objects.get().choice == 1


def test_the_api_shows_the_guess(manager):
    project = streaming.open_stream(manager, "confirm-or-reject")
    members.add_member(project=project, user=manager, role=Role.ANNOTATOR)
    streaming.posts.post_records(project=project, records=streaming.rows(1))
    streaming.work_off(project)
    client = program_of(manager, Scope.LABELS_WRITE)
    shown = client.post(f"/api/v1/projects/{project.slug}/assignments").json()
    assert shown["guess"] in streaming.CLASSES
    assert len(shown["classes"]) == 2
    answer = client.post(
        f"/api/v1/assignments/{shown['id']}/label", json.dumps({"choice": 0}), content_type="application/json"
    )
    assert answer.status_code == 200


@pytest.fixture
def project(manager):
    return learning.open_crowd(manager)


@pytest.fixture
def dataset(project):
    return learning.upload(project, [["play jazz", "a"], ["play jazz", "b"]], ["text", "contributor"])


def test_after_a_gate_that_failed(project, dataset, manager):
    ask = Program(manager, project)
    path = f"datasets/{dataset.pk}/gate"
    refused = ask("POST", path, {})
    assert (refused.status_code, refused.json()["code"]) == (
        422,
        "This upload already went through the gate, or is in it.",
    )
    ended = {"state": WorkState.FAILED, "finished_at": timezone.now(), "error": "It did not end well."}
    Job.objects.filter(kind="gate").update(**ended)
    dataset.refresh_from_db()
    price = charges.gate_charge(project, dataset)
    dear = ask("POST", path, {"most_epsilon": price.epsilon / 2})
    assert (dear.status_code, dear.json()["parameters"]) == (422, {"epsilon": pytest.approx(price.epsilon, rel=1e-5)})
    engineer = make_user()
    add_members(project, engineer, role=Role.ENGINEER)
    assert Program(engineer, project)("POST", path, {}).status_code == 403
    other = make_user()
    assert Program(other, learning.open_crowd(other))("POST", path, {}).status_code == 404
    assert Job.objects.filter(kind="gate").count() == 1
    again = ask("POST", path, {"most_epsilon": price.epsilon}, key="k")
    assert again.status_code == 202
    assert ask("POST", path, {"most_epsilon": price.epsilon}, key="k").json() == again.json()
    assert Job.objects.filter(kind="gate").count() == 2
