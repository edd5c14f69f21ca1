from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation.data.services import forgetting
from annotation.errors import InvalidConfiguration, LeaseExpired, RoleRefused, UndoRefused
from annotation.models import Consensus, Membership, Query, QueryState, Report, Role
from annotation.models.joining import Invitation
from annotation.models.people import GroupRole
from annotation.models.quality import GoldQuery, Review, ReviewState
from annotation.people.services import invitations, members
from annotation.questions.services import correcting, flags, labelling, labels, queue
from annotation.review import selectors as review_reviewing
from annotation.review import services
from learner.pools.selectors import question_counts
from tests.factories import (
    add_members,
    answer_next,
    make_annotators,
    make_disputed,
    make_project,
    make_user,
    open_records,
    write_settings,
)
from tests.streaming import open_stream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project():
    return make_project(overlap=2)


@pytest.fixture
def reviewer(project):
    person = make_user("reviewer")
    members.add_member(project=project, user=person, role=Role.REVIEWER)
    return person


def answered(project, people, *choices):
    (query,) = open_records(project, 1)
    for person, choice in zip(people, choices, strict=True):
        assignment = queue.claim_next(project=project, user=person)
        labels.submit_label(assignment=assignment, choice=choice)
    query.refresh_from_db()
    return query


def claimed(project, person):
    held = services.claim_review(project=project, person=person)
    return held and held.query_id


class TestRole:
    @pytest.fixture
    def crowd(self):
        return make_project(oracle="crowd")

    def test_in_front_of_a_crowd_there_is_none(self, crowd):
        group = Group.objects.create(name="Night shift")
        lifetime = timedelta(days=1)
        for give in (
            lambda: members.add_member(project=crowd, user=make_user(), role=Role.REVIEWER),
            lambda: members.give_role(group=group, project=crowd, role=Role.REVIEWER),
            lambda: invitations.create_invitation(
                project=crowd, owner=crowd.created_by, role=Role.REVIEWER, maximum_uses=1, lifetime=lifetime
            ),
        ):
            with pytest.raises(RoleRefused, match="Crowd projects have no reviewers"):
                give()

    def test_the_database_refuses_it_there(self, crowd, project):
        group = Group.objects.create(name="Night shift")
        row = {"project": crowd, "role": "reviewer"}
        invited = {"digest": "d", "expires_at": timezone.now(), "created_by": crowd.created_by}
        for rule, create in (
            ("annotation_membership_reviewer", lambda: Membership.objects.create(**row, user=make_user())),
            ("annotation_grouprole_reviewer", lambda: GroupRole.objects.create(**row, group=group)),
            ("annotation_invitation_reviewer", lambda: Invitation.objects.create(**row, **invited)),
        ):
            with (
                pytest.raises(IntegrityError, match="nobody reviews but managers") as refused,
                transaction.atomic(),
            ):
                create()
            assert refused.value.__cause__.diag.constraint_name == rule
        with pytest.raises(IntegrityError, match="annotation_membership_known"), transaction.atomic():
            Membership.objects.create(project=project, user=make_user(), role="owner")

    def test_a_project_with_reviewers_becomes_none_of_a_crowd(self, project, reviewer):
        with pytest.raises(IntegrityError, match="nobody reviews but managers"), transaction.atomic():
            type(project).objects.filter(pk=project.pk).update(oracle="crowd")

    def test_who_is_removed_gives_back_what_they_review(self, project, people, reviewer):
        query = answered(project, people, 0, 1)
        assert claimed(project, reviewer) == query.pk
        members.remove_member(project=project, user=reviewer, role=Role.REVIEWER)
        assert Review.objects.get().state == ReviewState.ENDED


