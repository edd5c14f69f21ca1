from datetime import timedelta
from decimal import Decimal

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.utils import timezone

from annotation.models import Assignment, Membership, Project, ProjectMove, Role, WorkState
from annotation.models.letters import MailKind, Notice
from annotation.people import letter_words
from annotation.people.services import members
from annotation.questions.services import flags, labels, queue
from annotation.review import services as decisions
from annotation.work.services import attempts
from learner import notices
from learner.models import ModelRelease, Round, TrainingRun
from learner.pools import records
from learner.pools.prices import round_price
from learner.pools.selectors import guarantee_accounts, training_price
from learner.rounds import failures
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop, selection
from privacy.ledger import services as ledger
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def reached(name, project=None, role=None):
    person = make_user(name)
    EmailAddress.objects.create(user=person, email=f"{name}@example.org", verified=True, primary=True)
    if project is not None:
        members.add_member(project=project, user=person, role=role)
    return person


def told():
    rows = Notice.objects.order_by("kind", "person__username", "subject").values_list(
        "kind", "person__username", "subject"
    )
    return [(kind, name, subject) for kind, name, subject in rows]


def test_a_release_and_questions_reach_those_they_concern():
    manager = reached("lead")
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    reached("engineer", project, Role.ENGINEER)
    idle = reached("idle", project, Role.ANNOTATOR)
    # There before anything happened.
    Membership.objects.update(created_at=timezone.now() - timedelta(days=1))
    learning.run_to_release(project, make_user("busy"), version=1)
    notices.record_notices()
    before = told()
    assert ("release", "engineer", "version 1") in before
    assert ("release", "lead", "version 1") in before
    assert not [row for row in before if row[0] == "release" and row[1] == "idle"]
    notices.record_notices()
    assert told() == before
    newest = Round.objects.filter(project=project).latest("number").number
    asked = [row for row in before if row[0] == "questions"]
    assert asked == ([("questions", "idle", f"round {newest}")] if asked else [])
    learning.work_off(project)
    assert queue.claim_next(project=project, user=idle) is not None
    notices.record_notices()
    # Whoever answers is not called.
    assert [row for row in told() if row[0] == "questions"] == asked


def test_whoever_was_away_for_a_day_is_called_to_a_round_and_not_again_the_same_day():
    manager = make_user()
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    idle = reached("idle", project, Role.ANNOTATOR)
    learning.work_off(project)
    for _again in range(2):
        notices.record_notices()
    assert told() == [("questions", "idle", "round 1")]
    Round.objects.filter(project=project).update(number=2)
    notices.record_notices()
    assert told() == [("questions", "idle", "round 1")]
    Notice.objects.update(created_at=timezone.now() - timedelta(days=1, hours=1))
    # The clock looks at each project once a day.
    ProjectMove.objects.update(told_at=timezone.now() - timedelta(days=1, hours=1))
    notices.record_notices()
    assert told()[-1] == ("questions", "idle", "round 2")
    queue.claim_next(project=project, user=idle)
    Notice.objects.all().delete()
    notices.record_notices()
    assert told() == []
    Assignment.objects.update(created_at=timezone.now() - timedelta(days=2))
    ProjectMove.objects.update(told_at=timezone.now() - timedelta(days=1, hours=1))
    notices.record_notices()
    assert told() == [("questions", "idle", "round 2")]


def test_who_is_written_to_is_told_once_an_hour_and_nothing_of_what_was_said():
    manager = reached("boss")
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    own, _other = (reached(name, project, Role.ANNOTATOR) for name in ("own", "other"))
    learning.work_off(project)
    reports = []
    for word in ("the apple", "the apple again"):
        held = queue.claim_next(project=project, user=own)
        labels.submit_label(assignment=held, choice=0)
        reports.append(flags.comment_on(assignment=held, comment=word))
    for _again in range(2):
        notices.record_notices()
    assert [row[1] for row in told() if row[0] == MailKind.REMARK] == ["boss"]
    for report, word in zip(reports, ("a pear", "a pear again"), strict=True):
        flags.reply(project=project, report_id=report.pk, text=word, author=manager)
    notices.record_notices()
    rows = list(Notice.objects.filter(kind=MailKind.REMARK).order_by("pk"))
    assert [row.person.get_username() for row in rows] == ["boss", "own"]
    assert [letter_words.letter_about(row).item.link.rpartition("/projects/")[2] for row in rows] == [
        f"{project.slug}/labelling/reports/",
        f"{project.slug}/label/mine/answers/?only=unread",
    ]
    assert "apple" not in str([row.__dict__ for row in rows])
    assert "pear" not in str([row.__dict__ for row in rows])


