from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from celery import current_app
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from annotation.errors import AlreadyLabelled, InvalidChoice, LeaseExpired, UndoRefused
from annotation.models import Assignment, AssignmentState, Consensus, Label, Project, Query, QueryState
from annotation.questions.services import correcting, labels, queue
from tests.factories import asked_project, make_annotators, make_project, open_records
from tests.threads import at_once


def claim(project, person):
    return queue.claim_next(project=project, user=person)


def answer(project, person, choice):
    assignment = claim(project, person)
    return labels.submit_label(assignment=assignment, choice=choice)


def take_back(assignment):
    Assignment.objects.filter(pk=assignment.pk).update(leased_until=Now() - timedelta(minutes=10))
    assert queue.return_expired_leases() == 1


@pytest.fixture
def sent(monkeypatch):
    tasks = []
    monkeypatch.setattr(current_app, "send_task", lambda name, kwargs, **options: tasks.append((name, kwargs)))
    return tasks


@pytest.mark.django_db
class TestSubmitLabel:
    def test_the_only_answer_is_the_consensus(self):
        project, (query,), (person,) = asked_project()
        label = answer(project, person, 2)
        query.refresh_from_db()
        assert (label.query_id, label.annotator_id, label.choice) == (query.pk, person.pk, 2)
        assert Label.objects.get() == label
        assert Label.objects.get().assignment.state == AssignmentState.LABELLED
        assert query.state == QueryState.CLOSED
        consensus = Consensus.objects.get()
        assert (consensus.project, consensus.query) == (project, query)
        assert (consensus.choice, consensus.votes, consensus.agreeing) == (2, 1, 1)

    def test_more_than_half_of_the_answers_are_the_consensus(self):
        project, (query,), people = asked_project(1, 3, overlap=3)
        for person, choice in zip(people, (1, 0, 1), strict=True):
            assert not Consensus.objects.exists()
            answer(project, person, choice)
        query.refresh_from_db()
        assert query.state == QueryState.CLOSED
        consensus = Consensus.objects.get()
        assert (consensus.choice, consensus.votes, consensus.agreeing) == (1, 3, 2)

    def test_a_tie_is_a_dispute_without_consensus(self):
        project = make_project(overlap=2)
        (query,) = open_records(project, 1)
        for choice, person in enumerate(make_annotators(project, 2)):
            answer(project, person, choice)
        query.refresh_from_db()
        assert query.state == QueryState.DISPUTED
        assert not Consensus.objects.exists()

    def test_the_same_click_again_is_the_same_label(self):
        project, _, (person,) = asked_project()
        assignment = claim(project, person)
        first = labels.submit_label(assignment=assignment, choice=1)
        assert labels.submit_label(assignment=assignment, choice=1) == first
        assert Label.objects.count() == Consensus.objects.count() == 1

    def test_another_class_afterwards_is_refused(self):
        project, _, (person,) = asked_project()
        assignment = claim(project, person)
        labels.submit_label(assignment=assignment, choice=1)
        with pytest.raises(AlreadyLabelled):
            labels.submit_label(assignment=assignment, choice=2)
        assert Label.objects.get().choice == 1

    @pytest.mark.parametrize("choice", [-1, 3])
    def test_a_class_the_project_does_not_have_is_refused(self, choice):
        project, _, (person,) = asked_project()
        with pytest.raises(InvalidChoice):
            answer(project, person, choice)
        assert not Label.objects.exists()

    def test_a_lapsed_lease_nobody_took_back_still_counts(self):
        project, _, (person,) = asked_project()
        assignment = claim(project, person)
        Assignment.objects.update(leased_until=Now())
        assert labels.submit_label(assignment=assignment, choice=0).choice == 0

    def test_an_expired_lease_is_taken_again_while_its_slot_is_free(self):
        project, (query,), (person,) = asked_project()
        assignment = claim(project, person)
        take_back(assignment)
        labels.submit_label(assignment=assignment, choice=0)
        query.refresh_from_db()
        assert (query.state, query.open_slots) == (QueryState.CLOSED, 0)

    def test_taking_an_expired_lease_again_gives_back_what_is_held_meanwhile(self):
        project, (first, second), (slow, quick) = asked_project(2, 2)
        stale = claim(project, slow)
        take_back(stale)
        borrowed = claim(project, quick)
        current = claim(project, slow)
        labels.skip_assignment(assignment=borrowed, reason="unsure")
        labels.submit_label(assignment=stale, choice=0)
        for query in (first, second):
            query.refresh_from_db()
        current.refresh_from_db()
        assert (first.state, second.state, second.open_slots) == (QueryState.CLOSED, QueryState.OPEN, 1)
        assert current.state == AssignmentState.EXPIRED
        assert claim(project, slow).pk == current.pk

    def test_an_expired_lease_somebody_else_has_now_is_refused(self):
        project, _, (slow, quick) = asked_project(1, 2)
        assignment = claim(project, slow)
        take_back(assignment)
        claim(project, quick)
        with pytest.raises(LeaseExpired):
            labels.submit_label(assignment=assignment, choice=0)
        assert not Label.objects.exists()

    def test_a_refusal_names_no_class(self):
        project, _, (person,) = asked_project(classes=["hidden-class", "other"])
        assignment = claim(project, person)
        labels.submit_label(assignment=assignment, choice=0)
        with pytest.raises(AlreadyLabelled) as refusal:
            labels.submit_label(assignment=assignment, choice=1)
        assert "hidden-class" not in str(refusal.value)