class TestQueue:
    def test_disputed_questions_come_first_then_as_the_project_says(self, project, people, reviewer):
        labelling.set_quality(project=project, overlap_limit=None)
        alike = answered(project, people, 1, 1)
        disputed = answered(project, people, 0, 1)
        assert claimed(project, reviewer) == disputed.pk
        assert list(review_reviewing.queue_of(project, reviewer)) == [disputed]
        labelling.set_quality(project=project, reviewed="all")
        assert list(review_reviewing.queue_of(project, reviewer)) == [disputed, alike]
        labelling.set_quality(project=project, reviewed="differing")
        assert list(review_reviewing.queue_of(project, reviewer)) == [disputed]

    def test_answers_that_differ_have_a_majority(self, reviewer, project):
        wide = make_project(overlap=3, reviewed="differing")
        add_members(wide, reviewer, role=Role.REVIEWER)
        three = make_annotators(wide, 3)
        answered(wide, three, 1, 1, 1)
        differing = answered(wide, three, 1, 1, 2)
        assert list(review_reviewing.queue_of(wide, reviewer)) == [differing]
        assert review_reviewing.progress_of(wide) == review_reviewing.ReviewProgress(reviewed=0, waiting=1)

    def test_a_crowds_answers_stand(self):
        crowd = make_project(oracle="crowd")
        with pytest.raises(InvalidConfiguration):
            labelling.set_quality(project=crowd, reviewed="all")
        with pytest.raises(IntegrityError, match="annotation_project_crowd_keeps_answers"), transaction.atomic():
            write_settings(crowd, reviewed="all")

    def test_nobody_meets_their_own_answers(self, project, people, reviewer):
        members.add_member(project=project, user=people[0], role=Role.REVIEWER)
        query = answered(project, people, 0, 1)
        assert claimed(project, people[0]) is None
        with pytest.raises(RoleRefused, match="own answers"):
            services.settle_reviewed(project=project, person=people[0], query_id=query.pk, choice=0)
        assert claimed(project, reviewer) == query.pk

    def test_a_manager_decides_about_everything(self, project, people):
        add_members(project, people[0], role=Role.MANAGER)
        query = answered(project, people, 0, 1)
        assert claimed(project, people[0]) == query.pk

    def test_what_is_skipped_comes_again_last(self, project, people, reviewer):
        first, second = (answered(project, people, 0, 1) for _ in range(2))
        assert claimed(project, reviewer) == first.pk
        services.skip_review(project=project, person=reviewer, query_id=first.pk)
        assert claimed(project, reviewer) == second.pk
        services.skip_review(project=project, person=reviewer, query_id=second.pk)
        assert claimed(project, reviewer) == first.pk

    def test_a_lease_is_kept_and_ends(self, project, people, reviewer):
        query = answered(project, people, 0, 1)
        other = make_user()
        add_members(project, other, role=Role.REVIEWER)
        assert [claimed(project, reviewer) for _ in range(2)] == [query.pk, query.pk]
        assert claimed(project, other) is None
        with pytest.raises(LeaseExpired):
            services.settle_reviewed(project=project, person=other, query_id=query.pk, choice=0)
        Review.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
        assert claimed(project, other) == query.pk
        assert Review.objects.filter(state=ReviewState.LEASED).count() == 1

    def test_the_database_leases_a_question_once(self, project, people, reviewer):
        query = answered(project, people, 0, 1)
        assert claimed(project, reviewer) == query.pk
        row = {"project": project, "leased_until": timezone.now()}
        for rule, taken in (
            ("annotation_review_one_reads", {"query": query, "reviewer": make_user()}),
            ("annotation_review_one_lease", {"query": open_records(project, 1)[0], "reviewer": reviewer}),
            ("annotation_review_finished", {"query": query, "reviewer": make_user(), "state": "settled"}),
        ):
            with pytest.raises(IntegrityError, match=rule), transaction.atomic():
                Review.objects.create(**row, **taken)

    def test_reviewers_at_once_get_different_questions(self, project, people):
        asked = {answered(project, people, 0, 1).pk for _ in range(4)}
        reviewers = [make_user() for _ in range(4)]
        add_members(project, *reviewers, role=Role.REVIEWER)

        def take(person):
            try:
                return claimed(project, person)
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as threads:
            assert set(threads.map(take, reviewers)) == asked

    def test_one_question_is_decided_once(self, project, people):
        query = answered(project, people, 0, 1)
        reviewers = [make_user() for _ in range(2)]
        add_members(project, *reviewers, role=Role.REVIEWER)

        def decide(person):
            try:
                services.settle_reviewed(project=project, person=person, query_id=query.pk, choice=person.pk % 3)
                return person
            except InvalidConfiguration:
                return None
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as threads:
            decided = list(threads.map(decide, reviewers))
        (by,) = [person for person in decided if person]
        assert Consensus.objects.get().settled_by == by


