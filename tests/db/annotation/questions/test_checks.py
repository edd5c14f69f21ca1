import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotation.budget import label_budget
from annotation.errors import InvalidConfiguration
from annotation.models import Assignment, Consensus, Dataset, Job, Label, Membership, Query, Record
from annotation.questions.selectors import checks_in_use, checks_of
from annotation.questions.services import checks as gold
from annotation.questions.services import correcting, labelling, labels, queue
from annotation.review import selectors
from tests.factories import answer_next, make_annotators, make_candidates, make_project, make_records, open_records

pytestmark = pytest.mark.django_db(transaction=True)


def make_public(project, texts, label=0) -> Dataset:
    job = Job.objects.create(project=project, kind="import")
    dataset = Dataset.objects.create(project=project, job=job, name="public", role="public_test", state="ready")
    Record.objects.bulk_create(
        Record(dataset=dataset, row_number=number, text=text, label=label) for number, text in enumerate(texts)
    )
    return dataset


def with_checks(number=3, **fields):
    project = make_project(gold_share=1.0, gold_minimum=2, **fields)
    dataset = make_public(project, [f"public {n}" for n in range(number)])
    added = gold.add_public_checks(project=project, dataset=dataset, owner=project.created_by, most=number)
    assert added == number
    return project


class TestChecks:
    def test_they_come_among_other_questions_once_each_and_never_alone(self):
        project = with_checks(3)
        (ann,) = make_annotators(project, 1)
        assert queue.claim_next(project=project, user=ann) is None
        open_records(project, 1)
        seen = [answer_next(project, ann, 0) for _ in range(5)]
        assert [item and item.query.state for item in seen] == ["gold", "gold", "gold", "open", None]
        assert {item.query.text is None and item.query.record.text for item in seen[:3]} == {
            "public 0",
            "public 1",
            "public 2",
        }

    def test_the_share_is_a_share(self):
        project = with_checks(1)
        open_records(project, 1)
        (ann,) = make_annotators(project, 1)
        labelling.set_quality(project=project, gold_share=0.0)
        assert queue.claim_next(project=project, user=ann).query.state == "open"

    def test_a_retired_check_is_shown_to_nobody_and_counts_against_nobody(self):
        project = with_checks(1)
        open_records(project, 2)
        ann, bob = make_annotators(project, 2)
        check = answer_next(project, ann, 1).query
        assert check.state == "gold"
        (sheet,) = selectors.annotators_work(project, only=[ann])
        assert (sheet.checks.answered, sheet.accepted, sheet.refused) == (1, 0, 1)
        assert [(one.answered, one.wrong) for one in checks_in_use(project)] == [(1, 1)]
        gold.retire_check(check=check.gold)
        (sheet,) = selectors.annotators_work(project, only=[ann])
        assert (sheet.checks.answered, sheet.accepted, sheet.refused) == (0, 1, 0)
        assert list(checks_in_use(project)) == []
        assert queue.claim_next(project=project, user=bob).query.state == "open"

    def test_no_consensus_comes_of_them(self):
        project = with_checks(2)
        open_records(project, 1)
        for person in make_annotators(project, 3):
            answer_next(project, person, 1)
        assert Label.objects.count() == 3
        assert not Consensus.objects.exists()

    def test_leases_end_skips_and_undo_keep_them_checks(self):
        project = with_checks(1)
        open_records(project, 1)
        ann, bob, eve = make_annotators(project, 3)
        queue.claim_next(project=project, user=ann)
        queue.claim_next(project=project, user=bob)
        Assignment.objects.update(leased_until=timezone.now())
        assert queue.return_expired_leases() == 2
        held = queue.claim_next(project=project, user=eve)
        assert held.query.state == "gold"
        labels.skip_assignment(assignment=held, reason="unsure")
        dan = make_annotators(project, 1)[0]
        assert answer_next(project, dan, 0).query.state == "gold"
        correcting.undo_label(project=project, user=dan)
        check = Query.objects.get(state="gold")
        assert check.open_slots == gold.SLOTS - 1

    def test_only_public_examples_become_checks(self):
        project = make_project()
        private = make_records(project, ["secret"])[0].dataset
        with pytest.raises(InvalidConfiguration):
            gold.add_public_checks(project=project, dataset=private, owner=project.created_by, most=1)
        other = make_public(make_project(), ["public"])
        with pytest.raises(InvalidConfiguration):
            gold.add_public_checks(project=project, dataset=other, owner=project.created_by, most=1)

    def test_the_database_refuses_a_private_record_as_a_check(self):
        project = make_project()
        record = make_records(project, ["secret"])[0]
        with pytest.raises(IntegrityError, match="is asked about"), transaction.atomic():
            Query.objects.create(project=project, record=record, state="gold", round_number=0)

    def test_in_a_crowd_project_they_are_copies_and_look_like_gate_output(self):
        project = make_project(oracle="crowd", gold_share=1.0, normalizer="L1")
        dataset = make_public(project, ["Play JAZZ!", "play jazz", "Stop"])
        assert gold.add_public_checks(project=project, dataset=dataset, owner=project.created_by, most=10) == 2
        checks = Query.objects.filter(state="gold")
        assert set(checks.values_list("text", "record")) == {("play jazz", None), ("stop", None)}
        with pytest.raises(IntegrityError, match="annotation_query_one_source"), transaction.atomic():
            checks.update(state="open")
        assert gold.add_public_checks(project=project, dataset=dataset, owner=project.created_by, most=10) == 0

    def test_they_are_no_questions_the_budget_asked_for_but_their_answers_cost(self):
        project = with_checks(2, labels_limit=10)
        open_records(project, 1)
        (ann,) = make_annotators(project, 1)
        assert label_budget.answers_asked(project) == 1
        answer_next(project, ann, 0)
        assert label_budget.answers_asked(project) == 2