@pytest.mark.django_db
class TestTellingTheProject:
    def test_it_is_told_when_a_round_is_answered(self, sent, django_capture_on_commit_callbacks):
        project, _, (person,) = asked_project(2)
        with django_capture_on_commit_callbacks(execute=True):
            answer(project, person, 0)
        assert sent == []
        with django_capture_on_commit_callbacks(execute=True):
            answer(project, person, 0)
        assert sent == [(settings.PROJECT_CHANGED_TASK, {"project_id": project.pk})]

    def test_it_is_told_when_a_training_has_enough(self, sent, django_capture_on_commit_callbacks):
        project, _, (person,) = asked_project(6, labels_per_release=2)
        told = []
        for _ in range(5):
            with django_capture_on_commit_callbacks(execute=True):
                answer(project, person, 0)
            told.append(len(sent))
            if len(told) == 3:
                labels.mark_labels_used(project=project, last_consensus_id=Consensus.objects.latest("pk").pk)
        assert told == [0, 1, 2, 2, 3]

    @pytest.mark.parametrize("choices", [(0, 1), (1, 1)])
    def test_a_tie_counts_like_a_majority_for_round_and_training(
        self, choices, sent, django_capture_on_commit_callbacks
    ):
        """A training that began at once after the one and seconds later after the other would tell them apart."""
        project, _, people = asked_project(4, 2, labels_per_release=2, overlap=2)
        told = []
        for _question in range(3):
            for choice, person in zip(choices, people, strict=True):
                with django_capture_on_commit_callbacks(execute=True):
                    answer(project, person, choice)
                told.append(len(sent))
        assert told == [0, 0, 0, 1, 1, 2]

    def test_a_broker_that_is_down_loses_no_label(self, monkeypatch, caplog, django_capture_on_commit_callbacks):
        def refuse(*args, **kwargs):
            raise OperationalError("connection refused")

        monkeypatch.setattr(current_app, "send_task", refuse)
        project, _, (person,) = asked_project()
        with django_capture_on_commit_callbacks(execute=True):
            answer(project, person, 0)
        assert Consensus.objects.count() == 1
        assert "broker not reached" in caplog.text


@pytest.mark.django_db
class TestKeys:
    """A page sends its answer with a key, and the same key never becomes a second answer."""

    def test_the_same_key_again_is_the_same_label(self):
        project, _, (person,) = asked_project()
        assignment, key = claim(project, person), uuid4()
        first = labels.submit_label(assignment=assignment, choice=1, key=key)
        assert labels.submit_label(assignment=assignment, choice=1, key=key).pk == first.pk
        assert Label.objects.get().key == key

    def test_what_arrives_again_after_it_was_taken_back_stays_taken_back(self):
        project, _, (person,) = asked_project()
        assignment, key = claim(project, person), uuid4()
        first = labels.submit_label(assignment=assignment, choice=1, key=key)
        correcting.undo_label(project=project, user=person)
        assert labels.submit_label(assignment=assignment, choice=1, key=key).pk == first.pk
        assignment.refresh_from_db()
        assert assignment.state == AssignmentState.LEASED
        assert not Label.objects.filter(superseded_at=None).exists()
        labels.submit_label(assignment=assignment, choice=2, key=uuid4())
        assert Label.objects.get(superseded_at=None).choice == 2

    def test_the_same_key_with_another_class_is_refused(self):
        project, _, (person,) = asked_project()
        assignment, key = claim(project, person), uuid4()
        labels.submit_label(assignment=assignment, choice=1, key=key)
        with pytest.raises(AlreadyLabelled):
            labels.submit_label(assignment=assignment, choice=2, key=key)