class TestDecisions:
    def test_another_class_counts_and_says_who_decided(self, reviewer):
        project = make_project(reviewed="all")
        add_members(project, reviewer, role=Role.REVIEWER)
        query = answered(project, make_annotators(project, 1), 1)
        assert claimed(project, reviewer) == query.pk
        before = Consensus.objects.get()
        services.settle_reviewed(project=project, person=reviewer, query_id=query.pk, choice=2)
        consensus = Consensus.objects.get()
        assert (consensus.choice, consensus.votes, consensus.agreeing, consensus.settled_by) == (2, 1, 0, reviewer)
        assert consensus.created_at > before.created_at
        query.refresh_from_db()
        assert query.state == QueryState.CLOSED
        assert claimed(project, reviewer) is None
        assert review_reviewing.progress_of(project) == review_reviewing.ReviewProgress(reviewed=1, waiting=0)
        # Whoever answered may change their mind; the decision stands.
        correcting.correct_answer(project=project, user=query.labels.get().annotator, query_id=query.pk, choice=0)
        assert Consensus.objects.get() == consensus

    def test_what_a_training_used_stays(self, reviewer):
        project = make_project(reviewed="all")
        add_members(project, reviewer, role=Role.REVIEWER)
        query = answered(project, make_annotators(project, 1), 1)
        labels.mark_labels_used(project=project, last_consensus_id=Consensus.objects.get().pk)
        project.refresh_from_db()
        assert claimed(project, reviewer) is None
        with pytest.raises(InvalidConfiguration):
            services.settle_reviewed(project=project, person=reviewer, query_id=query.pk, choice=2)
        project.labels_used_through = 0  # as a page read it before
        with pytest.raises(UndoRefused, match="a training may have used it"):
            services.settle_reviewed(project=project, person=reviewer, query_id=query.pk, choice=2)
        assert Consensus.objects.get().choice == 1

    def test_what_does_not_wait_is_not_decided(self, project, people, reviewer):
        alike = answered(project, people, 1, 1)
        with pytest.raises(InvalidConfiguration):
            services.settle_reviewed(project=project, person=reviewer, query_id=alike.pk, choice=2)
        assert Consensus.objects.get().settled_by is None

    def test_sent_back_it_waits_for_its_annotators(self, project, people, reviewer):
        query = answered(project, people, 0, 1)
        services.return_reviewed(project=project, person=reviewer, query_id=query.pk, comment="Look at the end.")
        assert {report.annotator for report in Report.objects.filter(kind="returned")} == set(people)
        assert claimed(project, reviewer) is None
        add_members(project, manager := make_user(), role=Role.MANAGER)
        assert claimed(project, manager) == query.pk
        services.skip_review(project=project, person=manager, query_id=query.pk)
        for person in people:
            correcting.correct_answer(project=project, user=person, query_id=query.pk, choice=person is people[1])
        assert claimed(project, reviewer) == query.pk

    def test_set_aside_a_manager_has_it_asked_again(self, reviewer):
        project = make_project(reviewed="all")
        add_members(project, reviewer, role=Role.REVIEWER)
        query = answered(project, make_annotators(project, 1), 1)
        services.set_aside_reviewed(project=project, person=reviewer, query_id=query.pk)
        assert not Consensus.objects.exists()
        assert claimed(project, reviewer) is None
        asked = flags.ask_set_aside_again(project=project, query_id=query.pk, user=make_user())
        assert (asked.state, asked.overlap, asked.open_slots) == (QueryState.OPEN, 2, 1)
        (eve,) = make_annotators(project, 1)
        labels.submit_label(assignment=queue.claim_next(project=project, user=eve), choice=1)
        assert (Consensus.objects.get().votes, Consensus.objects.get().choice) == (2, 1)

    def test_a_crowds_question_is_not_set_aside(self):
        crowd = make_project(oracle="crowd", overlap=2)
        add_members(crowd, manager := make_user(), role=Role.MANAGER)
        with pytest.raises(InvalidConfiguration):
            services.set_aside_reviewed(project=crowd, person=manager, query_id=0)

    def test_an_emptied_question_leaves_nothing(self, project, people, reviewer):
        query = answered(project, people, 0, 1)
        assert claimed(project, reviewer) == query.pk
        with transaction.atomic():
            forgetting.empty_questions(Query.objects.filter(pk=query.pk), project=project)
        assert not Review.objects.exists()
        assert claimed(project, reviewer) is None


