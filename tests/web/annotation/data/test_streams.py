import json
import re

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from annotation.choices.rules import hides_selection
from annotation.models import Label, Project, Query, RecordPost, Role
from annotation.people.services import members
from annotation.work.services.tokens import Scope
from tests import streaming
from tests.clients import program_of
from tests.factories import make_user
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def manager():
    user = make_user()
    user.user_permissions.add(Permission.objects.get(codename="add_project"))
    return user


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


FORM = {
    "name": "Frauds",
    "question": "Is this fraud?",
    "classes": "honest\nfraud",
    "data_kind": "table",
    "columns": "amount: 0 to 10\ncountry: NO, SE",
}


def shown_in(page):
    form = page.context["form"]
    shown = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    return {name: value for name, value in shown.items() if value is not None}


@pytest.mark.parametrize("preset", ["fraud-stream", "full-information-ogd", "confirm-or-reject"])
def test_each_preset_opens_from_its_form_as_it_is_shown(manager, client, preset):
    client.force_login(manager)
    url = reverse("annotation:new_project", args=[preset])
    page = client.get(url)
    shown = shown_in(page)
    answer = client.post(url, shown | FORM)
    assert answer.status_code == 302, answer.context["form"].errors
    project = Project.objects.get()
    assert (project.arrival, project.preset) == ("stream", preset)
    assert b"pays once" in page.content


def test_a_form_names_the_rule_that_is_broken(manager, client):
    client.force_login(manager)
    url = reverse("annotation:new_project", args=["fraud-stream"])
    shown = shown_in(client.get(url)) | FORM
    refused = client.post(url, shown | {"window_denominator": ""})
    assert refused.status_code == 422
    assert "fixed public number" in refused.context["form"].errors["window_denominator"][0]
    hidden = {"window_denominator": 25, "training_epsilon": 4.0}
    assert client.post(url, shown | hidden).status_code == 302
    project = Project.objects.get()
    assert hides_selection(project.settings)
    assert project.window_denominator == 25
    visible = {"name": "Other", "update_policy": "flmb", "window_denominator": "", "training_epsilon": 1.3}
    visible["training_delta"] = 4.9e-6
    assert client.post(url, shown | visible).status_code == 302


def test_the_price_of_a_stream_of_confirmations_is_compared_with_the_limit_in_the_form(manager, client):
    client.force_login(manager)
    url = reverse("annotation:new_project", args=["confirm-or-reject"])
    shown = shown_in(client.get(url)) | FORM
    refused = client.post(url, shown | {"training_epsilon": 3.0})
    assert refused.status_code == 422
    assert "more than the limit" in refused.context["form"].errors["pool_epsilon"][0]
    assert not Project.objects.exists()


CHOICES = {"data_kind": "table", "selection": "bernoulli_screen", "estimator": "running_sums", "update_policy": "flmb"}


@pytest.mark.parametrize(
    ("preset", "choices", "there", "gone"),
    [
        ("fraud-stream", {}, {"screen_high", "training_delta", "moment_share"}, {"selection_epsilon"}),
        ("fraud-stream", {"selection": "all"}, {"window_length"}, {"screen_high", "drop_unselected"}),
        ("fraud-stream", {"update_policy": "flsw_hidden"}, {"window_denominator"}, set()),
        ("fraud-stream", {"update_policy": "flmb"}, {"window_length"}, {"window_denominator"}),
        ("fraud-stream", {"data_kind": "text"}, {"feature_dimension"}, {"columns"}),
        ("confirm-or-reject", {"selection": "all"}, {"columns", "moment_share"}, {"feature_dimension", "screen_high"}),
    ],
)
def test_the_form_shows_the_settings_of_its_choices_without_a_script(manager, client, preset, choices, there, gone):
    client.force_login(manager)
    url = reverse("annotation:new_project", args=[preset])
    page = client.post(url, CHOICES | choices | {"show": "1", "name": "Typed"})
    assert page.status_code == 200
    form = page.context["form"]
    assert there <= form.fields.keys()
    assert not gone & form.fields.keys()
    assert form["name"].value() == "Typed"
    assert b"Nothing is opened yet" in page.content
    assert not Project.objects.exists()


def test_nobody_opens_a_stream_whose_settings_they_never_saw(manager, client):
    client.force_login(manager)
    url = reverse("annotation:new_project", args=["fraud-stream"])
    first = client.get(url)
    sent = shown_in(first) | FORM | {"shown": first.context["form"].shown, "selection": "all"}
    assert client.post(url, sent).context["changed"]
    assert not Project.objects.exists()
    again = client.post(url, sent)
    sent = shown_in(again) | {"shown": again.context["form"].shown}
    assert client.post(url, sent).status_code == 302
    project = Project.objects.get()
    assert (project.selection, "screen_high" in project.settings) == ("all", False)


def test_boxes_that_were_not_on_the_page_keep_their_default(manager, client):
    client.force_login(manager)
    url = reverse("annotation:new_project", args=["fraud-stream"])
    sent = {"shown": "table,all,running_sums,flmb", "show": "1"} | CHOICES
    form = client.post(url, sent).context["form"]
    assert form["drop_unselected"].value() is True
    sent = sent | {"shown": "table,bernoulli_screen,running_sums,flmb"}
    assert client.post(url, sent).context["form"]["drop_unselected"].value() is False


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
