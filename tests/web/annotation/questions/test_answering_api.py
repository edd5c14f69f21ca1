from uuid import uuid4

import pytest
from django.utils import timezone

from annotation.models import Label, Project, Query, QueryState, Report, ReportKind, Role
from annotation.models.people import IdempotentAnswer
from annotation.questions.services import flags, labels, queue
from tests.factories import add_members, make_annotators, make_candidates, make_manager, make_project, open_records
from tests.programs import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    project = make_project()
    open_records(project, 3)
    return project


@pytest.fixture
def ann(project):
    return make_annotators(project, 1)[0]


@pytest.fixture
def program(ann):
    return Caller(ann)


def test_the_last_answer_skip_or_flag_is_taken_back(project, ann, program):
    at = f"projects/{project.slug}/assignments"
    claimed = program.post(at).json()
    assert program.post(f"assignments/{claimed['id']}/label", {"choice": 1}).status_code == 200
    for _again in range(2):
        undone = program.post(f"{at}/undo", key="one")
        assert (undone.status_code, undone.json()["id"], undone.json()["text"]) == (200, claimed["id"], claimed["text"])
    assert not Label.objects.filter(superseded_at=None).exists()
    for path, body in (("skip", {}), ("flag", {"kind": "sensitive", "comment": "names somebody"})):
        assert program.post(f"assignments/{claimed['id']}/{path}", body).status_code == 204
        assert program.post(f"{at}/undo").json()["id"] == claimed["id"]
    assert Query.objects.get(assignments=claimed["id"]).state == QueryState.OPEN
    # A key keeps the answer for a day, and with it the question, until its record is erased.
    assert IdempotentAnswer.objects.filter(body__contains=claimed["text"]).count() == 1


def test_a_batch_is_claimed_and_answered_in_one_call_each(project, ann, program):
    at = f"projects/{project.slug}/assignments"
    one, two, three = (asked["id"] for asked in program.post(f"{at}/batch", {"most": 50}).json())
    assert [asked["id"] for asked in program.post(f"{at}/batch").json()] == [one, two, three]
    foreign = str(uuid4())
    given = [
        {"assignment": one, "choice": 1},
        {"assignment": foreign, "choice": 0},
        {"assignment": two, "choice": 9},
        {"assignment": three, "choice": 0},
    ]
    for _again in range(2):
        done = program.post(f"{at}/answers", {"answers": given}, key="k").json()
        assert [answer["assignment"] for answer in done] == [one, foreign, two, three]
        assert [bool(answer["error"]) for answer in done] == [False, True, True, False]
    assert {str(label.assignment_id): label.choice for label in Label.objects.all()} == {one: 1, three: 0}
    assert [asked["id"] for asked in program.post(f"{at}/batch").json()] == [two]
    assert program.post(f"{at}/batch", {"most": 51}).status_code == 422
    assert program.post(f"{at}/answers", {"answers": [given[0]] * 51}).status_code == 422


def test_a_question_is_reported_once_instead_of_answered(project, ann, program):
    claimed = program.post(f"projects/{project.slug}/assignments").json()
    at = f"assignments/{claimed['id']}/flag"
    assert program.post(at, {"kind": "comment"}).status_code == 422
    for _again in range(2):
        assert program.post(at, {"kind": "broken", "comment": "cut off"}).status_code == 204
    report = Report.objects.get()
    assert (report.kind, report.comment, report.annotator) == ("broken", "cut off", ann)
    answered = program.post(f"projects/{project.slug}/assignments").json()
    program.post(f"assignments/{answered['id']}/label", {"choice": 0})
    late = program.post(f"assignments/{answered['id']}/flag", {"kind": "broken"})
    assert (late.status_code, late.json()["code"]) == (
        409,
        "You answered this question. Undo that answer first.",
    )


def test_own_answers_are_listed_and_changed_until_a_training_may_have_used_them(project, ann, program):
    turn = queue.claim_next(project=project, user=ann)
    labels.submit_label(assignment=turn, choice=0)
    at = f"projects/{project.slug}/answers"
    found = program.get(at).json()
    (one,) = found["answers"]
    assert (one["assignment"], one["choice"], one["choices"], one["may_change"]) == (str(turn.pk), 0, None, True)
    assert (one["text"], found["before"]) == (turn.query.record.text, None)
    for _again in range(2):
        changed = program.post(f"assignments/{turn.pk}/correction", {"choice": 2}, key="one")
        assert (changed.status_code, changed.json()["choice"]) == (200, 2)
    assert list(Label.objects.filter(superseded_at=None).values_list("choice", flat=True)) == [2]
    assert program.get(at).json()["answers"][0]["choice"] == 2
    odd = program.post(f"assignments/{turn.pk}/correction", {"choice": 99})
    assert (odd.status_code, odd.json()["code"]) == (422, "There are {possible} answers to choose from.")
    assert program.post(f"assignments/{turn.pk}/correction", {"choices": [1]}).status_code == 422
    Project.objects.filter(pk=project.pk).update(labels_used_at=timezone.now())
    used = program.post(f"assignments/{turn.pk}/correction", {"choice": 1})
    assert (used.status_code, used.json()["code"]) == (409, "This answer stays: a training may have used it.")
    assert not program.get(at).json()["answers"][0]["may_change"]


def test_those_alone_that_a_manager_wrote_about(project, ann, program):
    turns = []
    for _ in range(2):
        turns.append(queue.claim_next(project=project, user=ann))
        labels.submit_label(assignment=turns[-1], choice=0)
    boss = make_manager(project)
    report = flags.comment_on(assignment=turns[0], comment="is it?")
    flags.reply(project=project, report_id=report.pk, text="look again", author=boss)
    at = f"projects/{project.slug}/answers"
    assert len(program.get(at).json()["answers"]) == 2
    unread = program.get(at, unread="true")
    assert [one["assignment"] for one in unread.json()["answers"]] == [str(turns[0].pk)]
    assert "look again" not in unread.content.decode()


def test_in_front_of_a_crowd_an_answer_shows_what_passed_the_gate_alone():
    crowd = make_project(oracle="crowd")
    candidates = make_candidates(crowd, ["play jazz"])
    queue.open_queries(project=crowd, round_number=1, query_ids=[query.pk for query in candidates])
    (ann,) = make_annotators(crowd, 1)
    labels.submit_label(assignment=queue.claim_next(project=crowd, user=ann), choice=0)
    (one,) = Caller(ann).get(f"projects/{crowd.slug}/answers").json()["answers"]
    assert (one["text"], one["fields"], one["image_url"], one["owner_id"], one["metadata"]) == (
        "play jazz",
        None,
        None,
        None,
        None,
    )


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
