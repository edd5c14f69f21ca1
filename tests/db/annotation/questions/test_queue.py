"""Questions reach as many people as they should, each person once, and come back when nobody answers."""

from collections import Counter
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from annotation.errors import AlreadyLabelled, InvalidConfiguration, LeaseExpired
from annotation.models import Assignment, AssignmentState, Label, Query, QueryState
from annotation.questions.services import labels, queue
from annotation.questions.services.queue import QueueState
from tests.factories import (
    asked_project,
    make_account,
    make_annotators,
    make_candidates,
    make_project,
    make_records,
    make_user,
    open_records,
)
from tests.owning import as_owner
from tests.threads import at_once


def let_expire(assignment):
    Assignment.objects.filter(pk=assignment.pk).update(leased_until=Now() - timedelta(minutes=10))


def slots_add_up():
    for query in Query.objects.exclude(state=QueryState.UNASKED):
        held = query.assignments.filter(state__in=(AssignmentState.LEASED, AssignmentState.LABELLED)).count()
        assert query.open_slots + held == query.overlap
    return True


def records_read():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables"
            " WHERE relname = 'annotation_record'"
        )
        return cursor.fetchone()[0]


@pytest.mark.django_db
class TestOpenQueries:
    @pytest.mark.parametrize("oracle", ["trusted", "crowd"])
    def test_statistics_from_the_middle_of_an_upload_make_nobody_read_all_records(self, oracle):
        project = make_project(oracle=oracle)
        records = make_records(project, [f"r{number}" for number in range(1500)])
        with as_owner(), connection.cursor() as cursor:
            # As ANALYZE leaves them that runs while the rows are there and not yet committed.
            cursor.execute("UPDATE pg_class SET reltuples = 0, relpages = 40 WHERE relname = 'annotation_record'")
        before = records_read()
        if oracle == "trusted":
            queue.open_queries(project=project, round_number=1, record_ids=[each.pk for each in records[:50]])
        else:
            make_candidates(project, [f"text {number}" for number in range(50)])
        assert Query.objects.count() == 50
        assert records_read() - before < 1000

    def test_records_are_asked_in_the_order_given(self):
        project = make_project(overlap=2)
        first, second, third = make_records(project, ["a", "b", "c"])
        opened = queue.open_queries(project=project, round_number=3, record_ids=[third.pk, first.pk, second.pk])
        stored = Query.objects.order_by("priority")
        assert opened == 3
        assert [query.record_id for query in stored] == [third.pk, first.pk, second.pk]
        assert [query.priority for query in stored] == [3 * 10**9, 3 * 10**9 + 1, 3 * 10**9 + 2]
        assert {(query.state, query.open_slots, query.overlap, query.round_number) for query in stored} == {
            ("open", 2, 2, 3)
        }

    def test_candidates_are_asked_in_the_order_given(self):
        project = make_project(oracle="crowd", overlap=3)
        alpha, beta, gamma = make_candidates(project, ["alpha", "beta", "gamma"])
        assert queue.open_queries(project=project, round_number=1, query_ids=[gamma.pk, alpha.pk]) == 2
        asked = Query.objects.filter(state=QueryState.OPEN).order_by("priority")
        assert [query.text for query in asked] == ["gamma", "alpha"]
        beta.refresh_from_db()
        assert (beta.state, beta.open_slots) == ("unasked", 0)

    def test_a_round_may_have_its_own_overlap(self):
        project = make_project(overlap=1)
        (record,) = make_records(project, ["a"])
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk], overlap=4)
        assert Query.objects.get().open_slots == 4

    @pytest.mark.parametrize("fields", [{"role": "public_test"}, {"state": "receiving"}, {"project": None}])
    def test_all_records_must_be_of_the_projects_ready_pool_or_none_is_asked(self, fields):
        project = make_project()
        (good,) = make_records(project, ["good"])
        if "project" in fields:
            (bad,) = make_records(make_project(), ["of another project"])
        else:
            (bad,) = make_records(project, ["bad"], **fields)
        with pytest.raises(InvalidConfiguration, match="Only 1 of 2"):
            queue.open_queries(project=project, round_number=1, record_ids=[good.pk, bad.pk])
        assert not Query.objects.exists()

    def test_a_candidate_is_asked_once(self):
        project = make_project(oracle="crowd")
        (candidate,) = make_candidates(project, ["alpha"])
        queue.open_queries(project=project, round_number=1, query_ids=[candidate.pk])
        with pytest.raises(InvalidConfiguration, match="Only 0 of 1"):
            queue.open_queries(project=project, round_number=2, query_ids=[candidate.pk])

    def test_a_record_is_asked_once(self):
        project = make_project()
        (record,) = make_records(project, ["a"])
        queue.open_queries(project=project, round_number=1, record_ids=[record.pk])
        with pytest.raises(IntegrityError, match="record_id"):
            queue.open_queries(project=project, round_number=2, record_ids=[record.pk])


