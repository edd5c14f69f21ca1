import pytest
from django.utils import timezone

from annotation.models import Assignment, Membership, ProjectState
from annotation.questions.desks import Waiting, waiting_for
from annotation.questions.services import labels, queue
from tests.db.annotation.questions.test_work_limits import ask_about
from tests.factories import make_annotators, make_candidates, make_project, make_user, open_records

pytestmark = pytest.mark.django_db


def answered_while_said_to_wait(project, person) -> int:
    """Answer all there is for a person, and hold at each step that it was said to wait; return how much it was."""
    answered = 0
    while True:
        said = waiting_for(person, [project])[project.pk]
        assignment = queue.claim_next(project=project, user=person)
        assert said.asks == (assignment is not None)
        if assignment is None:
            # Without a limit the page has more to say, which takes a look at the queue.
            assert said.state in ("", queue.queue_state(project=project, user=person))
            return answered
        assert waiting_for(person, [project])[project.pk] == Waiting(asks=True)
        labels.submit_label(assignment=assignment, choice=0)
        answered += 1


@pytest.mark.parametrize(
    ("limits", "answered"),
    [
        ({}, 4),
        ({"answers_per_person": 2}, 2),
        ({"answers_per_day": 3}, 3),
        # Of whom they have met already they are asked again.
        ({"encounter_limit": 1}, 2),
        ({"encounter_limit": 2}, 3),
    ],
)
def test_a_question_waits_as_long_as_one_is_handed_out(limits, answered):
    project = make_project(overlap=1, **limits)
    ask_about(project, ["ann", "bob", "ann", "cay"])
    (person,) = make_annotators(project, 1)
    assert answered_while_said_to_wait(project, person) == answered


def test_a_text_seen_before_waits_for_whoever_may_see_no_new_one():
    project = make_project(oracle="crowd", encounter_limit=1, overlap=1)
    candidates = make_candidates(project, ["one", "two"])
    queue.open_queries(project=project, round_number=1, query_ids=[one.pk for one in candidates])
    (person,) = make_annotators(project, 1)
    queue.claim_next(project=project, user=person)
    Assignment.objects.update(leased_until="2001-01-01T00:00Z")
    queue.return_expired_leases()
    assert answered_while_said_to_wait(project, person) == 1


def test_a_pause_comes_before_any_limit():
    project = make_project(overlap=1, answers_per_person=1)
    open_records(project, 2)
    (person,) = make_annotators(project, 1)
    assert answered_while_said_to_wait(project, person) == 1
    Membership.objects.filter(user=person).update(paused_at=timezone.now())
    assert waiting_for(person, [project])[project.pk] == Waiting(state=queue.QueueState.PERSON_PAUSED)
    project.state = ProjectState.PAUSED
    assert waiting_for(person, [project])[project.pk] == Waiting(state=queue.QueueState.PAUSED)


def test_nothing_is_said_to_whoever_is_not_asked():
    project = make_project()
    assert waiting_for(make_user(), [project]) == {}
