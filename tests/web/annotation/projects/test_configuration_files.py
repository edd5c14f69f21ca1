import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.choices.presets import PRESETS
from annotation.models import Project, Role
from annotation.models.imports import OpeningDraft
from annotation.people.services import members
from annotation.projects.forms.configuration import LARGEST, file_of
from annotation.projects.forms.drafts import draft_form
from annotation.projects.services import opening
from annotation.projects.services.configuring import limits_of
from annotation.work.services.tokens import Scope, create_token
from tests.clients import browser_of
from tests.factories import make_opener, make_user
from tests.openings import open_as_shown

pytestmark = pytest.mark.django_db
DESCRIBED = {"classes": ["fraud", "honest"], "question": "Is this fraud?"}


def manager():
    return make_opener("opener")


@pytest.fixture
def owner():
    return manager()


@pytest.fixture
def client(owner) -> Client:
    return browser_of(owner)


def opened(owner, preset="pool-experts", name="Invoices", **settings):
    kind = PRESETS[preset].data_kinds[0]
    columns = {"columns": [{"name": "amount", "low": 0.0, "high": 9.5}, {"name": "land", "categories": ["NO", "SE"]}]}
    settings = (columns if kind == "table" else {}) | settings
    return opening.create_project(preset=preset, owner=owner, name=name, data_kind=kind, **{**DESCRIBED, **settings})


def downloaded(client, project):
    response = client.get(reverse("annotation:configuration_file", args=[project.slug]))
    assert response.status_code == 200
    assert response["Content-Disposition"] == f'attachment; filename="{project.slug}.configuration.json"'
    return response.content


def sent(client, content):
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return client.post(reverse("annotation:from_file"), {"file": SimpleUploadedFile("x.json", raw)}, follow=True)


def same_settings(one, other):
    own = {
        "slug",
        "name",
        "id",
        "pool_account_id",
        "labels_account_id",
        "configuration_id",
        "created_at",
        "created_by_id",
    }
    first, second = ({k: v for k, v in p.settings.items() if k not in own} for p in (one, other))
    return first == second and limits_of(one) == limits_of(other)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("preset", PRESETS)
def test_what_was_downloaded_opens_the_same_project_again(client, owner, preset):
    project = opened(owner, preset)
    page = sent(client, downloaded(client, project))
    ((address, _status),) = page.redirect_chain
    assert not page.context["form"].errors
    assert Project.objects.count() == 1
    assert open_as_shown(client, address).status_code == 302
    again = Project.objects.exclude(pk=project.pk).get()
    assert again.name == project.name
    assert file_of(again) == file_of(project)


def test_a_file_says_nothing_of_people_or_of_what_was_spent(client, owner):
    project = opened(owner, "voice-crowd")
    text = downloaded(client, project).decode()
    assert json.loads(text).keys() == {"format", "format_version", "preset", "settings"}
    for unsaid in (owner.username, project.slug, "account", "spent", "created"):
        assert unsaid not in text


def test_guidelines_may_quote_a_record_and_stay_on_the_site(client, owner):
    project = opened(owner, guidelines="Like: my account is 4711.")
    assert b"4711" not in downloaded(client, project)
    address = client.post(reverse("annotation:copy_project", args=[project.slug]))["Location"]
    open_as_shown(client, address)
    assert Project.objects.exclude(pk=project.pk).get().guidelines == project.guidelines


def test_what_a_manager_changed_travels(client, owner):
    project = opened(owner, overlap=2, pool_epsilon=0.5)
    settings = json.loads(downloaded(client, project))["settings"]
    assert (settings["overlap"], settings["pool_epsilon"]) == (2, 0.5)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Line 1, column 1: this is not JSON."),
        (b'{"format": \n nothing}', "Line 2, column 2: this is not JSON."),
        (b"\xff\xfe\x00", "A configuration file is JSON in UTF-8 of at most"),
        (b"[" * 100_000, "A configuration file is JSON in UTF-8 of at most"),
        (b'{"settings": {"round_size": ' + b"9" * 5_000 + b"}}", "A configuration file is JSON in UTF-8 of at most"),
        ({"settings": {"name": "\ud800"}}, "A configuration file is JSON in UTF-8 of at most"),
        ({"settings": {"\ud800": 1}}, "A configuration file is JSON in UTF-8 of at most"),
        ({"settings": {"pool_epsilon": float("inf")}}, "A configuration file is JSON in UTF-8 of at most"),
        ({"a": 1}, "This is no configuration file"),
        (["dpal-configuration"], "This is no configuration file"),
        ({"format": "dpal-configuration", "format_version": 2}, "format_version: this site reads version 1"),
        ({"preset": "nothing", "settings": {}}, "preset: must be one of voice-crowd"),
        ({"settings": [1]}, "settings: must be an object"),
        ({"settings": {"colour": "red"}}, "colour: This site has no such setting."),
        ({"settings": {"round_size": [1]}}, "round_size: Must be a text, a number"),
        ({"settings": {"classes": ["a\nb", "c"]}}, "classes: Must be a text, a number"),
        ({"settings": {"columns": [{"name": "a", "low": "0", "high": 1}]}}, "columns: Must be a text"),
        ({"settings": {}, "people": ["ann"]}, "people: This site has no such setting"),
        (b'{"x": "' + b"x" * LARGEST + b'"}', "A configuration file is JSON in UTF-8 of at most"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_and_nothing_kept(client, content, said):
    whole = {"format": "dpal-configuration", "format_version": 1, "preset": "pool-experts"}
    page = sent(client, content if not isinstance(content, dict) or "a" in content else whole | content)
    assert page.redirect_chain == [(reverse("annotation:new_project"), 302)]
    assert [said in str(message) for message in page.context["messages"]] == [True]
    assert not OpeningDraft.objects.exists()


def test_a_value_that_breaks_a_rule_is_named_at_its_field_and_opens_nothing(client, owner):
    content = json.loads(downloaded(client, opened(owner)))
    content["settings"] |= {"overlap": 99, "pool_epsilon": "much"}
    page = sent(client, content)
    assert "overlap" in page.context["form"].errors
    assert open_as_shown(client, page.redirect_chain[0][0]).status_code == 422
    assert Project.objects.count() == 1


def test_what_cannot_be_read_hides_no_value_that_is_wrong_by_itself(client, owner):
    content = file_of(opened(owner))
    content["settings"] |= {"pool_epsilon": -3, "selection": "nonsense", "pool_delta": 2, "classes": ["one"]}
    page = sent(client, content).content.decode()
    told = page.split("Not ready to open")[1].split("</ul>")[0]
    for label in ("Epsilon limit", "Delta limit", "Selection", "Classes"):
        assert label in told, label
    assert "greater than or equal to 1e-06." in told
    assert "Name 2 to 1,000 different classes." in told


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["classes", "data_kind", "training_epsilon", "selection", "features", "overlap"])
def test_a_limit_below_nothing_is_named_whatever_else_is_wrong(preset, name):
    given = {"name": "x", "question": "?", "classes": "a\nb", "pool_epsilon": "-3", name: ""}
    for wrong in ("", "nonsense"):
        assert "pool_epsilon" in draft_form(PRESETS[preset], given | {name: wrong}).errors