@pytest.mark.django_db
class TestClaimNext:
    def test_the_smallest_priority_comes_first(self):
        project = make_project()
        later = open_records(project, 1, round_number=2)
        sooner = open_records(project, 2, round_number=1)
        (person,) = make_annotators(project, 1)
        seen = []
        for _ in range(3):
            assignment = queue.claim_next(project=project, user=person)
            seen.append(assignment.query_id)
            labels.submit_label(assignment=assignment, choice=0)
        assert seen == [query.pk for query in (*sooner, *later)]
        assert queue.claim_next(project=project, user=person) is None

    def test_a_person_keeps_the_question_they_hold_and_its_lease_is_renewed(self):
        project, _, (person,) = asked_project(2)
        first = queue.claim_next(project=project, user=person)
        let_expire(first)
        again = queue.claim_next(project=project, user=person)
        assert again.pk == first.pk
        assert again.leased_until > first.created_at + timedelta(seconds=500)
        assert slots_add_up()

    def test_what_is_shown_comes_with_the_lease(self, django_assert_num_queries):
        project, _, (person,) = asked_project()
        assignment = queue.claim_next(project=project, user=person)
        with django_assert_num_queries(0):
            assert assignment.query.record.text == "record 0"
            assert assignment.project.slug
            assert assignment.done_today == assignment.waiting == 0

    @pytest.mark.parametrize("oracle", ["trusted", "crowd"])
    def test_what_somebody_has_answered_or_skipped_does_not_wait_for_them(self, oracle):
        project = make_project(oracle=oracle, overlap=3)
        if oracle == "trusted":
            open_records(project, 4)
        else:
            candidates = make_candidates(project, ["alpha", "beta", "gamma", "delta"])
            queue.open_queries(project=project, round_number=1, query_ids=[each.pk for each in candidates])
        ann, ben = make_annotators(project, 2)
        held = queue.claim_next(project=project, user=ann)
        assert held.waiting == 3
        labels.submit_label(assignment=held, choice=0)
        held = queue.claim_next(project=project, user=ann)
        assert held.waiting == 2
        labels.skip_assignment(assignment=held, reason="unclear")
        held = queue.claim_next(project=project, user=ann)
        assert held.waiting == 1
        let_expire(held)
        queue.return_expired_leases()
        assert queue.claim_next(project=project, user=ann).waiting == 1
        assert queue.claim_next(project=project, user=ben).waiting == 3

    def test_overlap_gives_a_question_to_that_many_people(self):
        project, (query,), (first, second, third) = asked_project(1, 3, overlap=2)
        assert queue.claim_next(project=project, user=first).query_id == query.pk
        assert queue.claim_next(project=project, user=second).query_id == query.pk
        assert queue.claim_next(project=project, user=third) is None
        assert slots_add_up()

    def test_nobody_is_asked_the_same_question_twice(self):
        project, _, (person,) = asked_project(overlap=3)
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
        assert queue.claim_next(project=project, user=person) is None

    def test_a_skipped_question_goes_to_others_only(self):
        project, (query,), (first, second) = asked_project(1, 2)
        labels.skip_assignment(assignment=queue.claim_next(project=project, user=first), reason="unsure")
        assert queue.claim_next(project=project, user=first) is None
        assert queue.claim_next(project=project, user=second).query_id == query.pk
        assert slots_add_up()

    def test_an_expired_lease_can_come_back_to_the_same_person(self):
        project, _, (person,) = asked_project()
        first = queue.claim_next(project=project, user=person)
        let_expire(first)
        assert queue.return_expired_leases() == 1
        again = queue.claim_next(project=project, user=person)
        assert (again.pk, again.state, again.finished_at) == (first.pk, AssignmentState.LEASED, None)
        assert slots_add_up()

    def test_projects_do_not_mix(self):
        one, other = make_project(), make_project()
        open_records(other, 1)
        (person,) = make_annotators(one, 1)
        assert queue.claim_next(project=one, user=person) is None

    def test_a_paused_project_hands_nothing_out(self):
        project, _, (person,) = asked_project(state="paused")
        assert queue.claim_next(project=project, user=person) is None

    @pytest.mark.parametrize(("questions", "counted"), [(999, False), (1000, True)])
    def test_a_large_round_is_counted_for_the_planner(self, questions, counted, django_capture_on_commit_callbacks):
        # The ledger's counter must not hear of accounts that are rolled back.
        project = make_project()
        with connection.cursor() as cursor:
            cursor.execute("SELECT annotation_count_questions()")
            with django_capture_on_commit_callbacks(execute=True):
                open_records(project, questions)
            cursor.execute("SELECT reltuples FROM pg_class WHERE oid = 'annotation_query'::regclass")
            assert (cursor.fetchone()[0] >= questions) == counted

    def test_a_click_reads_the_front_of_the_queue_only(self):
        """An answer and the next question of a long queue look at hardly more pages than those of a short one."""

        def pages_read(length):
            project = make_project()
            open_records(project, length)
            person, other = make_annotators(project, 2)
            held = queue.claim_next(project=project, user=other)
            with connection.cursor() as cursor:
                cursor.execute("SELECT annotation_count_questions()")
                pk, lease = project.pk, uuid4()
                calls = (
                    f"annotation_answer('{held.pk}', {held.query_id}, 0, NULL)",
                    f"annotation_close({held.query_id}, {pk}, 'closed', 0, 1, 1, 40)",
                    f"annotation_claim({pk}, {person.pk}, '{lease}', 6, 'any', false, false, now(), 9, 5, 0)",
                )
                totals = []
                for _ in range(3):
                    total, before = 0, transaction.savepoint()
                    for call in calls:
                        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM {call}")
                        total += cursor.fetchone()[0][0]["Plan"]["Shared Hit Blocks"]
                    totals.append(total)
                    transaction.savepoint_rollback(before)
            # Whoever comes first after the tables were looked at plans the statements anew.
            return min(totals)

        assert pages_read(6000) < 1.5 * pages_read(200) + 50


