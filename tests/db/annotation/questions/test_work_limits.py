"""Limits on one person's answers and encounters: counted, kept, and free where a project sets none."""

from datetime import time

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotation.choices.rules import hides_selection
from annotation.errors import InvalidConfiguration
from annotation.models import Assignment, AssignmentState, Encounter, Membership, ProjectState, Record
from annotation.projects.services import configuring
from annotation.questions import work_limits
from annotation.questions.services import correcting, labelling, labels, queue
from annotation.questions.services.queue import QueueState
from annotation.questions.work_limits import Waiting, waiting_for
from tests.factories import (
    asked_project,
    make_annotators,
    make_candidates,
    make_project,
    make_records,
    make_user,
    open_preset,
    write_settings,
)

pytestmark = pytest.mark.django_db


def answer(project, person):
    assignment = queue.claim_next(project=project, user=person)
    if assignment is not None:
        labels.submit_label(assignment=assignment, choice=0)
    return assignment


def ask_about(project, contributors):
    records = make_records(project, [f"of {name}" for name in contributors])
    for record, name in zip(records, contributors, strict=True):
        if name:
            Record.objects.filter(pk=record.pk).update(contributor=name.encode())
    queue.open_queries(project=project, round_number=1, record_ids=[record.pk for record in records])


@pytest.mark.parametrize(
    ("now", "start", "end", "quiet"),
    [
        (time(12), time(11), time(13), True),
        (time(13), time(11), time(13), False),
        (time(23), time(22), time(6), True),
        (time(5, 59), time(22), time(6), True),
        (time(6), time(22), time(6), False),
        (time(21, 59), time(22), time(6), False),
    ],
)
def test_quiet_hours_may_pass_midnight(now, start, end, quiet):
    assert work_limits.within_hours(now, start, end) == quiet


def test_nothing_is_handed_out_in_quiet_hours():
    now = timezone.localtime().time()
    project, _, (person,) = asked_project(
        quiet_from=now.replace(second=0, microsecond=0), quiet_until=time((now.hour + 2) % 24, 30)
    )
    assert queue.claim_next(project=project, user=person) is None
    assert queue.queue_state(project=project, user=person) == QueueState.QUIET_HOURS


@pytest.mark.parametrize("limit", ["answers_per_person", "answers_per_day"])
def test_a_person_gives_so_many_answers_and_others_go_on(limit):
    project, _, (first, second) = asked_project(4, 2, **{limit: 2})
    assert answer(project, first)
    assert answer(project, first)
    assert answer(project, first) is None
    assert queue.queue_state(project=project, user=first) == QueueState(limit)
    assert answer(project, second)


def test_an_answer_taken_back_does_not_count():
    project, _, (person,) = asked_project(2, answers_per_person=1)
    answer(project, person)
    correcting.undo_label(project=project, user=person)
    assert answer(project, person)


def test_a_person_meets_so_many_contributors_and_then_only_those():
    project = make_project(encounter_limit=2)
    ask_about(project, ["ann", "bob", "cay", "ann", "dan", "bob"])
    person, other = make_annotators(project, 2)
    seen = []
    while assignment := answer(project, person):
        seen.append(assignment.query.record.text)
    assert seen == ["of ann", "of bob", "of ann", "of bob"]
    assert queue.queue_state(project=project, user=person) == QueueState.ENCOUNTERS
    assert work_limits.encounters([project], person) == {project.pk: 2}
    assert answer(project, other).query.record.text == "of cay"


def test_what_was_seen_counts_whether_it_was_answered_or_not():
    project = make_project(encounter_limit=1)
    ask_about(project, ["ann", "bob"])
    person, _other = make_annotators(project, 2)
    labels.skip_assignment(assignment=queue.claim_next(project=project, user=person), reason="unsure")
    assert queue.claim_next(project=project, user=person) is None


def test_the_question_that_reached_the_limit_stays_with_its_person():
    project = make_project(encounter_limit=1)
    ask_about(project, ["ann", "bob"])
    (person,) = make_annotators(project, 1)
    held = queue.claim_next(project=project, user=person)
    assert queue.claim_next(project=project, user=person).pk == held.pk


@pytest.mark.parametrize("oracle", ["trusted", "crowd"])
def test_a_question_seen_before_may_come_back(oracle):
    project = make_project(oracle=oracle, encounter_limit=1)
    if oracle == "crowd":
        candidates = make_candidates(project, ["one", "two"])
        queue.open_queries(project=project, round_number=1, query_ids=[one.pk for one in candidates])
    else:
        ask_about(project, ["ann", "bob"])
    (person,) = make_annotators(project, 1)
    held = queue.claim_next(project=project, user=person)
    Assignment.objects.update(leased_until="2001-01-01T00:00Z")
    queue.return_expired_leases()
    assert queue.claim_next(project=project, user=person).pk == held.pk


