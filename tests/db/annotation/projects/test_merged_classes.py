"""A class counts as another one: answers stay as given, and everything that reads them counts them as the other."""

from contextlib import contextmanager

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotation.choices.classes import (
    MERGE_BEHIND_GATE,
    MERGE_IN_STREAM,
    MERGE_OF_STEPS,
    NOT_ASKED,
    NOT_DECIDED_BEFOREHAND,
    USED,
)
from annotation.data.services.label_files import export_labels
from annotation.errors import InvalidConfiguration
from annotation.models import Consensus, Label, Project, Query, QueryState, Role
from annotation.models.quality import GoldQuery, GoldSource
from annotation.projects.services.classes import merge_class, merge_hindrance_of, take_back_merge
from annotation.questions.selectors import checks_in_use, checks_of, offered_answers
from annotation.questions.services import labels, queue
from annotation.review import selectors, services
from annotation.review import selectors as browsing
from annotation.review.selectors import agreed_choice
from tests.db.annotation.projects.test_classes import other_projects
from tests.factories import add_members, make_project, make_user, open_records

pytestmark = pytest.mark.django_db(transaction=True)
CLASSES = ["bike", "car", "bicycle"]


@pytest.fixture
def project():
    opened = make_project(classes=CLASSES)
    open_records(opened, 3)
    return opened


def merge(project, name="bike", into="bicycle", known=True):
    return merge_class(project=project, name=name, into=into, known_beforehand=known)


def refused(project, **merged):
    with pytest.raises(InvalidConfiguration) as refusal:
        merge(project, **merged)
    assert Project.objects.get(pk=project.pk).merged_classes == project.merged_classes
    return refusal.value.broken


def answer(project, choice, person=None):
    if person is None:
        person = make_user()
        add_members(project, person, role=Role.ANNOTATOR)
    return labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)


def test_what_was_answered_stays_and_counts_as_the_other(project):
    given = [answer(project, choice) for choice in (0, 1, 2)]
    merged = merge(project)
    assert offered_answers(merged) == [(1, "car"), (2, "bicycle")]
    assert list(Label.objects.order_by("pk").values_list("choice", flat=True)) == [0, 1, 2]
    lines = [line.split(",") for line in b"".join(export_labels(project=merged, format="csv")).decode().splitlines()]
    assert [lines[0][4], lines[0][8], lines[0][-1]] == ["answer", "consensus", "counts_as"]
    assert [(line[4], line[8], line[-1]) for line in lines[1:]] == [
        ("bike", "bicycle", "bicycle"),
        ("car", "car", "car"),
        ("bicycle", "bicycle", "bicycle"),
    ]
    assert agreed_choice(given[0].query) == 2
    rows = {
        row.query.pk: row for row in browsing.questions(merged, browsing.WantedQuestions(choice=2), readable=False).rows
    }
    assert set(rows) == {given[0].query_id, given[2].query_id}
    assert rows[given[0].query_id].agreed == "bicycle"
    assert rows[given[0].query_id].answers == [("bike", 1)]


def test_two_who_named_either_agree_and_what_they_said_is_kept(manager):
    project = make_project(classes=CLASSES, overlap=3)
    open_records(project, 2)
    project = merge(project)
    people = [make_user() for _ in range(3)]
    add_members(project, *people, role=Role.ANNOTATOR)
    for choices in ((0, 1, 2), (0, 0, 1)):
        for person, choice in zip(people, choices, strict=True):
            answer(project, choice, person)
    assert sorted(Consensus.objects.values_list("choice", "votes", "agreeing")) == [(0, 3, 2), (0, 3, 2)]
    sheets = selectors.annotators_work(project)
    assert sorted((sheet.accepted, sheet.refused) for sheet in sheets) == [(1, 1), (1, 1), (2, 0)]
    back = take_back_merge(project=project, name="bike")
    assert back.merged_classes == {}
    assert {agreed_choice(query) for query in Query.objects.filter(project=back)} == {0}