@pytest.mark.django_db
class TestDatabaseRules:
    """The database refuses what the services never do."""

    def test_slots_never_go_below_zero(self):
        (query,) = open_records(make_project(), 1)
        with pytest.raises(IntegrityError, match="annotation_query_overlap"), transaction.atomic():
            Query.objects.filter(pk=query.pk).update(open_slots=-1)

    def test_slots_never_exceed_the_overlap(self):
        (query,) = open_records(make_project(), 1)
        with pytest.raises(IntegrityError, match="annotation_query_overlap"), transaction.atomic():
            Query.objects.filter(pk=query.pk).update(open_slots=2)

    def test_a_person_holds_one_question_of_a_project(self):
        project, (_held, other), (person,) = asked_project(2)
        queue.claim_next(project=project, user=person)
        with pytest.raises(IntegrityError, match="annotation_assignment_one_lease"), transaction.atomic():
            Assignment.objects.create(project=project, query=other, annotator=person, leased_until=Now())
        with pytest.raises(IntegrityError, match="annotation_assignment_places"), transaction.atomic():
            Assignment.objects.create(project=project, query=other, annotator=person, leased_until=Now(), place=51)

    def test_a_person_meets_a_question_once(self):
        project, (query,), (person,) = asked_project(overlap=2)
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
        with pytest.raises(IntegrityError, match="annotation_assignment_once_per_person"), transaction.atomic():
            Assignment.objects.create(project=project, query=query, annotator=person, leased_until=Now())


