import pytest

from annotation.errors import InvalidConfiguration, LeaseExpired
from annotation.models import Assignment, AssignmentState, Label, Query, QueryState, Report, ReportKind
from annotation.questions.services import correcting, flags, labels, queue
from tests.factories import asked_project, make_project

pytestmark = pytest.mark.django_db


def skip(project, person, reason="unsure"):
    assignment = queue.claim_next(project=project, user=person)
    return labels.skip_assignment(assignment=assignment, reason=reason)


def test_after_so_many_skips_a_question_is_set_aside():
    project, (query,), people = asked_project(1, 4, skips_to_set_aside=2)
    skip(project, people[0])
    query.refresh_from_db()
    assert query.state == QueryState.OPEN
    skip(project, people[1])
    query.refresh_from_db()
    assert (query.state, query.open_slots) == (QueryState.SET_ASIDE, 0)
    assert queue.claim_next(project=project, user=people[2]) is None


def test_when_nobody_is_left_to_ask_fewer_skips_are_enough():
    project, (query,), (first, second) = asked_project(1, 2, skips_to_set_aside=5)
    skip(project, first)
    skip(project, second)
    query.refresh_from_db()
    assert query.state == QueryState.SET_ASIDE


def test_no_open_question_is_left_and_the_project_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(flags.jobs, "send_project_changed", told.append)
    project, _, (person,) = asked_project(skips_to_set_aside=1)
    skip(project, person)
    assert not Query.objects.filter(state=QueryState.OPEN).exists()
    assert told == [project.pk]


def test_who_is_at_it_may_still_answer():
    project, (query,), (first, second) = asked_project(1, 2, overlap=2, skips_to_set_aside=1)
    held = queue.claim_next(project=project, user=first)
    skip(project, second)
    labels.submit_label(assignment=held, choice=1)
    query.refresh_from_db()
    assert query.state == QueryState.SET_ASIDE
    assert Label.objects.count() == 1


def test_taking_an_answer_back_leaves_it_set_aside():
    project, (query,), (first, second) = asked_project(1, 2, overlap=2, skips_to_set_aside=1)
    labels.submit_label(assignment=queue.claim_next(project=project, user=first), choice=1)
    skip(project, second)
    correcting.undo_label(project=project, user=first)
    query.refresh_from_db()
    assert query.state == QueryState.SET_ASIDE


def test_asked_again_it_goes_to_those_who_skipped_it_too():
    project, (query,), (first, second) = asked_project(1, 2, overlap=2, skips_to_set_aside=1)
    labels.submit_label(assignment=queue.claim_next(project=project, user=first), choice=1)
    skip(project, second)
    flags.ask_set_aside_again(project=project, query_id=query.pk, user=project.created_by)
    query.refresh_from_db()
    assert (query.state, query.open_slots) == (QueryState.OPEN, 1)
    labels.submit_label(assignment=queue.claim_next(project=project, user=second), choice=1)
    query.refresh_from_db()
    assert query.state == QueryState.CLOSED


def test_left_out_it_never_comes_back():
    project, (query,), (person,) = asked_project(skips_to_set_aside=1)
    skip(project, person)
    flags.leave_out_set_aside(project=project, query_id=query.pk, user=project.created_by)
    query.refresh_from_db()
    assert query.state == QueryState.WITHDRAWN
    with pytest.raises(InvalidConfiguration):
        flags.ask_set_aside_again(project=project, query_id=query.pk, user=project.created_by)


def test_a_closed_block_takes_what_was_set_aside_with_it():
    project, (query,), (person,) = asked_project(selection="secret_sample", selection_rate=0.1, skips_to_set_aside=1)
    skip(project, person)
    labels.withdraw_questions(project=project, round_number=1)
    query.refresh_from_db()
    assert query.state == QueryState.WITHDRAWN


class TestFlags:
    def test_a_broken_question_is_skipped_and_reported_once(self):
        project, (query,), (person, other) = asked_project(1, 2)
        assignment = queue.claim_next(project=project, user=person)
        for _ in range(2):
            flags.flag_question(assignment=assignment, kind=ReportKind.BROKEN, comment="no words")
        assert Report.objects.get().comment == "no words"
        assert Assignment.objects.get().skip_reason == "broken"
        query.refresh_from_db()
        assert (query.state, query.open_slots) == (QueryState.OPEN, 1)
        assert queue.claim_next(project=project, user=other)

    def test_a_sensitive_question_leaves_everybodys_page_at_once(self):
        project, (query,), (first, second, third) = asked_project(1, 3, overlap=3)
        others = queue.claim_next(project=project, user=second)
        assignment = queue.claim_next(project=project, user=first)
        flags.flag_question(assignment=assignment, kind=ReportKind.SENSITIVE)
        query.refresh_from_db()
        assert (query.state, query.open_slots) == (QueryState.SET_ASIDE, 0)
        others.refresh_from_db()
        assert others.state == AssignmentState.EXPIRED
        assert queue.claim_next(project=project, user=third) is None
        with pytest.raises(LeaseExpired, match="set aside"):
            labels.submit_label(assignment=others, choice=0)

    def test_asking_again_settles_the_reports(self):
        project, (query,), (person,) = asked_project()
        assignment = queue.claim_next(project=project, user=person)
        flags.comment_on(assignment=assignment, comment="odd")
        flags.comment_on(assignment=assignment, comment="odd")
        flags.flag_question(assignment=assignment, kind=ReportKind.SENSITIVE)
        assert Report.objects.filter(resolved_at=None).count() == 2
        flags.ask_set_aside_again(project=project, query_id=query.pk, user=project.created_by)
        assert not Report.objects.filter(resolved_at=None).exists()

    def test_a_report_of_another_project_is_not_resolved(self):
        project, _, (person,) = asked_project()
        report = flags.comment_on(assignment=queue.claim_next(project=project, user=person), comment="odd")
        flags.resolve_report(project=make_project(), report_id=report.pk, user=person)
        report.refresh_from_db()
        assert report.resolved_at is None
        flags.resolve_report(project=project, report_id=report.pk, user=project.created_by)
        report.refresh_from_db()
        assert report.resolved_by == project.created_by