class TestUndo:
    @pytest.mark.parametrize("choices", [(0, 1), (1, 1)])
    def test_a_decision(self, project, people, reviewer, choices):
        labelling.set_quality(project=project, reviewed="all")
        query = answered(project, people, *choices)
        before = (query.state, list(Consensus.objects.values_list("choice", "votes", "agreeing", "settled_by")))
        services.settle_reviewed(project=project, person=reviewer, query_id=query.pk, choice=2)
        assert services.undo_review(project=project, person=reviewer).query_id == query.pk
        query.refresh_from_db()
        after = list(Consensus.objects.values_list("choice", "votes", "agreeing", "settled_by"))
        assert (query.state, after) == before
        assert claimed(project, reviewer) == query.pk
        with pytest.raises(UndoRefused, match="No decision"):
            services.undo_review(project=project, person=reviewer)

    def test_a_comment_an_aside_and_a_skip(self, project, people, reviewer):
        query = answered(project, people, 0, 1)
        about = {"project": project, "person": reviewer, "query_id": query.pk}
        for decide in (
            lambda: services.return_reviewed(**about, comment="Look again."),
            lambda: services.set_aside_reviewed(**about),
            lambda: services.skip_review(**about),
        ):
            decide()
            services.undo_review(project=project, person=reviewer)
            query.refresh_from_db()
            assert query.state == QueryState.DISPUTED
            assert claimed(project, reviewer) == query.pk
        assert not Report.objects.filter(resolved_at=None).exists()

    def test_what_went_on_meanwhile_stays(self, project, people, reviewer):
        query = answered(project, people, 0, 1)
        services.settle_reviewed(project=project, person=reviewer, query_id=query.pk, choice=2)
        correcting.undo_label(project=project, user=people[0])
        with pytest.raises(UndoRefused, match="This question was settled meanwhile"):
            services.undo_review(project=project, person=reviewer)

    def test_it_ends_after_ten_minutes(self, project, people, reviewer):
        query = answered(project, people, 0, 1)
        services.settle_reviewed(project=project, person=reviewer, query_id=query.pk, choice=2)
        Review.objects.update(finished_at=timezone.now() - timedelta(minutes=11))
        with pytest.raises(UndoRefused, match="No decision"):
            services.undo_review(project=project, person=reviewer)


class TestDrawn:
    @pytest.fixture
    def drawing(self, reviewer):
        made = make_project(overlap=2, review_share=1.0)
        add_members(made, reviewer, role=Role.REVIEWER)
        return made

    @pytest.fixture
    def pair(self, drawing):
        return make_annotators(drawing, 2)

    def test_what_is_agreed_on_counts_once_a_reviewer_decided(self, drawing, pair, reviewer):
        query = answered(drawing, pair, 1, 1)
        assert query.state == QueryState.IN_REVIEW
        assert not Consensus.objects.exists()
        assert review_reviewing.progress_of(drawing) == review_reviewing.ReviewProgress(reviewed=0, waiting=1)
        assert claimed(drawing, reviewer) == query.pk
        assert review_reviewing.agreed_choice(query) == 1
        services.settle_reviewed(project=drawing, person=reviewer, query_id=query.pk, choice=1)
        counts = Consensus.objects.get(query=query)
        assert (counts.choice, counts.settled_by, counts.votes, counts.agreeing) == (1, reviewer, 2, 2)
        query.refresh_from_db()
        assert query.state == QueryState.CLOSED

    def test_changed_answers_are_counted(self, drawing, pair, reviewer):
        kept, changed, waiting = (answered(drawing, pair, 1, 1) for _ in range(3))
        disputed = answered(drawing, pair, 0, 1)
        assert disputed.state == QueryState.DISPUTED
        for query, choice in ((kept, 1), (changed, 2), (disputed, 0)):
            services.settle_reviewed(project=drawing, person=reviewer, query_id=query.pk, choice=choice)
        said = dict(Consensus.objects.values_list("query", "changed"))
        assert said == {kept.pk: False, changed.pk: True, disputed.pk: None}
        found = review_reviewing.drawn_reviews(drawing)
        assert found == review_reviewing.DrawnReviews(waiting=1, decided=2, changed=1)
        assert found.interval == "9-91 %"
        assert list(review_reviewing.queue_of(drawing, reviewer)) == [waiting]

    def test_what_is_taken_back_waits_again(self, drawing, pair, reviewer):
        query = answered(drawing, pair, 1, 1)
        services.settle_reviewed(project=drawing, person=reviewer, query_id=query.pk, choice=2)
        services.undo_review(project=drawing, person=reviewer)
        query.refresh_from_db()
        assert query.state == QueryState.IN_REVIEW
        assert not Consensus.objects.exists()
        correcting.correct_answer(project=drawing, user=pair[0], query_id=query.pk, choice=0)
        query.refresh_from_db()
        assert query.state == QueryState.DISPUTED
        correcting.correct_answer(project=drawing, user=pair[0], query_id=query.pk, choice=1)
        correcting.undo_label(project=drawing, user=pair[1])
        query.refresh_from_db()
        assert (query.state, query.drawn_for_review) == (QueryState.OPEN, True)

    def test_no_time_of_a_training_follows_from_a_review(self, project, people, drawing, pair, reviewer):
        """Drawn or not, agreed or not, a question is done with its last answer, and a decision makes none more done."""
        alike = [answered(project, people, 1, 1), answered(project, people, 0, 0)]
        drawn = [answered(drawing, pair, 1, 1), answered(drawing, pair, 0, 1)]
        assert [query.state for query in alike] == [QueryState.CLOSED] * 2
        assert [query.state for query in drawn] == [QueryState.IN_REVIEW, QueryState.DISPUTED]
        done = [(counts.done, counts.newly_done, counts.open) for counts in map(question_counts, (project, drawing))]
        assert done == [(2, 2, 0)] * 2
        services.settle_reviewed(project=drawing, person=reviewer, query_id=drawn[0].pk, choice=1)
        counts = question_counts(drawing)
        assert (counts.done, counts.newly_done, counts.unused) == (2, 2, 1)

    def test_a_coin_draws_before_anybody_answers(self):
        """Of 400 at one half between 140 and 260: false alarms are rarer than one in a hundred million."""
        half, none = make_project(review_share=0.5), make_project()
        drawn = [query.drawn_for_review for query in open_records(half, 400)]
        assert 140 < sum(drawn) < 260
        assert not any(query.drawn_for_review for query in open_records(none, 400))
        # A share that is set later is for what is opened later.
        labelling.set_quality(project=half, review_share=0.0)
        assert Query.objects.filter(project=half, drawn_for_review=True).count() == sum(drawn)
        assert not any(query.drawn_for_review for query in open_records(half, 100, round_number=2))

    def test_without_a_proof_it_is_refused(self):
        crowd, stream = make_project(oracle="crowd"), open_stream(make_user(), "fraud-stream")
        for refusing in (crowd, stream):
            with pytest.raises(InvalidConfiguration):
                labelling.set_quality(project=refusing, review_share=0.1)
            broken = pytest.raises(IntegrityError, match="annotation_project_review_share_proven")
            with broken, transaction.atomic():
                write_settings(refusing, review_share=0.1)
        secret = make_project(selection="secret_sample", selection_rate=0.1, review_share=0.0)
        with pytest.raises(IntegrityError, match="annotation_project_review_share_proven"), transaction.atomic():
            write_settings(secret, review_share=0.1)

    def test_an_emptied_record_says_nothing_of_its_review(self, drawing, pair, reviewer):
        query = answered(drawing, pair, 1, 1)
        services.settle_reviewed(project=drawing, person=reviewer, query_id=query.pk, choice=2)
        with transaction.atomic():
            forgetting.empty_questions(Query.objects.filter(pk=query.pk), project=drawing)
        assert set(Consensus.objects.values_list("changed", flat=True)) <= {None}


