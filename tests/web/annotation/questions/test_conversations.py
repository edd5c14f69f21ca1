import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Query, QueryState, Report, ReportKind, Role
from annotation.models.history import Action
from annotation.models.people import IdempotentAnswer
from annotation.questions.services import flags, labels, queue
from tests.clients import browser_of
from tests.factories import (
    add_members,
    make_annotators,
    make_candidates,
    make_manager,
    make_project,
    make_user,
    open_records,
)
from tests.programs import Caller

pytestmark = pytest.mark.django_db
WORDS = "does a flute & a <b>drum</b> count?"


@pytest.fixture
def project():
    project = make_project(overlap=2)
    open_records(project, 2)
    return project


@pytest.fixture
def manager(project):
    return make_manager(project)


@pytest.fixture
def turn(project, people):
    turns = []
    for person in people:
        turns.append(queue.claim_next(project=project, user=person))
        labels.submit_label(assignment=turns[-1], choice=0)
    assert turns[0].query_id == turns[1].query_id
    return turns[0]


def own_page(project, client, **chosen):
    return client.get(reverse("annotation:own_answers", args=[project.slug]), chosen)


def write_back(project, client, query_id, **sent):
    return client.post(reverse("annotation:write_back", args=[project.slug, query_id]), sent)


def settle(project, client, **sent):
    report = Report.objects.latest("pk")
    return client.post(reverse("annotation:resolve", args=[project.slug, report.pk]), {"question": "1", **sent})


def one_question(project, client, query_id):
    return client.get(reverse("annotation:question", args=[project.slug, query_id]))


def table(project, client, flag):
    return [
        row.query.pk
        for row in client.get(reverse("annotation:questions", args=[project.slug]), {"flag": flag}).context["rows"]
    ]


def test_they_write_to_each_other_and_each_sees_what_is_new(project, people, manager, turn):
    annotator, boss = browser_of(people[0]), browser_of(manager)
    assert write_back(project, annotator, turn.query_id, comment=WORDS).status_code == 302
    assert (
        table(project, boss, "comment")
        == table(project, boss, "talk")
        == table(project, boss, "any")
        == [turn.query_id]
    )
    told = one_question(project, boss, turn.query_id).content.decode()
    # Plain text, whatever stands in it.
    assert "does a flute &amp; a &lt;b&gt;drum&lt;/b&gt; count?" in told
    sent = settle(project, boss, reply="1", comment="both do")
    assert sent["Location"] == reverse("annotation:question", args=[project.slug, turn.query_id])
    assert table(project, boss, "comment") == table(project, boss, "any") == []
    assert table(project, boss, "talk") == [turn.query_id]
    assert "not read yet" in one_question(project, boss, turn.query_id).content.decode()

    assert (
        "1 comment of a manager is unread"
        in annotator.get(reverse("annotation:label", args=[project.slug])).content.decode()
    )
    content = own_page(project, annotator, only="unread").content.decode()
    assert "both do" in content
    assert "manager" not in content.replace("manager</", "").replace("managers", "").replace("A manager", "")
    back = write_back(project, annotator, turn.query_id, read="1", only="unread")
    assert back["Location"].endswith("?only=unread")
    assert not own_page(project, annotator, only="unread").context["page"].answers
    assert "is unread" not in annotator.get(reverse("annotation:label", args=[project.slug])).content.decode()
    assert "both do" in own_page(project, annotator).content.decode()


def test_an_annotator_never_reads_what_another_wrote_or_was_told(project, people, manager, turn):
    write_back(project, browser_of(people[0]), turn.query_id, comment="a flute says")
    settle(project, browser_of(manager), reply="1", comment="to the flute")
    other = browser_of(people[1])
    for address in ("own_answers", "label"):
        content = other.get(reverse(f"annotation:{address}", args=[project.slug])).content.decode()
        assert "flute" not in content
        assert "is unread" not in content
    # And marks nothing of it as read.
    write_back(project, other, turn.query_id, read="1")
    assert Report.objects.get().read_at is None


def test_who_was_never_asked_finds_no_question(project, manager, turn):
    (stranger,) = make_annotators(project, 1)
    assert write_back(project, browser_of(stranger), turn.query_id, comment="me too").status_code == 404
    assert write_back(project, browser_of(manager), turn.query_id, comment="me too").status_code == 404
    assert not Report.objects.exists()