def test_a_reviewer_is_called_to_what_they_may_decide_once_a_day_and_not_again_for_the_same():
    project = learning.open_trusted(make_user(), reviewed="all")
    learning.fill_trusted(project)
    own, other = (reached(name, project, Role.ANNOTATOR) for name in ("own", "other"))
    members.add_member(project=project, user=own, role=Role.REVIEWER)
    reached("reviewer", project, Role.REVIEWER)
    learning.work_off(project)
    notices.record_notices()
    assert [row for row in told() if row[0] == MailKind.REVIEW] == []

    def answer(person):
        held = queue.claim_next(project=project, user=person)
        return labels.submit_label(assignment=held, choice=0)

    first, second = answer(own), answer(own)
    for _again in range(2):
        notices.record_notices()
    # Nobody reviews an answer of their own.
    called = [row for row in told() if row[0] == MailKind.REVIEW]
    assert called == [("review", "reviewer", f"up to answer {second.pk}")]
    third = answer(other)
    notices.record_notices()
    assert [row[1] for row in told() if row[0] == MailKind.REVIEW] == ["own", "reviewer"]
    Notice.objects.update(created_at=timezone.now() - timedelta(days=1, hours=1))
    notices.record_notices()
    assert ("review", "reviewer", f"up to answer {third.pk}") in told()
    # Nothing is new once the newest are decided and an older one goes on waiting.
    for decided in (second, third):
        decisions.settle_reviewed(project=project, person=project.created_by, query_id=decided.query_id, choice=0)
    count = Notice.objects.count()
    Notice.objects.update(created_at=timezone.now() - timedelta(days=1, hours=1))
    notices.record_notices()
    assert Notice.objects.count() == count
    # Whoever decides anyway needs no mail.
    Notice.objects.all().delete()
    answer(other)
    decisions.skip_review(project=project, person=User.objects.get(username="reviewer"), query_id=first.query_id)
    notices.record_notices()
    assert [row[1] for row in told() if row[0] == MailKind.REVIEW] == ["own"]


def lower(project, share):
    (account,) = guarantee_accounts(project)
    now = guarantee(account)
    limit = Decimal(repr(round(now.epsilon_spent / share, 6)))
    ledger.change_account_limits(
        account=account,
        epsilon_limit=limit,
        delta_limit=Decimal(repr(now.delta_limit)),
        actor="lead",
        reason="less is enough",
    )
    return f"account {account.pk} limit {float(limit):.9g}"


def test_a_budget_is_told_once_at_four_fifths_of_its_limit_and_the_stop_that_follows():
    manager = reached("lead")
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    notices.record_notices()
    assert not [row for row in told() if row[0] in ("budget", "waiting")]
    subject = lower(project, 0.99999)
    learning.work_off(project)
    for _again in range(2):
        notices.record_notices()
    assert [row for row in told() if row[0] == "budget"] == [("budget", "lead", subject)]
    assert project_status(Project.objects.get()).step == Step.CANNOT_PAY
    ((_kind, name, place),) = [row for row in told() if row[0] == "waiting"]
    assert name == "lead"
    assert place.startswith("cannot_pay after ")


ENDED = {"state": WorkState.FAILED, "error": "It did not end well."}


def fail(rows) -> None:
    assert rows.filter(state=WorkState.WAITING).update(finished_at=timezone.now(), **ENDED) == 1


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(opened)
    return opened


def test_rounds_count_since_the_last_good_one(project):
    learning.work_off(project)
    learning.run_to_release(project, make_user(), version=1)
    for expected in (1, 2, 3):
        loop.advance_project(project_id=project.pk)
        fail(Round.objects.filter(project=project))
        assert len(failures.failed_rounds(project)) == expected
        assert bool(failures.stopping_words(project, Round)) == (expected == 3)
    row = failures.start_anew_of(project)
    assert isinstance(row, Round)
    assert failures.price_of(project, row) == round_price(project)


def test_a_training_that_failed_once_may_be_started_anew_at_its_price(project):
    learning.work_off(project)
    learning.label_everything(project, make_user())
    loop.advance_project(project_id=project.pk)
    assert failures.start_anew_of(project) is None
    fail(TrainingRun.objects.filter(project=project))
    row = failures.start_anew_of(project)
    assert isinstance(row, TrainingRun)
    assert failures.price_of(project, row) == training_price(project)
    assert failures.stopping_words(project, TrainingRun) == ""
    assert "failed 1 time" in failures.failed_words([row])


def test_a_cancelled_training_of_a_block_that_was_given_up_stops_nothing():
    """The flaw: once the next block was closed, the project waited for a training that nobody could start."""
    project = learning.open_secret(make_user())
    learning.fill_trusted(project)
    learning.work_off(project)
    selection.close_block(project=project)
    for _ in range(records.MAX_FAILED_TRAININGS - 1):
        loop.advance_project(project_id=project.pk)
        fail(TrainingRun.objects.filter(project=project))
    loop.advance_project(project_id=project.pk)
    assert attempts.cancel_work(row=TrainingRun.objects.get(state=WorkState.WAITING), by="ada")
    learning.work_off(project)
    selection.close_block(project=project)
    assert project_status(project).step == Step.TRAIN
    learning.work_off(project)
    assert ModelRelease.objects.filter(project=project).count() == 1