@pytest.mark.django_db
class TestBatches:
    def test_a_batch_is_held_beside_the_page_and_filled_up_again(self):
        project, _, (person, other) = asked_project(6, 2)
        page = queue.claim_next(project=project, user=person)
        batch = queue.claim_several(project=project, user=person, most=3)
        assert [one.place for one in batch] == [1, 2, 3]
        assert len({page.query_id, *(one.query_id for one in batch)}) == 4
        assert queue.claim_several(project=project, user=person, most=3) == batch
        labels.submit_label(assignment=batch[1], choice=0)
        again = queue.claim_several(project=project, user=person, most=3)
        assert (again[0], again[2]) == (batch[0], batch[2])
        assert again[1].query_id not in {one.query_id for one in batch}
        assert queue.claim_next(project=project, user=person) == page
        assert len(queue.claim_several(project=project, user=other, most=50)) == 1
        assert slots_add_up()

    def test_an_answer_to_a_lapsed_question_leaves_the_others_held(self):
        project, _, (person,) = asked_project(4)
        page = queue.claim_next(project=project, user=person)
        lapsed, held = queue.claim_several(project=project, user=person, most=2)
        let_expire(lapsed)
        queue.return_expired_leases()
        labels.submit_label(assignment=lapsed, choice=0)
        held.refresh_from_db()
        page.refresh_from_db()
        # As on the page, where the question that was answered late takes the place of the one shown.
        assert (held.state, page.state) == (AssignmentState.LEASED, AssignmentState.EXPIRED)
        assert slots_add_up()

    @pytest.mark.parametrize("limit", ["answers_per_person", "answers_per_day"])
    def test_what_is_held_counts_against_the_limits_of_a_person(self, limit):
        project, _, (person,) = asked_project(6, **{limit: 3})
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
        batch = queue.claim_several(project=project, user=person, most=50)
        assert len(batch) == 2
        assert queue.claim_next(project=project, user=person) is None
        labels.submit_label(assignment=batch[0], choice=0)
        assert queue.claim_several(project=project, user=person, most=50) == batch[1:]


@pytest.mark.django_db
class TestLeases:
    def test_only_lapsed_leases_are_taken_back(self):
        project, _, (slow, quick) = asked_project(2, 2)
        lapsed = queue.claim_next(project=project, user=slow)
        live = queue.claim_next(project=project, user=quick)
        let_expire(lapsed)
        assert queue.return_expired_leases() == 1
        assert queue.return_expired_leases() == 0
        lapsed.refresh_from_db()
        live.refresh_from_db()
        assert (lapsed.state, live.state) == (AssignmentState.EXPIRED, AssignmentState.LEASED)
        assert lapsed.finished_at is not None
        assert slots_add_up()

    def test_several_leases_of_one_question_come_back_at_once(self):
        project = make_project(overlap=3)
        (query,) = open_records(project, 1)
        for person in make_annotators(project, 3):
            let_expire(queue.claim_next(project=project, user=person))
        assert queue.return_expired_leases() == 3
        query.refresh_from_db()
        assert query.open_slots == 3


