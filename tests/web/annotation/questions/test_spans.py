"""Spans of a text: answers, corrections and reviews by pages and by programs."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from annotation.data.services.mappings import layout_of
from annotation.errors import InvalidUpload
from annotation.models import Consensus, DatasetRole, Label, Query, QueryState, Role
from annotation.questions.selectors import spans_of
from annotation.questions.services import queue
from annotation.review import selectors as browsing
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal.spans.text import Span
from tests.clients import browser_of
from tests.factories import add_members, make_annotators, make_project, make_records, make_user

pytestmark = pytest.mark.django_db
TEXT = "Ada flew to Paris"
ADA, PARIS = Span(0, 3, "name"), Span(12, 17, "place")


def ask(overlap=1):
    project = make_project(question_kind="spans", classes=["name", "place"], overlap=overlap)
    (record,) = make_records(project, [TEXT])
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
    return project, make_annotators(project, overlap)


def stored(project):
    choice = Label.objects.get(superseded_at=None).choice
    return spans_of(project, [choice])[choice]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "Marking spans needs JavaScript."),
        ({"spans": "no list"}, "never overlap"),
        ({"spans": "[" * 100_000}, "never overlap"),
        ({"spans": '[[0,3,"name"],[2,8,"name"]]'}, "never overlap"),
        ({"spans": '[[0,3,"date"]]'}, "one of the classes"),
    ],
)
def test_other_answers_are_refused(sent, said):
    project, (person,) = ask()
    held = queue.claim_next(project=project, user=person)
    response = browser_of(person).post(reverse("annotation:submit", args=(held.pk,)), sent)
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Label.objects.exists()


def test_a_page_stores_them_and_own_answers_show_their_words():
    project, (person,) = ask()
    held = queue.claim_next(project=project, user=person)
    web = browser_of(person)
    web.post(reverse("annotation:submit", args=(held.pk,)), {"spans": '[[12,17,"place"],[0,3,"name"]]'})
    assert stored(project) == (ADA, PARIS)
    assert Consensus.objects.get().choice == Label.objects.get().choice
    for place, n in enumerate((1, 1)):
        assert len(browsing._naming(project, Label.objects.all(), place)) == n
    page = web.get(reverse("annotation:own_answers", args=(project.slug,))).content.decode()
    assert "name: Ada; place: Paris" in page
    assert 'name="choice"' not in page
    web.post(reverse("annotation:correct_answer", args=(project.slug, held.query_id)), {"spans": '[[0,3,"name"]]'})
    assert stored(project) == (ADA,)


def test_programs_give_them_and_get_them_back():
    project, (person,) = ask()
    token = tokens.create_token(user=person, name="t", scopes=[Scope.LABELS_WRITE.value], lifetime=timedelta(days=1))[1]
    web = Client(headers={"Authorization": f"Bearer {token}"})

    def post(path, body):
        return web.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")

    held = post(f"projects/{project.slug}/assignments", {}).json()
    said = [{"start": 0, "end": 3, "type": "name"}]
    for wrong in ({"choice": 0}, {"spans": said, "choice": 0}, {"spans": [said[0] | {"end": 40}]}):
        assert post(f"assignments/{held['id']}/label", wrong).status_code == 422
    answer = post(f"assignments/{held['id']}/label", {"spans": said}).json()
    assert (answer["spans"], answer["choice"], answer["choices"]) == (said, None, None)
    (own,) = web.get(f"/api/v1/projects/{project.slug}/answers").json()["answers"]
    assert (own["spans"], own["answer"]) == (said, "name: Ada")


def test_files_of_classes_are_refused():
    project, _people = ask()
    with pytest.raises(InvalidUpload):
        layout_of(project, DatasetRole.PUBLIC_START, {"text": "text", "label": "label"})
    assert layout_of(project, DatasetRole.PUBLIC_TEST, {"text": "text", "label": "spans"}).spans
    assert layout_of(project, DatasetRole.POOL, {"text": "text"}).text == "text"


def test_a_reviewer_decides_between_different_sets():
    project, people = ask(overlap=2)
    reviewer = make_user()
    add_members(project, reviewer, role=Role.REVIEWER)
    for person, spans in zip(people, ('[[0,3,"name"]]', "[]"), strict=True):
        held = queue.claim_next(project=project, user=person)
        browser_of(person).post(reverse("annotation:submit", args=(held.pk,)), {"spans": spans})
    query = Query.objects.get()
    assert query.state == QueryState.DISPUTED
    web = browser_of(reviewer)
    page = web.get(reverse("annotation:review", args=(project.slug,))).content.decode()
    assert "name: Ada" in page
    assert "no spans" in page
    web.post(reverse("annotation:settle", args=(project.slug, query.pk)), {"spans": '[[12,17,"place"]]'})
    agreed = Consensus.objects.get().choice
    assert spans_of(project, [agreed]) == {agreed: (PARIS,)}