@pytest.mark.django_db
class TestSkip:
    def test_the_slot_returns_and_the_reason_stays(self):
        project, (query,), (person, _other) = asked_project(1, 2)
        labels.skip_assignment(assignment=claim(project, person), reason="language")
        query.refresh_from_db()
        skipped = Assignment.objects.get()
        assert (query.state, query.open_slots) == (QueryState.OPEN, 1)
        assert (skipped.state, skipped.skip_reason) == (AssignmentState.SKIPPED, "language")
        assert skipped.finished_at is not None

    def test_skipping_twice_returns_one_slot(self):
        project, (query,), (person, _other) = asked_project(1, 2, overlap=2)
        assignment = claim(project, person)
        labels.skip_assignment(assignment=assignment, reason="unsure")
        labels.skip_assignment(assignment=assignment, reason="broken")
        query.refresh_from_db()
        assert query.open_slots == 2
        assert Assignment.objects.get().skip_reason == "unsure"

    def test_skipping_after_the_lease_was_taken_back_returns_no_second_slot(self):
        project, (query,), (person, _other) = asked_project(1, 2, overlap=2)
        assignment = claim(project, person)
        take_back(assignment)
        labels.skip_assignment(assignment=assignment, reason="unsure")
        query.refresh_from_db()
        assert query.open_slots == 2
        assert claim(project, person) is None

    def test_an_answered_question_is_not_skipped(self):
        project, _, (person, _other) = asked_project(1, 2)
        assignment = claim(project, person)
        labels.submit_label(assignment=assignment, choice=0)
        with pytest.raises(AlreadyLabelled):
            labels.skip_assignment(assignment=assignment, reason="unsure")

    def test_a_skipped_question_can_still_be_answered_while_its_slot_is_free(self):
        project, _, (person, _other) = asked_project(1, 2)
        assignment = claim(project, person)
        labels.skip_assignment(assignment=assignment, reason="unsure")
        assert labels.submit_label(assignment=assignment, choice=1).choice == 1


@pytest.mark.django_db
class TestUndo:
    def test_the_question_comes_back_and_the_answer_stays_superseded(self):
        project, (query,), (person,) = asked_project()
        first = answer(project, person, 0)
        undone = correcting.undo_label(project=project, user=person)
        query.refresh_from_db()
        first.refresh_from_db()
        assert (query.state, query.open_slots) == (QueryState.OPEN, 0)
        assert first.superseded_at is not None
        assert not Consensus.objects.exists()
        assert claim(project, person).pk == undone.pk == first.assignment_id
        second = labels.submit_label(assignment=undone, choice=1)
        assert second.supersedes_id == first.pk
        assert Consensus.objects.get().choice == 1

    def test_undoing_again_makes_a_chain(self):
        project, _, (person,) = asked_project()
        answer(project, person, 0)
        for choice in (1, 2):
            labels.submit_label(assignment=correcting.undo_label(project=project, user=person), choice=choice)
        chain = list(Label.objects.order_by("pk").values_list("pk", "supersedes_id"))
        assert [earlier for _, earlier in chain] == [None, chain[0][0], chain[1][0]]
        assert Label.objects.filter(superseded_at=None).get().choice == 2

    def test_what_is_held_meanwhile_is_given_back_and_comes_again(self):
        project, (first, second), (person,) = asked_project(2)
        answer(project, person, 0)
        assert claim(project, person).query_id == second.pk
        undone = correcting.undo_label(project=project, user=person)
        assert undone.query_id == first.pk
        second.refresh_from_db()
        assert second.open_slots == 1
        labels.submit_label(assignment=undone, choice=1)
        assert claim(project, person).query_id == second.pk

    def test_a_dispute_is_reopened(self):
        project, (query,), (first, second) = asked_project(1, 2, overlap=2)
        answer(project, first, 0)
        answer(project, second, 1)
        labels.submit_label(assignment=correcting.undo_label(project=project, user=second), choice=0)
        query.refresh_from_db()
        assert query.state == QueryState.CLOSED
        assert Consensus.objects.get().agreeing == 2

    def test_an_answer_a_training_used_stays(self):
        project, _, (person,) = asked_project()
        answer(project, person, 0)
        labels.mark_labels_used(project=project, last_consensus_id=Consensus.objects.get().pk)
        with pytest.raises(UndoRefused):
            correcting.undo_label(project=project, user=person)
        assert Label.objects.get().superseded_at is None

    def test_an_answer_older_than_ten_minutes_stays(self):
        project, _, (person,) = asked_project()
        answer(project, person, 0)
        Assignment.objects.update(finished_at=Now() - timedelta(minutes=11))
        with pytest.raises(UndoRefused):
            correcting.undo_label(project=project, user=person)

    def test_another_persons_answer_stays(self):
        project, _, (person, other) = asked_project(1, 2)
        answer(project, person, 0)
        with pytest.raises(UndoRefused):
            correcting.undo_label(project=project, user=other)

    def test_marking_labels_used_never_goes_back(self):
        project = make_project()
        labels.mark_labels_used(project=project, last_consensus_id=7)
        labels.mark_labels_used(project=project, last_consensus_id=3)
        assert Project.objects.get(pk=project.pk).labels_used_through == 7


