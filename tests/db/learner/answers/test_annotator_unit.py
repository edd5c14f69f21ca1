import json
import threading

import pytest
from django.db import IntegrityError, connection, connections, transaction

from annotation.budget.presenters import budget_sheets
from annotation.errors import ConfigurationFrozen, InvalidConfiguration, LeaseExpired
from annotation.models import Assignment, AssignmentState, Label, Membership, Query, QueryState
from annotation.projects.services import configuring
from annotation.questions.services import correcting, labels, queue
from annotation.questions.services.queue import QueueState
from annotation.questions.work_limits import Waiting, waiting_for
from learner.models import ModelRelease
from learner.models.answers import RandomizedLabel
from learner.releases import storage
from privacy.accounting.event import event_from_json
from privacy.accounting.events import RandomizedAnswersEvent
from privacy.ledger.entries import broken_rule
from privacy.ledger.models import EntryKind, LedgerEntry
from tests import learning
from tests.clients import browser_of
from tests.factories import make_annotators, make_user
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)
CAP = 3


def open_capped(**settings):
    values = {
        "label_randomizer": "randomized_consensus",
        "answers_unit": "annotator",
        "answers_cap": CAP,
        "answers_epsilon": 9.0,
        "labels_epsilon": 9.0,
        "estimator": "channel",
        "repeat_votes": False,
        "features": "static_encoder",
        "selection": "clustered_uncertainty",
        "overlap": 1,
    }
    return learning.open_crowd(make_user(), **(values | settings))


@pytest.fixture
def crowd(remembered):
    return remembered("a crowd of capped people", asked_capped)


def asked_capped():
    project = open_capped()
    learning.fill_crowd(project)
    make_annotators(project, 2)
    learning.work_off(project)
    return project


def people_of(project):
    return [each.user for each in Membership.objects.filter(project=project, role="annotator").order_by("pk")]


def answer_all(project, person):
    given = 0
    while (held := queue.claim_next(project=project, user=person)) is not None:
        labels.submit_label(assignment=held, choice=learning.truth_of(held.query.text))
        given += 1
    return given


def test_what_one_person_may_move_is_paid_once_and_never_exceeds_what_is_declared(crowd):
    assert crowd.labels_account.unit == "annotator"
    (paid,) = LedgerEntry.objects.filter(account=crowd.labels_account, kind=EntryKind.RESERVE)
    event = event_from_json(paid.event)
    assert isinstance(event, RandomizedAnswersEvent)
    assert (event.unit, event.questions_per_annotator, event.n_classes) == ("annotator", CAP, 2)
    assert event.epsilon == pytest.approx(3.0)
    assert 8.999 * 10**9 < paid.epsilon_nano <= 9 * 10**9


def test_nobody_is_asked_more_than_the_cap_and_is_told_that_their_work_is_done(crowd):
    first, second = people_of(crowd)
    assert answer_all(crowd, first) == CAP
    assert queue.queue_state(project=crowd, user=first) == QueueState.PROTECTED_ANSWERS
    assert Query.objects.filter(project=crowd, state=QueryState.OPEN).exists()
    client = browser_of(first)
    page = client.get(f"/projects/{crowd.slug}/label/").content.decode()
    assert "Your work here is done" in page
    assert "the protection covers 3. Others answer the rest" in page
    why = client.get(f"/projects/{crowd.slug}/label/why/").content.decode()
    assert "Your answers are protected too: released" in why
    # Who answered nothing yet is asked as before.
    assert answer_all(crowd, second) == CAP


def test_a_batch_and_what_lapsed_of_it_stay_below_the_cap(crowd):
    person = people_of(crowd)[0]
    first = queue.claim_several(project=crowd, user=person, most=50)
    assert len(first) == CAP
    Assignment.objects.filter(annotator=person).update(leased_until="2001-01-01T00:00Z")
    queue.return_expired_leases()
    labels.submit_label(assignment=first[0], choice=0)
    second = queue.claim_several(project=crowd, user=person, most=50)
    assert len(second) == CAP - 1
    for held in second:
        labels.submit_label(assignment=held, choice=0)
    other = Query.objects.filter(project=crowd, state=QueryState.OPEN).exclude(labels__annotator=person).first()
    lapsed = {"state": AssignmentState.EXPIRED, "leased_until": "2001-01-01T00:00Z"}
    late = Assignment.objects.create(project=crowd, query=other, annotator=person, **lapsed)
    with pytest.raises(LeaseExpired):
        labels.submit_label(assignment=late, choice=0)
    assert Label.objects.filter(annotator=person).values("query").distinct().count() == CAP


def test_an_answer_taken_back_at_the_cap_may_be_given_anew_and_no_other_one(crowd):
    person = people_of(crowd)[0]
    answer_all(crowd, person)
    assert waiting_for(person, [crowd])[crowd.pk] == Waiting(state=QueueState.PROTECTED_ANSWERS)
    undone = correcting.undo_last(project=crowd, user=person)
    held = queue.claim_next(project=crowd, user=person)
    assert held.query_id == undone.query_id
    assert waiting_for(person, [crowd])[crowd.pk] == Waiting(asks=True)
    Assignment.objects.filter(pk=held.pk).update(leased_until="2001-01-01T00:00Z")
    queue.return_expired_leases()
    assert waiting_for(person, [crowd])[crowd.pk] == Waiting(asks=True)
    held = queue.claim_next(project=crowd, user=person)
    labels.submit_label(assignment=held, choice=0)
    assert queue.claim_next(project=crowd, user=person) is None
    assert Label.objects.filter(annotator=person).values("query").distinct().count() == CAP
    # A question given back unanswered was not answered: another one may be.
    undone = correcting.undo_last(project=crowd, user=person)
    labels.skip_assignment(assignment=queue.claim_next(project=crowd, user=person), reason="unclear")
    assert queue.claim_next(project=crowd, user=person) is None


