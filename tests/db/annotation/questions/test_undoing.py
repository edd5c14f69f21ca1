from datetime import timedelta

import pytest
from django.db.models.functions import Now

from annotation import selectors
from annotation.errors import UndoRefused
from annotation.models import Assignment, Project, Query, QueryState, Report, ReportKind
from annotation.questions import selectors as answers
from annotation.questions.services import correcting, flags, labels, queue
from tests.factories import asked_project, make_annotators, make_project, open_records

pytestmark = pytest.mark.django_db


def held_by(project, person) -> Assignment:
    assignment = queue.claim_next(project=project, user=person)
    assert assignment is not None
    return assignment


def skip(project, person) -> Assignment:
    return labels.skip_assignment(assignment=held_by(project, person), reason="unsure")


def desk(project, person):
    return selectors.desks_of(person).get(pk=project.pk)


@pytest.fixture
def project() -> Project:
    return make_project(skips_to_set_aside=1)


def test_a_skipped_question_comes_back_to_who_skipped_it():
    project, (first, second), (person, _other) = asked_project(2, 2)
    skipped = skip(project, person)
    assert held_by(project, person).query_id == second.pk
    assert answers.last_done(desk(project, person)) == "skipped"
    undone = correcting.undo_last(project=project, user=person)
    assert (undone.pk, undone.state, undone.query_id) == (skipped.pk, "leased", first.pk)
    assert dict(Query.objects.values_list("pk", "open_slots")) == {first.pk: 0, second.pk: 1}
    labels.submit_label(assignment=undone, choice=1)
    assert answers.last_done(desk(project, person)) == project.classes[1]


def test_the_newest_is_taken_back_first_and_then_the_one_before():
    project, (first, second, third), (person, _other) = asked_project(3, 2)
    labels.submit_label(assignment=held_by(project, person), choice=0)
    skip(project, person)
    # Within one transaction all is done at one moment.
    Assignment.objects.filter(query=first).update(finished_at=Now() - timedelta(minutes=2))
    assert held_by(project, person).query_id == third.pk
    assert correcting.undo_last(project=project, user=person).query_id == second.pk
    assert correcting.undo_last(project=project, user=person).query_id == first.pk
    with pytest.raises(UndoRefused):
        correcting.undo_last(project=project, user=person)


def test_a_question_set_aside_because_of_the_skip_is_asked_again(project):
    (query,) = open_records(project, 1)
    (person,) = make_annotators(project, 1)
    skip(project, person)
    query.refresh_from_db()
    assert query.state == QueryState.SET_ASIDE
    correcting.undo_last(project=project, user=person)
    query.refresh_from_db()
    assert (query.state, query.open_slots) == (QueryState.OPEN, 0)


@pytest.mark.parametrize("kind", [ReportKind.BROKEN, ReportKind.SENSITIVE])
def test_a_flag_taken_back_is_settled_and_stays_stored(kind):
    project, (query,), (person, _other) = asked_project(1, 2)
    flags.flag_question(assignment=held_by(project, person), kind=kind)
    assert answers.last_done(desk(project, person)) == "flagged"
    correcting.undo_last(project=project, user=person)
    query.refresh_from_db()
    report = Report.objects.get()
    assert (query.state, query.open_slots) == (QueryState.OPEN, 0)
    assert (report.kind, report.resolved_by_id) == (kind, person.pk)


def test_what_somebody_else_found_sensitive_too_stays_with_the_manager():
    project, (query,), (person, other) = asked_project(1, 2, overlap=2)
    mine, theirs = held_by(project, person), held_by(project, other)
    flags.flag_question(assignment=mine, kind=ReportKind.SENSITIVE)
    flags.flag_question(assignment=theirs, kind=ReportKind.SENSITIVE)
    assert answers.last_done(desk(project, person)) is None
    with pytest.raises(UndoRefused):
        correcting.undo_skip(project=project, skipped=mine)
    query.refresh_from_db()
    assert query.state == QueryState.SET_ASIDE
    assert Report.objects.filter(resolved_at=None).count() == 2


def test_a_skip_stays_when_somebody_else_has_the_question():
    project, _, (person, other) = asked_project(1, 2)
    skipped = skip(project, person)
    labels.submit_label(assignment=held_by(project, other), choice=1)
    assert answers.last_done(desk(project, person)) is None
    for undo in (
        lambda: correcting.undo_last(project=project, user=person),
        lambda: correcting.undo_skip(project=project, skipped=skipped),
    ):
        with pytest.raises(UndoRefused):
            undo()
    assert Query.objects.get().open_slots == 0


def test_a_skip_stays_after_ten_minutes_and_after_a_manager_decided(project):
    (query,) = open_records(project, 1)
    (person,) = make_annotators(project, 1)
    skipped = skip(project, person)
    flags.leave_out_set_aside(project=project, query_id=query.pk, user=project.created_by)
    with pytest.raises(UndoRefused):
        correcting.undo_skip(project=project, skipped=skipped)
    assert not selectors.undoable_skips(person).exists()
    Query.objects.update(state=QueryState.OPEN, open_slots=1)
    assert selectors.undoable_skips(person).exists()
    Assignment.objects.update(finished_at=Now() - timedelta(minutes=11))
    assert not selectors.undoable_skips(person).exists()


def test_nobody_takes_back_what_somebody_else_skipped():
    project, _, (person, other) = asked_project(1, 2)
    skip(project, person)
    with pytest.raises(UndoRefused):
        correcting.undo_last(project=project, user=other)
