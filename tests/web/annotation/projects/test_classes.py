import re
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.choices.classes import CROWD
from annotation.choices.classes import MERGE_BEHIND_GATE as NOT_MERGED
from annotation.models import Project, Role
from annotation.work.services.tokens import Scope
from tests.clients import browser_of, program_of
from tests.factories import (
    add_members,
    make_annotators,
    make_candidates,
    make_project,
    make_user,
    open_preset,
    open_records,
)

pytestmark = pytest.mark.django_db
TYPED = {"name": "film", "words": "a cinema\n\n the pictures ", "group": "Free time", "colour": "red"}


@pytest.fixture
def client(manager):
    return browser_of(manager)


@pytest.fixture
def project(manager):
    opened = open_preset(manager, "pool-experts", selection="random")
    open_records(opened, 3)
    return opened


def page_of(project):
    return reverse("annotation:classes", args=[project.slug])


def test_a_class_with_all_that_stands_about_it_is_added_and_told(client, project):
    assert client.post(page_of(project), TYPED | {"known_beforehand": "on"}).status_code == 302
    project.refresh_from_db()
    assert project.classes == ["yes", "no", "film"]
    assert project.settings["class_descriptions"] == ["film: a cinema", "film: the pictures"]
    page = client.get(page_of(project))
    assert page.context["rows"][2] == {
        "name": "film",
        "counts_as": "",
        "is_used": False,
        "group": "Free time",
        "colour": "red",
        "words": ("a cinema", "the pictures"),
    }
    settings = client.get(reverse("annotation:settings", args=[project.slug])).content.decode()
    assert page_of(project) in settings
    assert "yes, no, film" in settings
    assert "Class: added" in settings


@pytest.mark.parametrize(
    ("typed", "field", "rule"),
    [
        ({"name": ""}, "name", "required"),
        ({"name": "YES"}, "name", "already exists"),
        ({"name": " Yes\u200b "}, "name", "already exists"),
        ({"words": "w" * 500}, "words", "500 letters"),
        ({"colour": "gold"}, "colour", "not one of"),
        ({"known_beforehand": ""}, "known_beforehand", "required"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(client, project, typed, field, rule):
    page = client.post(page_of(project), TYPED | {"known_beforehand": "on"} | typed)
    assert page.status_code == 422
    assert list(page.context["form"].errors) == [field]
    assert rule in page.context["form"].errors[field][0]
    assert Project.objects.get(pk=project.pk).classes == ["yes", "no"]


def test_where_none_may_come_the_page_says_the_rule_and_has_no_form(client, manager):
    crowd = make_project(oracle="crowd")
    add_members(crowd, manager, role=Role.MANAGER)
    make_candidates(crowd, ["passed"])
    page = client.get(page_of(crowd))
    assert page.context["hindrance"] == CROWD
    assert 'name="known_beforehand"' not in page.content.decode()
    assert client.post(page_of(crowd), TYPED | {"known_beforehand": "on"}).status_code == 422


def test_annotators_see_it_from_the_next_question_on(client, project):
    person, browser = make_user(), Client()
    add_members(project, person, role=Role.ANNOTATOR)
    browser.force_login(person)
    label = reverse("annotation:label", args=[project.slug])
    assert "film" not in browser.get(label).content.decode()
    client.post(page_of(project), TYPED | {"known_beforehand": "on"})
    assert "film" in browser.get(label).content.decode()


def rest(user, *scopes):
    return program_of(user, *scopes)


def sent(caller, project, **changes):
    body = {"name": "film", "words": ["a cinema"], "known_beforehand": True} | changes
    address = f"/api/v1/projects/{project.slug}/configuration/classes"
    return caller.post(address, body, content_type="application/json", headers={"Idempotency-Key": str(uuid4())})


def test_a_program_adds_a_class_as_the_page_does(manager, project):
    caller = rest(manager, Scope.PROJECTS_WRITE, Scope.PROJECTS_READ)
    reply = sent(caller, project, group="Free time", colour="red")
    assert (reply.status_code, reply.json()["classes"]) == (201, ["yes", "no", "film"])
    document = caller.get(f"/api/v1/projects/{project.slug}/configuration").json()["document"]
    assert document["labelling"]["class_descriptions"] == ["film: a cinema"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"known_beforehand": False}, "known_beforehand"),
        ({"name": "no"}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"colour": "gold"}, "colour"),
    ],
)
def test_a_program_is_told_the_field_and_the_rule(manager, project, changes, field):
    reply = sent(rest(manager, Scope.PROJECTS_WRITE), project, **changes)
    assert reply.status_code == 422
    assert field in reply.json()["detail"]
    assert Project.objects.get(pk=project.pk).classes == ["yes", "no"]


MERGED = {"name": "yes", "into": "film", "known_beforehand": "on"}


@pytest.fixture
def three(client, project):
    client.post(page_of(project), TYPED | {"known_beforehand": "on"})
    project.refresh_from_db()
    return project


def merge_page_of(project):
    return reverse("annotation:merge_class", args=[project.slug])


def offered(project):
    person, browser = make_user(), Client()
    add_members(project, person, role=Role.ANNOTATOR)
    browser.force_login(person)
    page = browser.get(reverse("annotation:label", args=[project.slug])).content.decode()
    return sorted(int(place) for place in re.findall(r'name="choice"\s+value="(\d)"', page))