def test_a_crowd_sees_so_many_texts_and_nobody_is_linked_to_a_contributor():
    project = make_project(oracle="crowd", encounter_limit=2)
    candidates = make_candidates(project, ["one", "two", "three"])
    queue.open_queries(project=project, round_number=1, query_ids=[one.pk for one in candidates])
    (person,) = make_annotators(project, 1)
    assert answer(project, person)
    assert answer(project, person)
    assert answer(project, person) is None
    assert queue.queue_state(project=project, user=person) == QueueState.ENCOUNTERS
    assert not Encounter.objects.exists()


def test_without_limits_nothing_is_counted_or_noted(django_assert_num_queries):
    project, _, (person,) = asked_project()
    with django_assert_num_queries(1):
        assert queue.claim_next(project=project, user=person).state == AssignmentState.LEASED
    assert not Encounter.objects.exists()


def by_configuration(*, project, **changes):
    return configuring.configure_project(project=project, changes=changes, actor=project.created_by)


@pytest.mark.parametrize("change", [labelling.set_labelling, by_configuration])
def test_a_limit_set_later_counts_whom_people_have_met_before(change):
    project = open_preset(make_user(), "pool-experts", selection="random")
    ask_about(project, ["ann", "bob", "ann", "cay"])
    (person,) = make_annotators(project, 1)
    answer(project, person)
    answer(project, person)
    project = change(project=project, encounter_limit=2)
    assert project.configuration.version == 2
    assert work_limits.encounters([project], person) == {project.pk: 2}
    assert answer(project, person).query.record.text == "of ann"
    assert answer(project, person) is None


SECRET = [
    {"selection": "secret_sample", "selection_rate": 0.1},
    {
        "arrival": "stream",
        "selection": "bernoulli_screen",
        "update_policy": "flsw_hidden",
        "window_length": 9,
        "window_denominator": 3,
        "estimator": "running_sums",
        "training_delta": 1e-6,
    },
]


class TestSecretChoices:
    """With a limit of one answer a record that is asked first would keep the next one from ever being answered."""

    @pytest.mark.parametrize("secret", SECRET)
    @pytest.mark.parametrize("limit", ["answers_per_person", "answers_per_day", "encounter_limit"])
    def test_no_limit_on_a_person_binds_one_record_to_another(self, secret, limit):
        project = make_project(**secret)
        with pytest.raises(InvalidConfiguration, match=f"{limit}: Not with secret selection"):
            labelling.set_labelling(project=project, **{limit: 1})
        with pytest.raises(IntegrityError, match="annotation_project_secrets_bind_nothing"), transaction.atomic():
            write_settings(project, **{limit: 1})
        with pytest.raises(InvalidConfiguration, match=f"{limit}: Not with secret selection"):
            open_preset(make_user(), "pool-experts", **{limit: 1})

    def test_everything_asked_in_secret_is_answered_by_whoever_is_there(self):
        project, _, (person,) = asked_project(3, **SECRET[0])
        assert [bool(answer(project, person)) for _ in range(4)] == [True, True, True, False]

    def test_a_limited_project_becomes_no_secret_one(self):
        project = open_preset(make_user(), "pool-experts", selection="random", answers_per_person=1)
        with pytest.raises(InvalidConfiguration, match="answers_per_person: Not with secret selection"):
            configuring.configure_project(
                project=project, changes={"selection": "secret_sample"}, actor=project.created_by
            )
        labelling.set_labelling(project=project, answers_per_person=None, quiet_from=time(22), quiet_until=time(6))
        configuring.configure_project(project=project, changes={"selection": "secret_sample"}, actor=project.created_by)
        project.refresh_from_db()
        assert hides_selection(project.settings)


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
    project, _, (person,) = asked_project(2, overlap=1, answers_per_person=1)
    assert answered_while_said_to_wait(project, person) == 1
    Membership.objects.filter(user=person).update(paused_at=timezone.now())
    assert waiting_for(person, [project])[project.pk] == Waiting(state=queue.QueueState.PERSON_PAUSED)
    project.state = ProjectState.PAUSED
    assert waiting_for(person, [project])[project.pk] == Waiting(state=queue.QueueState.PAUSED)
