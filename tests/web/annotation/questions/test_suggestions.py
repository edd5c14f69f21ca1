"""A suggestion on the label page, over REST, in files and for managers: shown where a coin said so, else never."""

import csv
import io
import json
import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from annotation.exports.services.label_files import TABLE_COLUMNS, export_labels
from annotation.models import Label, Project, Query
from annotation.questions.services import labels, queue
from annotation.work.services import tokens
from tests.factories import add_members, make_annotators, make_project, make_user, open_records
from tests.markup import tight

pytestmark = pytest.mark.django_db
MANY = [f"class {n}" for n in range(40)]
# Drawn anew for each page, or numbered by the test.
DRAWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[A-Za-z0-9]{64}\b|(?i:project|person)(?:[- ]|=.)\d+")


def suggested(*, shown: bool | None, **fields: object) -> tuple[Project, Client, Query]:
    """Return a project with one question that has a suggestion (None: it has none), and its annotator's browser."""
    project = make_project(**fields)
    (person,) = make_annotators(project, 1)
    (query,) = open_records(project, 1)
    if shown is not None:
        Query.objects.filter(pk=query.pk).update(suggested=1, suggested_percent=72, suggestion_shown=shown)
    client = Client()
    client.force_login(person)
    return project, client, query


def page_of(client: Client, project: Project) -> str:
    return tight(client.get(reverse("annotation:label", args=[project.slug])).content.decode())


@pytest.mark.parametrize("fields", [{}, {"confirm_answers": True}, {"classes": MANY}])
def test_a_blind_question_looks_as_if_the_model_had_said_nothing(fields):
    blind, without, shown = (suggested(shown=each, **fields)[:2] for each in (False, None, True))
    pages = [DRAWN.sub("*", page_of(client, project)) for project, client in (blind, without, shown)]
    assert pages[0] == pages[1] != pages[2]


def test_it_stands_beside_the_question_with_its_doubt_and_one_key():
    project, client, _query = suggested(shown=True)
    page = page_of(client, project)
    assert 'The model suggests<strong dir="auto">music</strong>(72 % sure). It may be wrong' in page
    (button,) = re.findall(r'<button class="choice suggested"[^>]*>', page)
    assert 'data-shortcut="2 a"' in button
    assert 'value="1"' in button
    held = project.assignments.get()
    sent = {"choice": "1", "key": str(uuid4())}
    assert client.post(reverse("annotation:submit", args=[held.pk]), sent).status_code == 303
    assert Label.objects.get().choice == 1


def test_where_answers_are_confirmed_the_key_only_chooses():
    project, client, _query = suggested(shown=True, confirm_answers=True)
    page = page_of(client, project)
    (choice,) = re.findall(r'<label class="choice suggested"[^>]*>', page)
    assert 'data-shortcut="2 a"' in choice
    assert " checked" not in page


def test_with_many_classes_a_button_takes_it_and_the_key_needs_shift():
    project, client, _query = suggested(shown=True, classes=MANY)
    page = page_of(client, project)
    (button,) = re.findall(r'<p class="accept"><button[^>]*>', page)
    assert 'value="1" data-shortcut="a"' in button
    assert 'data-suggested="1"' in page
    confirmed, browser, _query = suggested(shown=True, classes=MANY, confirm_answers=True)
    shown = page_of(browser, confirmed)
    assert 'class="accept"' not in shown
    assert 'data-suggested="1"' in shown


@pytest.mark.parametrize("shown", [True, False])
def test_a_program_is_told_what_the_page_would_show(shown):
    project, _client, _query = suggested(shown=shown)
    person = project.memberships.get(role="annotator").user
    _token, secret = tokens.create_token(user=person, name="t", scopes=["labels:write"], lifetime=timedelta(days=1))
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    body = client.post(f"/api/v1/projects/{project.slug}/assignments").json()
    assert (body["suggestion"], body["suggestion_percent"]) == (("music", 72) if shown else (None, None))


@pytest.mark.parametrize("shown", [True, False])
def test_files_say_what_was_suggested_and_whether_it_was_seen(shown):
    project, _client, _query = suggested(shown=shown)
    person = project.memberships.get(role="annotator").user
    labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    lines = b"".join(export_labels(project=project, format="csv")).decode()
    (row,) = csv.DictReader(io.StringIO(lines))
    assert tuple(row) == TABLE_COLUMNS
    told = [row[name] for name in ("answer", "suggestion", "suggestion_percent", "suggestion_shown")]
    assert told == ["sport", "music", "72", str(shown)]
    (task,) = json.loads(b"".join(export_labels(project=project, format="label_studio")))
    assert task["meta"]["suggestion_shown"] is shown


def test_managers_read_both_groups_with_intervals_and_annotators_do_not():
    project, client, _query = suggested(shown=True)
    person = project.memberships.get(role="annotator").user
    (blind,) = open_records(project, 1, round_number=2)
    Query.objects.filter(pk=blind.pk).update(suggested=1, suggested_percent=60, suggestion_shown=False)
    for choice in (1, 0):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    address = reverse("annotation:quality", args=[project.slug])
    assert client.get(address).status_code in (403, 404)
    owner, manager = make_user(), Client()
    add_members(project, owner, role="manager")
    manager.force_login(owner)
    page = tight(manager.get(address).content.decode())
    assert "with the suggestion shown" in page
    assert "Anchoring: 100.0 points fewer answers differ from the model" in page