@pytest.mark.django_db
class TestDatabaseRules:
    """The database refuses what the services never do."""

    def test_a_question_has_one_consensus(self):
        project, (query,), (person,) = asked_project()
        answer(project, person, 0)
        with pytest.raises(IntegrityError, match="query_id"), transaction.atomic():
            Consensus.objects.create(project=project, query=query, choice=1, votes=1, agreeing=1)

    def test_no_more_agree_than_answered(self):
        (query,) = open_records(project := make_project(), 1)
        with pytest.raises(IntegrityError, match="annotation_consensus_majority"), transaction.atomic():
            Consensus.objects.create(project=project, query=query, choice=1, votes=1, agreeing=2)


answered_at_once = partial(at_once, refusals=(AlreadyLabelled, LeaseExpired, UndoRefused))


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_ten_identical_clicks_are_one_label(self):
        project, _, (person,) = asked_project()
        assignment = claim(project, person)
        results = answered_at_once(*[lambda: labels.submit_label(assignment=assignment, choice=1)] * 10)
        assert {label.pk for label in results} == {Label.objects.get().pk}

    def test_two_different_clicks_are_one_label_and_one_refusal(self):
        project, _, (person,) = asked_project()
        assignment = claim(project, person)
        results = answered_at_once(
            lambda: labels.submit_label(assignment=assignment, choice=0),
            lambda: labels.submit_label(assignment=assignment, choice=1),
        )
        assert Label.objects.get() in results
        assert AlreadyLabelled in results

    @pytest.mark.parametrize("overlap", [3, 8])
    def test_last_answers_at_the_same_time_give_one_consensus(self, overlap):
        project = make_project(overlap=overlap)
        open_records(project, 1)
        held = [claim(project, person) for person in make_annotators(project, overlap)]
        answered_at_once(*[lambda one=one: labels.submit_label(assignment=one, choice=1) for one in held])
        consensus = Consensus.objects.get()
        assert (consensus.votes, consensus.agreeing) == (overlap, overlap)
        assert Query.objects.get().state == QueryState.CLOSED

    def test_two_people_undoing_into_each_others_questions_both_end(self):
        project, (first, second), (one, other) = asked_project(2, 2, overlap=2)
        for person, mine, next_one in ((one, first, second), (other, second, first)):
            done = Assignment.objects.create(project=project, query=mine, annotator=person, leased_until=Now())
            Query.objects.filter(pk=mine.pk).update(open_slots=1)
            labels.submit_label(assignment=done, choice=0)
            Assignment.objects.create(project=project, query=next_one, annotator=person, leased_until=Now())
        Query.objects.update(open_slots=0)
        results = answered_at_once(
            lambda: correcting.undo_label(project=project, user=one),
            lambda: correcting.undo_label(project=project, user=other),
        )
        assert {assignment.query_id for assignment in results} == {first.pk, second.pk}
        assert set(Query.objects.values_list("open_slots", flat=True)) == {1}

    def test_an_undo_beside_a_training_either_comes_first_or_is_refused(self):
        for _ in range(5):
            project, _, (person,) = asked_project()
            label = answer(project, person, 0)

            def train(project=project):
                with transaction.atomic():
                    chosen = Consensus.objects.filter(project=project).order_by("-pk").first()
                    if chosen is not None:
                        labels.mark_labels_used(project=project, last_consensus_id=chosen.pk)
                    return list(Consensus.objects.filter(project=project))

            used, undone = answered_at_once(
                train, lambda project=project, person=person: correcting.undo_label(project=project, user=person)
            )
            label.refresh_from_db()
            assert (undone is UndoRefused) == (label.superseded_at is None)
            assert (undone is UndoRefused) == bool(used)