@pytest.fixture
def disputed():
    return make_disputed()


class TestReview:
    def test_a_manager_settles_for_a_class_nobody_named(self, disputed):
        manager = make_user()
        services.settle(project=disputed.project, query_id=disputed.pk, choice=2, person=manager)
        consensus = Consensus.objects.get()
        assert (consensus.choice, consensus.votes, consensus.agreeing) == (2, 2, 0)
        assert consensus.settled_by == manager
        with pytest.raises(InvalidConfiguration):
            services.settle(project=disputed.project, query_id=disputed.pk, choice=1, person=manager)
        with pytest.raises(IntegrityError, match="annotation_consensus_majority"), transaction.atomic():
            Consensus.objects.update(settled_by=None)

    def test_a_settled_question_may_become_a_check(self, disputed):
        project = disputed.project
        services.settle(project=project, query_id=disputed.pk, choice=0, person=make_user(), keep_as_check=True)
        assert GoldQuery.objects.get().source == "asked"
        open_records(project, 1)
        labelling.set_quality(project=project, gold_share=1.0)
        (eve,) = make_annotators(project, 1)
        assert answer_next(project, eve, 0).query == disputed
        correcting.undo_label(project=project, user=eve)
        assert Consensus.objects.filter(query=disputed).exists()

    def test_one_more_person_or_nobody(self, disputed):
        services.ask_beyond_overlap(project=disputed.project, query_id=disputed.pk)
        (eve,) = make_annotators(disputed.project, 1)
        answer_next(disputed.project, eve, 1)
        assert Consensus.objects.get().choice == 1
        other = make_project(overlap=2)
        with pytest.raises(InvalidConfiguration):
            services.leave_out_disputed(project=other, query_id=disputed.pk)