@pytest.mark.django_db
class TestQueueState:
    def state(self, project, person):
        assert queue.claim_next(project=project, user=person) is None
        return queue.queue_state(project=project, user=person)

    def test_before_the_first_round(self):
        project = make_project()
        (person,) = make_annotators(project, 1)
        assert self.state(project, person) == QueueState.WAITING_FOR_FIRST

    def test_between_rounds(self):
        project, _, (person,) = asked_project()
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
        assert self.state(project, person) == QueueState.MORE_COMING

    def test_others_still_answer(self):
        project, _, (person,) = asked_project(overlap=2)
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
        assert self.state(project, person) == QueueState.ANSWERED_ALL

    def test_paused(self):
        project = make_project(state="paused")
        (person,) = make_annotators(project, 1)
        assert self.state(project, person) == QueueState.PAUSED

    def test_no_budget_for_another_release(self):
        project = make_project(pool_account=make_account(epsilon_limit=0.9), training_epsilon=1.0)
        (person,) = make_annotators(project, 1)
        assert self.state(project, person) == QueueState.BUDGET_SPENT

    def test_a_secret_sample_makes_a_release_cheap_enough(self):
        fields = {"selection": "secret_sample", "selection_rate": 0.1, "training_epsilon": 1.0}
        (person,) = make_annotators(project := make_project(pool_account=make_account(epsilon_limit=0.2), **fields), 1)
        assert self.state(project, person) == QueueState.WAITING_FOR_FIRST
        (person,) = make_annotators(project := make_project(pool_account=make_account(epsilon_limit=0.1), **fields), 1)
        assert self.state(project, person) == QueueState.BUDGET_SPENT

    def test_not_an_annotator(self):
        project = make_project()
        assert self.state(project, make_user()) == QueueState.NOT_MEMBER


def in_threads(number, work):
    return at_once(*(partial(work, n) for n in range(number)))


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_32_people_never_exceed_the_overlap_and_leave_no_slot(self):
        project, queries, people = asked_project(20, 32, overlap=3, labels_per_release=10**6)

        def work(n):
            seen = []
            while (assignment := queue.claim_next(project=project, user=people[n])) is not None:
                labels.submit_label(assignment=assignment, choice=assignment.query_id % 3)
                seen.append(assignment.query_id)
            return seen

        seen = in_threads(32, work)
        # SKIP LOCKED may hide a question from somebody who stops early; one more pass asks what is left.
        for n in range(32):
            seen.append(work(n))
        answered = Counter(query for one in seen for query in one)
        assert answered == Counter({query.pk: 3 for query in queries})
        assert all(len(set(one)) == len(one) for one in seen)
        assert Label.objects.count() == 60
        assert Query.objects.filter(state=QueryState.CLOSED, open_slots=0).count() == 20
        assert slots_add_up()

    def test_batches_of_one_person_at_once_hold_no_question_twice_and_keep_the_limit(self):
        project, _, (person,) = asked_project(20, overlap=2, answers_per_person=12)
        page = queue.claim_next(project=project, user=person)
        claimed = in_threads(4, lambda _: queue.claim_several(project=project, user=person, most=15))
        held = {assignment.pk for batch in claimed for assignment in batch}
        # The question on the page is one of the twelve.
        assert len(held) == 11
        assert page.pk not in held
        assert slots_add_up()

    def test_one_person_clicking_everywhere_holds_one_question(self):
        project, _, (person,) = asked_project(8, overlap=2)
        claimed = in_threads(8, lambda _: queue.claim_next(project=project, user=person))
        assert len({assignment.pk for assignment in claimed if assignment}) == 1
        assert slots_add_up()

    def test_one_person_claiming_back_expired_questions_everywhere_holds_one(self):
        project, _, (person,) = asked_project(4)
        for query in Query.objects.all():
            Assignment.objects.create(
                project=project, query=query, annotator=person, state=AssignmentState.EXPIRED, leased_until=Now()
            )
        claimed = in_threads(8, lambda _: queue.claim_next(project=project, user=person))
        assert len({assignment.pk for assignment in claimed if assignment}) == 1
        assert slots_add_up()

    def test_expiry_beside_answers_loses_and_doubles_nothing(self):
        project, _, people = asked_project(10, 6, overlap=2, labels_per_release=10**6)

        def work(n):
            if n == 6:
                return sum(queue.return_expired_leases() for _ in range(60))
            for _ in range(12):
                assignment = queue.claim_next(project=project, user=people[n])
                if assignment is None:
                    continue
                Assignment.objects.filter(pk=assignment.pk).update(leased_until=Now())
                try:
                    labels.submit_label(assignment=assignment, choice=0)
                except (LeaseExpired, AlreadyLabelled):
                    continue
            return 0

        in_threads(7, work)
        queue.return_expired_leases()
        assert slots_add_up()
        assert all(n <= 2 for n in Counter(Label.objects.values_list("query_id", flat=True)).values())