def test_who_decides_a_question_is_agreed_with_by_either_class(manager):
    project = make_project(classes=CLASSES, overlap=2)
    open_records(project, 1)
    for choice in (0, 1):
        answer(project, choice)
    project = merge(project)
    query = Query.objects.get(project=project)
    assert query.state == QueryState.DISPUTED
    decided = services.settle(project=project, query_id=query.pk, choice=2, person=manager)
    assert (decided.votes, decided.agreeing) == (2, 1)


def test_a_check_that_expects_either_is_answered_rightly_by_the_other(project):
    person = make_user()
    add_members(project, person, role=Role.ANNOTATOR)
    for choice in (0, 1):
        label = answer(project, choice, person)
        Consensus.objects.filter(query=label.query).delete()
        Query.objects.filter(pk=label.query_id).update(state=QueryState.GOLD)
        GoldQuery.objects.create(query=label.query, choice=2, source=GoldSource.ASKED, added_by=project.created_by)
    right = [checks_of(project=one, user_id=person.pk).right for one in (project, merge(project))]
    assert right == [0, 1]
    project.refresh_from_db()
    assert [check.wrong for check in checks_in_use(project)] == [1, 0]
    (sheet,) = selectors.annotators_work(project)
    assert (sheet.accepted, sheet.missed, sheet.checks.right) == (1, 1, 1)


def test_no_chain_and_no_circle(project):
    merged = merge(project)
    assert "already" in refused(merged, name="bike", into="car")["name"]
    assert "already" in refused(merged, name="car", into="bike")["into"]
    assert "Another class" in refused(merged, name="bicycle", into="car")["name"]
    assert "At least two classes" in refused(merged, name="car", into="bicycle")["name"]


def test_what_was_seen_in_answers_is_not_merged(project):
    assert refused(project, known=False) == {"known_beforehand": NOT_DECIDED_BEFOREHAND}


def test_before_anything_rests_on_them_the_list_itself_is_changed():
    assert merge_hindrance_of(make_project(classes=CLASSES)) == NOT_ASKED


def test_where_a_number_of_classes_has_a_proof_none_is_merged(manager):
    for rule, found in zip(
        (MERGE_BEHIND_GATE, MERGE_IN_STREAM, MERGE_OF_STEPS), other_projects(manager).values(), strict=True
    ):
        assert merge_hindrance_of(found) == rule
        assert refused(found, name=found.classes[0], into=found.classes[1])["name"] == rule
        with kept_by_the_database():
            store(found, {found.classes[0]: found.classes[1]})


@contextmanager
def kept_by_the_database():
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        yield
    assert refusal.value.__cause__.diag.constraint_name == "annotation_project_merges_hold"


def store(project, merged, at="2026-01-01T00:00:00+00:00"):
    said = {name: {"into": into, "at": at} for name, into in merged.items()}
    Project.objects.filter(pk=project.pk).update(merged_classes=said)


@pytest.mark.parametrize(
    "merged",
    [
        {"film": "car"},
        {"bike": "film"},
        {"bike": "bike"},
        {"bike": "car", "car": "bicycle"},
        {"bike": "car", "car": "bike"},
        {"bike": "bicycle", "car": "bicycle"},
        {"bike": None},
    ],
)
def test_the_database_holds_what_a_merge_is(project, merged):
    with kept_by_the_database():
        store(project, merged)
    store(project, {"bike": "bicycle"})


def test_the_database_wants_to_know_since_when(project):
    with kept_by_the_database():
        store(project, {"bike": "bicycle"}, at=None)


def test_a_merge_that_a_training_took_answers_under_stays(project):
    earlier = timezone.now()
    merged = merge(project)
    Project.objects.filter(pk=project.pk).update(labels_used_at=earlier)
    assert take_back_merge(project=merged, name="bike").merged_classes == {}
    merged = merge(project)
    Project.objects.filter(pk=project.pk).update(labels_used_at=timezone.now())
    with pytest.raises(InvalidConfiguration) as refusal:
        take_back_merge(project=merged, name="bike")
    assert refusal.value.broken == {"name": USED}
    for other in ({}, {"bike": "car"}):
        with kept_by_the_database():
            store(project, other)


def test_what_counts_as_itself_is_not_taken_back(project):
    with pytest.raises(InvalidConfiguration, match="cannot be merged into itself"):
        take_back_merge(project=project, name="car")
