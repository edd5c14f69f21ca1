import numpy as np
import pytest
from django.db import transaction
from django.test import Client

from annotation.data.services.forgetting import empty_records
from annotation.models import Picture, Query, Record, Role
from annotation.questions.services import labels, queue
from annotation.work.services.tokens import Scope
from tests.clients import program_of
from tests.factories import (
    add_members,
    asked_project,
    make_annotators,
    make_project,
    make_records,
    make_user,
    open_records,
    write_settings,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(own_storage):
    np.save(own_storage / "pixels.npy", np.zeros((2, 4, 5), dtype=np.uint8))
    made = make_project(data_kind="image", image_height=4, image_width=5)
    records = make_records(made, rows=2, pixels="pixels.npy")
    Picture.objects.create(record=records[0], width=60, height=40, content=b"as kept")
    queue.open_queries(project=made, round_number=1, record_ids=[record.pk for record in records])
    return made


def problem(answer):
    assert answer["Content-Type"] == "application/problem+json"
    return answer.status_code


def test_who_holds_a_question_gets_its_image_and_nobody_else(project):
    holder, other = make_annotators(project, 2)
    held = queue.claim_next(project=project, user=holder)
    address = f"/api/v1/assignments/{held.pk}/image"
    answer = program_of(holder, Scope.LABELS_WRITE).get(address)
    assert (answer.status_code, answer["Content-Type"], answer.content) == (200, "image/webp", b"as kept")
    assert "no-store" in answer["Cache-Control"]
    assert problem(program_of(other, Scope.LABELS_WRITE).get(address)) == 404
    assert problem(program_of(holder, Scope.LABELS_READ).get(address)) == 403
    assert problem(Client().get(address)) == 401
    labels.submit_label(assignment=held, choice=0)
    grey = queue.claim_next(project=project, user=holder)
    plain = program_of(holder, Scope.LABELS_WRITE).get(f"/api/v1/assignments/{grey.pk}/image")
    assert (plain["Content-Type"], plain.content[:4]) == ("image/png", b"\x89PNG")
    with transaction.atomic():
        empty_records(Record.objects.filter(pk=held.query.record_id), project=project)
    assert problem(program_of(holder, Scope.LABELS_WRITE).get(address)) == 404


def test_managers_get_it_where_they_read_questions(project, settings):
    reads, manages = make_user(), make_user()
    add_members(project, reads, manages, role=Role.MANAGER)
    add_members(project, reads, role=Role.ANNOTATOR)
    query = Query.objects.earliest("pk")
    address = f"/api/v1/projects/{project.slug}/questions/{query.pk}/image"
    program = program_of(reads, Scope.LABELS_READ)
    assert program.get(address).content == b"as kept"
    assert problem(program_of(manages, Scope.LABELS_READ).get(address)) == 404
    assert problem(program_of(reads, Scope.LABELS_WRITE).get(address)) == 403
    (person,) = make_annotators(project, 1)
    assert problem(program_of(person, Scope.LABELS_READ).get(address)) == 403
    for absent in (query.pk + 1000, "x", 2**70):
        assert problem(program.get(f"/api/v1/projects/{project.slug}/questions/{absent}/image")) == 404
    # Another project's question is not there under this one's name.
    other = make_project()
    (elsewhere,) = open_records(other, 1)
    assert problem(program.get(f"/api/v1/projects/{project.slug}/questions/{elsewhere.pk}/image")) == 404
    with transaction.atomic():
        empty_records(Record.objects.filter(pk=query.record_id), project=project)
    assert problem(program.get(address)) == 404
    settings.API_REQUESTS_PER_MINUTE = 0
    assert problem(program.get(address)) == 429


def test_who_reviews_gets_what_waits_for_their_review(project):
    write_settings(project, reviewed="all")
    answerer, reviewer = make_annotators(project, 2)
    add_members(project, reviewer, answerer, role=Role.REVIEWER)
    held = queue.claim_next(project=project, user=answerer)
    address = f"/api/v1/projects/{project.slug}/reviews/{held.query_id}/image"
    program = program_of(reviewer, Scope.LABELS_WRITE)
    assert problem(program.get(address)) == 404
    labels.submit_label(assignment=held, choice=0)
    assert program.get(address).content == b"as kept"
    # A reviewer never meets what they answered themselves.
    assert problem(program_of(answerer, Scope.LABELS_WRITE).get(address)) == 404
    assert problem(program_of(reviewer, Scope.LABELS_READ).get(address)) == 403
    assert problem(program.get(f"/api/v1/projects/{project.slug}/reviews/x/image")) == 404


def test_a_question_of_a_text_has_none():
    project, _, (holder,) = asked_project()
    held = queue.claim_next(project=project, user=holder)
    assert problem(program_of(holder, Scope.LABELS_WRITE).get(f"/api/v1/assignments/{held.pk}/image")) == 404