class TestJudging:
    def test_somebody_far_below_is_paused_and_goes_on_afresh(self):
        project = with_checks(8, gold_pause_below=0.5)
        open_records(project, 3)
        (ann,) = make_annotators(project, 1)
        while answer_next(project, ann, 2) is not None and not Membership.objects.get(user=ann).paused_at:
            pass
        member = Membership.objects.get(user=ann)
        assert member.pause_reason == "checks"
        checks = checks_of(project=project, user_id=ann.pk)
        assert (checks.right, checks.answered) == (0, 4)
        assert queue.claim_next(project=project, user=ann) is None
        assert queue.queue_state(project=project, user=ann) == "person_paused"
        gold.resume_member(membership=member)
        assert checks_of(project=project, user_id=ann.pk).answered == 0
        assert queue.claim_next(project=project, user=ann) is not None

    def test_bad_luck_alone_pauses_nobody(self):
        project = with_checks(6, gold_pause_below=0.5)
        open_records(project, 1)
        (ann,) = make_annotators(project, 1)
        for choice in (0, 0, 2, 2, 2):
            answer_next(project, ann, choice)
        assert Membership.objects.get(user=ann).paused_at is None
        labelling.set_quality(project=project, gold_warn_below=0.8)
        assert gold.is_warned(project, checks_of(project=project, user_id=ann.pk))

    def test_own_checks_move_in_steps(self):
        project = with_checks(7)
        open_records(project, 1)
        (ann,) = make_annotators(project, 1)
        for _ in range(4):
            answer_next(project, ann, 0)
        assert selectors.own_statistics(project=project, user=ann).sheet.checks.answered == 0
        answer_next(project, ann, 0)
        assert selectors.own_statistics(project=project, user=ann).sheet.checks.answered == 5


def test_candidates_of_the_gate_stay_apart_from_checks():
    project = make_project(oracle="crowd", gold_share=1.0, normalizer="L1")
    make_candidates(project, ["play jazz"])
    dataset = make_public(project, ["play jazz", "stop"])
    assert gold.add_public_checks(project=project, dataset=dataset, owner=project.created_by, most=10) == 1
