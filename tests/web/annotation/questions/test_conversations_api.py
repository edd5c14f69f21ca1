import pytest

from annotation.models import Report
from annotation.models.people import IdempotentAnswer
from annotation.questions.services import labels, queue
from tests.factories import make_manager, make_project, open_records
from tests.programs import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    project = make_project(overlap=2)
    open_records(project, 2)
    return project


@pytest.fixture
def manager(project):
    return make_manager(project)


@pytest.fixture
def turns(project, people):
    turns = [queue.claim_next(project=project, user=person) for person in people]
    for turn in turns:
        labels.submit_label(assignment=turn, choice=0)
    return turns


def test_both_sides_write_and_read_and_no_answer_repeats_it(project, people, manager, turns):
    annotator, other, boss = Caller(people[0]), Caller(people[1]), Caller(manager)
    about = f"projects/{project.slug}/questions/{turns[0].query_id}/comments"
    for _again in range(2):
        said = annotator.post(f"assignments/{turns[0].pk}/comments", {"text": "is it Ada?"}, key="one")
        assert (said.status_code, said.content) == (204, b"")
    assert Report.objects.count() == 1
    (comment,) = boss.get(about).json()
    assert (comment["annotator"], comment["kind"], comment["comment"], comment["resolved_at"], comment["reply"]) == (
        people[0].get_username(),
        "comment",
        "is it Ada?",
        None,
        "",
    )
    replied = f"projects/{project.slug}/reports/{comment['report']}"
    answer = boss.post(replied, {"text": "no, not Ada"}, key="two")
    assert (answer.status_code, answer.content) == (204, b"")
    (comment,) = boss.get(about).json()
    assert (comment["reply"], comment["read_at"]) == ("no, not Ada", None)
    own = annotator.get(f"projects/{project.slug}/comments").json()
    assert [(one["text"], one["reply"], one["is_unread"]) for one in own] == [("is it Ada?", "no, not Ada", True)]
    assert {one["assignment"] for one in own} == {str(turns[0].pk)}
    assert "manager" not in {value for one in own for value in one.values()}
    assert len(annotator.get(f"projects/{project.slug}/comments", unread="true").json()) == 1
    assert annotator.post(f"assignments/{turns[0].pk}/comments/read").status_code == 204
    assert annotator.get(f"projects/{project.slug}/comments", unread="true").json() == []
    assert other.get(f"projects/{project.slug}/comments").json() == []
    assert not IdempotentAnswer.objects.filter(body__icontains="ada").exists()


def test_a_manager_marks_as_read_and_finds_what_is_unread(project, people, manager, turns):
    Caller(people[1]).post(f"assignments/{turns[1].pk}/comments", {"text": "hm"})
    boss = Caller(manager)
    about = f"projects/{project.slug}/questions"
    assert [row["id"] for row in boss.get(about, flag="comment").json()["questions"]] == [turns[1].query_id]
    (report,) = boss.get(f"projects/{project.slug}/reports").json()
    assert boss.client.delete(f"/api/v1/projects/{project.slug}/reports/{report['report']}").status_code == 204
    assert boss.get(about, flag="comment").json()["questions"] == []
    assert [row["id"] for row in boss.get(about, flag="talk").json()["questions"]] == [turns[1].query_id]