def test_a_merged_class_is_offered_no_more_and_the_pages_tell(client, three):
    assert offered(three) == [0, 1, 2]
    assert merge_page_of(three) in client.get(page_of(three)).content.decode()
    assert client.post(merge_page_of(three), MERGED).status_code == 302
    assert offered(three) == [1, 2]
    page = client.get(page_of(three))
    assert [row["counts_as"] for row in page.context["rows"]] == ["film", "", ""]
    assert "Take back" in page.content.decode()
    assert "yes → film" in client.get(reverse("annotation:settings", args=[three.slug])).content.decode()
    log = client.get(reverse("annotation:log", args=[three.slug])).content.decode()
    assert "Class: merged" in log
    back = client.post(reverse("annotation:take_back_merge", args=[three.slug]), {"name": "yes"})
    assert back.status_code == 302
    assert offered(three) == [0, 1, 2]
    assert "Take back" not in client.get(page_of(three)).content.decode()


def test_a_merge_that_was_learned_is_not_offered_to_be_taken_back(client, three):
    client.post(merge_page_of(three), MERGED)
    Project.objects.filter(pk=three.pk).update(labels_used_at=timezone.now())
    assert "Take back" not in client.get(page_of(three)).content.decode()
    back = client.post(reverse("annotation:take_back_merge", args=[three.slug]), {"name": "yes"})
    assert back.status_code == 422
    assert "trained with this merge" in back.content.decode()


def test_a_class_is_renamed_by_the_page_and_by_a_program_and_the_log_tells(client, manager, three):
    address = reverse("annotation:rename_class", args=[three.slug])
    typed = {"name": "film", "to": "cinema", "known_beforehand": "on"}
    refused = client.post(address, typed | {"to": "yes"})
    assert (refused.status_code, list(refused.context["form"].errors)) == (422, ["to"])
    assert client.post(address, typed).status_code == 302
    three.refresh_from_db()
    assert three.settings["class_colours"] == ["cinema: red"]
    assert "film → cinema" in client.get(reverse("annotation:settings", args=[three.slug])).content.decode()
    assert "Class: renamed" in client.get(reverse("annotation:log", args=[three.slug])).content.decode()
    caller = rest(manager, Scope.PROJECTS_WRITE, Scope.PROJECTS_READ)
    reply = caller.post(
        f"/api/v1/projects/{three.slug}/configuration/classes/renames",
        {"name": "yes", "to": "sure", "known_beforehand": True},
        content_type="application/json",
        headers={"Idempotency-Key": str(uuid4())},
    )
    assert reply.json()["classes"] == ["sure", "no", "cinema"]
    assert reply.json()["renamed"] == {"film": "cinema", "yes": "sure"}


@pytest.mark.parametrize(
    ("typed", "field", "rule"),
    [
        ({"name": "film"}, "into", "into itself"),
        ({"name": "tree"}, "name", "not one of"),
        ({"into": ""}, "into", "required"),
        ({"known_beforehand": ""}, "known_beforehand", "required"),
    ],
)
def test_what_is_wrong_with_a_merge_is_said_at_its_field(client, three, typed, field, rule):
    page = client.post(merge_page_of(three), MERGED | typed)
    assert page.status_code == 422
    assert list(page.context["form"].errors) == [field]
    assert rule in page.context["form"].errors[field][0]
    assert Project.objects.get(pk=three.pk).merged_classes == {}


def test_where_none_may_be_merged_the_page_says_the_rule(client, manager):
    crowd = make_project(oracle="crowd")
    add_members(crowd, manager, role=Role.MANAGER)
    make_candidates(crowd, ["passed"])
    page = client.get(merge_page_of(crowd))
    assert page.context["hindrance"] == NOT_MERGED
    assert 'name="known_beforehand"' not in page.content.decode()
    assert merge_page_of(crowd) not in client.get(page_of(crowd)).content.decode()


def test_a_program_merges_and_takes_back_as_the_pages_do(manager, three):
    caller = rest(manager, Scope.PROJECTS_WRITE, Scope.PROJECTS_READ)
    address = f"/api/v1/projects/{three.slug}/configuration/classes/merges"

    def post(place, body):
        headers = {"Idempotency-Key": str(uuid4())}
        return caller.post(place, body, content_type="application/json", headers=headers)

    refusal = post(address, {"name": "yes", "into": "film"})
    assert (refusal.status_code, "known_beforehand" in refusal.json()["detail"]) == (422, True)
    reply = post(address, MERGED | {"known_beforehand": True})
    assert (reply.status_code, reply.json()["merged"]) == (201, {"yes": "film"})
    person = make_user()
    add_members(three, person, role=Role.ANNOTATOR)
    turn = rest(person, Scope.LABELS_WRITE).post(
        f"/api/v1/projects/{three.slug}/assignments", headers={"Idempotency-Key": str(uuid4())}
    )
    assert (turn.json()["classes"], turn.json()["merged"]) == (["yes", "no", "film"], {"yes": "film"})
    assert post(address + "/back", {"name": "yes"}).json()["merged"] == {}
    assert post(address + "/back", {"name": "yes"}).status_code == 422


def test_a_program_that_answers_is_told_the_keys_of_classes():
    project = make_project(class_keys=["music: m", "sport: 7"])
    open_records(project, 1)
    (person,) = make_annotators(project, 1)
    turn = rest(person, Scope.LABELS_WRITE).post(
        f"/api/v1/projects/{project.slug}/assignments", headers={"Idempotency-Key": str(uuid4())}
    )
    assert turn.json()["class_keys"] == {"music": "m", "sport": "7"}