def test_no_file_is_asked_for_one(client):
    page = client.post(reverse("annotation:from_file"), follow=True)
    assert [str(message) for message in page.context["messages"]] == ["Choose a file first."]


def test_a_copy_has_the_settings_and_a_name_of_its_own(client, owner):
    project = opened(owner, overlap=3)
    address = client.post(reverse("annotation:copy_project", args=[project.slug]))["Location"]
    open_as_shown(client, address)
    copy = Project.objects.exclude(pk=project.pk).get()
    assert (copy.name, copy.overlap) == ("Invoices, copy", 3)
    assert same_settings(project, copy)


def test_a_copy_may_be_changed_before_it_is_opened(client, owner):
    project = opened(owner)
    address = client.post(reverse("annotation:copy_project", args=[project.slug]))["Location"]
    open_as_shown(client, address, name="Second")
    assert Project.objects.exclude(pk=project.pk).get().name == "Second"


def test_only_managers_copy_a_configuration(client, owner):
    other = make_user("other")
    theirs = opening.create_project(preset="pool-experts", owner=other, name="Theirs", data_kind="text", **DESCRIBED)
    for role in (None, Role.ANNOTATOR, Role.ENGINEER):
        if role:
            members.add_member(project=theirs, user=owner, role=role)
        assert client.post(reverse("annotation:copy_project", args=[theirs.slug])).status_code == 404


def test_who_may_open_no_project_may_open_none_from_a_file(owner):
    project = opened(owner)
    helper = make_user("helper")
    members.add_member(project=project, user=helper, role=Role.MANAGER)
    client = browser_of(helper)
    assert sent(client, {}).status_code == 403
    assert client.post(reverse("annotation:copy_project", args=[project.slug])).status_code == 403
    assert b"Open a copy" not in client.get(reverse("annotation:settings", args=[project.slug])).content


class TestRest:
    def call(self, owner, method, url, body=None, scopes=(Scope.PROJECTS_READ, Scope.PROJECTS_WRITE)):
        _, secret = create_token(user=owner, name="t", scopes=list(scopes), lifetime=timedelta(days=1))
        return getattr(Client(), method)(
            url,
            None if body is None else json.dumps(body),
            content_type="application/json",
            headers={"authorization": f"Bearer {secret}"},
        )

    def test_a_file_read_by_a_program_opens_a_project(self, owner):
        project = opened(owner, overlap=3)
        file = self.call(owner, "get", f"/api/v1/projects/{project.slug}/configuration/file").json()
        assert file == file_of(project)
        file["settings"]["name"] = "From a program"
        answer = self.call(owner, "post", "/api/v1/projects", file)
        assert (answer.status_code, answer.json()["name"]) == (201, "From a program")
        again = Project.objects.get(slug=answer.json()["slug"])
        assert same_settings(project, again)

    def test_every_wrong_value_is_named_and_nothing_opened(self, owner):
        project = opened(owner)
        file = file_of(project)
        file["settings"] |= {"overlap": 99, "question": ""}
        answer = self.call(owner, "post", "/api/v1/projects", file)
        assert answer.status_code == 422
        assert "overlap" in answer.json()["detail"]
        assert "question" in answer.json()["detail"]
        assert Project.objects.count() == 1


def test_groups_and_colours_of_classes_travel_and_are_refused_by_line(client, owner):
    looks = {"class_groups": ["fraud: Bad"], "class_colours": ["Bad: red", "honest: green"]}
    held = json.loads(downloaded(client, opened(owner, **looks)))
    assert held["settings"].items() >= looks.items()
    page = sent(client, held).content.decode()
    assert "fraud: Bad" in page
    held["settings"]["class_colours"] = ["Good: red"]
    assert "Line 1: write a class or heading" in sent(client, held).content.decode()
