import pytest

from annotation.models import Query, QueryState, Report, ReportKind, Role
from annotation.questions.services import flags, queue
from tests.factories import add_members, make_annotators, make_manager, make_project, open_records
from tests.programs import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    project = make_project()
    open_records(project, 2)
    return project


@pytest.fixture
def ann(project):
    return make_annotators(project, 1)[0]


@pytest.fixture
def manager(project):
    return make_manager(project)


def flag(project, ann, kind=ReportKind.SENSITIVE) -> Report:
    return flags.flag_question(
        assignment=queue.claim_next(project=project, user=ann), kind=kind, comment="names somebody"
    )


def test_a_question_set_aside_is_asked_again_or_left_out(project, ann, manager):
    program, at = Caller(manager), f"projects/{project.slug}/set-aside"
    report = flag(project, ann)
    (one,) = program.get(at).json()
    assert (one["question"], one["text"]) == (report.query_id, None)
    assert one["skipped"] == [{"reason": "sensitive", "people": 1}]
    assert (one["reports"][0]["annotator"], one["reports"][0]["comment"]) == (ann.get_username(), "names somebody")
    for _again in range(2):
        assert program.post(f"{at}/{report.query_id}", {"decision": "ask"}, key="one").status_code == 204
    assert Query.objects.get(pk=report.query_id).state == QueryState.OPEN
    report.refresh_from_db()
    assert report.resolved_by == manager
    late = program.post(f"{at}/{report.query_id}", {"decision": "leave_out"})
    assert (late.status_code, late.json()["code"]) == (422, "This question was settled meanwhile.")
    again = flag(project, ann)
    assert program.post(f"{at}/{again.query_id}", {"decision": "leave_out"}).status_code == 204
    assert Query.objects.get(pk=again.query_id).state == QueryState.WITHDRAWN
    assert program.get(at).json() == []
    for number in ("0", "x", str(2**63)):
        assert program.post(f"{at}/{number}", {"decision": "ask"}).status_code == 404


def test_a_record_is_read_by_those_alone_who_may(project, ann, manager):
    flag(project, ann)
    add_members(project, manager, role=Role.ANNOTATOR)
    (one,) = Caller(manager).get(f"projects/{project.slug}/set-aside").json()
    assert one["text"].startswith("record")


def test_what_is_said_about_other_questions_is_settled(project, ann, manager):
    program, at = Caller(manager), f"projects/{project.slug}/reports"
    report = flags.comment_on(assignment=queue.claim_next(project=project, user=ann), comment="blurred")
    (one,) = program.get(at).json()
    assert (one["report"], one["kind"], one["comment"]) == (report.pk, "comment", "blurred")
    for _again in range(2):
        assert program.delete(f"{at}/{report.pk}").status_code == 204
    assert program.get(at).json() == []
    report.refresh_from_db()
    assert report.resolved_by == manager
    assert program.delete(f"{at}/0").status_code == 404