def one_more(project, person):
    """Store an answer of somebody at the cap as an attacker would who writes rows by hand."""
    query = Query.objects.filter(project=project, state=QueryState.OPEN).exclude(labels__annotator=person).first()
    held = Assignment.objects.create(
        project=project, query=query, annotator=person, state=AssignmentState.LABELLED, leased_until="2030-01-01T00:00Z"
    )
    return Label.objects.create(assignment=held, query=query, annotator=person, choice=0)


def test_the_database_takes_no_answer_beyond_the_cap(crowd):
    person = people_of(crowd)[0]
    answer_all(crowd, person)
    with pytest.raises(IntegrityError, match="as many answers as are protected") as refused, transaction.atomic():
        one_more(crowd, person)
    assert broken_rule(refused.value) == "annotation_label_within_cap"
    with as_owner(), pytest.raises(IntegrityError, match="as many answers"), transaction.atomic():
        one_more(crowd, person)
    # Without the rule the row goes in: it is this rule that keeps it out.
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE annotation_label DISABLE TRIGGER annotation_label_within_cap")
        one_more(crowd, person)
        cursor.execute("ALTER TABLE annotation_label ENABLE TRIGGER annotation_label_within_cap")


def test_two_answers_at_once_do_not_pass_the_cap_together(crowd):
    person = people_of(crowd)[0]
    for _ in range(CAP - 1):
        labels.submit_label(assignment=queue.claim_next(project=crowd, user=person), choice=0)
    taken = set(Label.objects.filter(annotator=person).values_list("query_id", flat=True))
    open_ones = list(Query.objects.filter(project=crowd, state=QueryState.OPEN).exclude(pk__in=taken)[:2])
    held = [
        Assignment.objects.create(
            project=crowd, query=one, annotator=person, state=AssignmentState.LABELLED, leased_until="2030-01-01T00:00Z"
        )
        for one in open_ones
    ]
    together, refused = threading.Barrier(2), []

    def give(assignment):
        try:
            with transaction.atomic():
                together.wait()
                Label.objects.create(assignment=assignment, query_id=assignment.query_id, annotator=person, choice=1)
        except IntegrityError:
            refused.append(assignment)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=give, args=[one]) for one in held]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert Label.objects.filter(annotator=person).values("query").distinct().count() == CAP


def test_models_are_released_and_card_and_budget_say_who_is_protected():
    project = open_capped(answers_cap=8, answers_epsilon=16.0, labels_epsilon=16.0)
    learning.fill_crowd(project)
    make_annotators(project, 2)
    for _ in range(8):
        learning.work_off(project)
        for person in people_of(project):
            answer_all(project, person)
    release = ModelRelease.objects.filter(project=project, version=2).get()
    assert release.state == "released"
    assert RandomizedLabel.objects.count() == 16
    with storage.open_file(release=release, name="card.md") as file:
        card = file.read().decode()
    assert "two data sets that differ in all answers of one annotator, replaced by others" in card
    assert "of one annotator, whose answers to at most 8 questions are protected together, covers all" in card
    assert "several answers of one annotator together" not in card
    assert "that an annotator took part, when, what they skipped" in card
    with storage.open_file(release=release, name="privacy.json") as file:
        (account,) = (one for one in json.load(file)["accounts"] if one["unit"] == "annotator")
    assert account["neighbouring_data_sets"].endswith("all answers of one annotator, replaced by others")
    sheet = next(one for one in budget_sheets(project) if one.account == project.labels_account)
    assert "All answers of one annotator" in sheet.promise


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"answers_cap": None}, "answers_cap: Every answer costs epsilon again"),
        ({"answers_unit": "answer"}, "answers_cap: Only with protection per annotator"),
        ({"answers_cap": 0}, "answers_cap"),
        ({"answers_cap": 5000}, "answers_cap"),
        ({"labels_epsilon": 8.0}, "labels_epsilon: All answers cost epsilon 9"),
    ],
)
def test_what_would_protect_nobody_is_refused(given, rule):
    with pytest.raises(InvalidConfiguration, match=rule):
        open_capped(**given)


def test_unit_and_cap_change_before_the_first_charge_with_the_account_and_never_after_it():
    project = open_capped()
    actor = project.created_by
    project = configuring.configure_project(
        project=project, changes={"answers_unit": "answer", "answers_cap": None}, actor=actor
    )
    assert project.labels_account.unit == "answer"
    project = configuring.configure_project(
        project=project, changes={"answers_unit": "annotator", "answers_cap": 5}, actor=actor
    )
    assert project.labels_account.unit == "annotator"
    learning.fill_crowd(project)
    for change in ({"answers_cap": 6}, {"answers_unit": "answer", "answers_cap": None}):
        with pytest.raises(ConfigurationFrozen):
            configuring.configure_project(project=project, changes=change, actor=actor)