def test_a_comment_is_read_without_an_answer_and_the_log_says_who(project, people, manager, turn):
    write_back(project, browser_of(people[0]), turn.query_id, comment=WORDS)
    boss = browser_of(manager)
    settle(project, boss)
    assert Report.objects.get().resolved_by_id == manager.pk
    action = Action.objects.get(route="annotation:resolve")
    assert (action.actor, action.target) == ("manager", {"report_id": Report.objects.get().pk})
    kinds = [event.kind for event, _words in one_question(project, boss, turn.query_id).context["events"]]
    assert kinds[-2:] == ["comment", "read"]


def test_a_reply_to_a_flag_stands_beside_no_answer(project, people, manager):
    held = queue.claim_next(project=project, user=people[0])
    flags.flag_question(assignment=held, kind=ReportKind.SENSITIVE, comment="a name")
    settle(project, browser_of(manager), reply="1", comment="well seen")
    annotator = browser_of(people[0])
    assert (
        "1 comment of a manager is unread"
        in annotator.get(reverse("annotation:label", args=[project.slug])).content.decode()
    )
    (other,) = own_page(project, annotator, only="unread").context["page"].others
    # What was found sensitive is shown to nobody any more.
    assert (other.query_id, other.question, other.is_unread) == (held.query_id, None, True)
    content = own_page(project, annotator).content.decode()
    assert "well seen" in content
    assert "Set aside" in content
    assert held.query.record.text not in content
    Query.objects.filter(pk=held.query_id).update(state=QueryState.OPEN)
    (other,) = own_page(project, annotator).context["page"].others
    assert other.question.text == held.query.record.text
    write_back(project, annotator, held.query_id, comment="thank you")
    assert not own_page(project, annotator, only="unread").context["page"].others


def test_behind_a_gate_annotators_speak_and_nobody_answers():
    project = make_project(oracle="crowd")
    manager, person = make_user(), make_annotators(project, 1)[0]
    add_members(project, manager, role=Role.MANAGER)
    candidates = make_candidates(project, ["play jazz"])
    queue.open_queries(project=project, round_number=1, query_ids=[candidates[0].pk])
    turn = queue.claim_next(project=project, user=person)
    labels.submit_label(assignment=turn, choice=0)
    annotator, boss = browser_of(person), browser_of(manager)
    assert "Managers read it but cannot reply" in own_page(project, annotator).content.decode()
    write_back(project, annotator, turn.query_id, comment=WORDS)
    content = one_question(project, boss, turn.query_id).content.decode()
    assert "Not for crowds: annotators would" in content
    assert "does a flute" in content
    assert 'name="comment"' not in content
    assert settle(project, boss, reply="1", comment="yes").status_code == 422
    settle(project, boss)
    assert Report.objects.get().resolved_at is not None


def test_reports_lead_to_the_question_they_are_about_and_not_to_hidden_checks(project, people, manager, turn):
    flags.comment_on(assignment=turn, comment=WORDS)
    boss = browser_of(manager)
    address = reverse("annotation:question", args=[project.slug, turn.query_id])
    reported = reverse("annotation:reported", args=[project.slug])
    assert address in boss.get(reported).content.decode()
    Query.objects.filter(pk=turn.query_id).update(state=QueryState.GOLD)
    content = boss.get(reported).content.decode()
    assert "does a flute" in content
    assert address not in content


def test_statements_do_not_grow_with_what_was_said(project, people, manager, turn):
    annotator, boss = browser_of(people[0]), browser_of(manager)
    numbers = []
    for _ in range(2):
        for word in range(4):
            report = flags.comment_on(assignment=turn, comment=f"word {word} of {len(numbers)}")
            flags.reply(project=project, report_id=report.pk, text=f"yes {word}", author=manager)
        with CaptureQueriesContext(connection) as own:
            own_page(project, annotator)
        with CaptureQueriesContext(connection) as managed:
            one_question(project, boss, turn.query_id)
        numbers.append((len(own), len(managed)))
    assert numbers[0] == numbers[1], numbers
    assert numbers[0][0] <= 15
    assert numbers[0][1] <= 30


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
