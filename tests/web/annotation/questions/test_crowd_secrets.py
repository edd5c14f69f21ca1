import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from annotation.data.services import retention
from annotation.errors import InvalidConfiguration
from annotation.models import Assignment, Consensus, Project, Query, QueryState
from annotation.people.services import members
from annotation.questions.services import checks as gold
from annotation.questions.services import labelling, labels, queue
from annotation.review import selectors, services
from learner.pools.selectors import question_counts
from learner.rounds.services.forgetting import apply_retention
from tests.clients import browser_of
from tests.factories import asked_project, make_annotators, make_candidates, make_project, open_records, write_settings
from tests.programs import Program

pytestmark = pytest.mark.django_db
# Drawn anew for each page.
DRAWN = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9]{64}|\d+(?:\.\d)? s on average|.seconds.: \d+\.\d")


@contextmanager
def taken_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def crowd():
    project = make_project(
        oracle="crowd",
        selection="uncertainty",
        overlap=2,
        price_per_label=Decimal("0.10"),
        currency="EUR",
        question="Which?",
    )
    make_candidates(project, [f"text {number}" for number in range(6)])
    ids = list(Query.objects.order_by("pk").values_list("pk", flat=True))
    queue.open_queries(project=project, round_number=1, query_ids=ids[:3])
    return project


def answer(project, person, choices) -> None:
    for choice in choices:
        held = queue.claim_next(project=project, user=person)
        assert held is not None
        labels.submit_label(assignment=held, choice=choice)


def pages_of(person, project) -> list[tuple[int, str]]:
    client, program = Client(), Program(person, project)
    client.force_login(person)
    base = f"/projects/{project.slug}/label/"
    seen = [client.get(base), client.get(f"{base}mine/"), client.get(f"{base}done/"), program("GET", "statistics")]
    last = Consensus.objects.order_by("-pk").first()
    labels.mark_labels_used(project=project, last_consensus_id=last.pk if last else 0)
    seen += [client.get(base), client.get(f"{base}mine/"), program("GET", "statistics")]
    seen += [client.post(f"{base}undo/"), client.get(base)]
    return [(page.status_code, DRAWN.sub("", page.content.decode())) for page in seen]


def test_what_one_person_sees_follows_no_answer_of_another(crowd):
    me, other = make_annotators(crowd, 2)
    worlds = []
    for others in ([0, 0, 0], [0, 0, 1], [1, 2, 1]):
        with taken_back():
            answer(crowd, me, [0, 0, 0])
            answer(crowd, other, others)
            states = set(Query.objects.exclude(state=QueryState.UNASKED).values_list("state", flat=True))
            assert states == {"closed"} if others == [0, 0, 0] else {"disputed"} <= states
            worlds.append(pages_of(me, crowd))
    assert [status for status, _page in worlds[0]] == [200, 200, 403, 200, 200, 200, 200, 409, 200]
    assert worlds[1:] == [worlds[0]] * 2


def test_what_is_kept_of_old_answers_follows_no_answer(crowd):
    """Else what stays on a person's own page would be what others answered otherwise."""
    me, other = make_annotators(crowd, 2)
    retention.set_retention(project=crowd, actor="m", answers_days=30)
    worlds = []
    for others in ([0, 0, 0], [0, 0, 1], [1, 2, 1]):
        with taken_back():
            answer(crowd, me, [0, 0, 0])
            answer(crowd, other, others)
            Assignment.objects.update(finished_at=timezone.now() - timedelta(days=40))
            gone = dict(apply_retention(project_id=crowd.pk))
            left = set(Query.objects.exclude(state=QueryState.UNASKED).values_list("state", "emptied"))
            counts = question_counts(crowd)
            worlds.append((gone, left, counts.agreed + counts.unagreed, pages_of(me, crowd)))
    assert worlds[0][0] == {"answers": 3}
    assert worlds[0][1] == {("withdrawn", True)}
    assert worlds[1:] == [worlds[0]] * 2


def test_among_trusted_people_a_question_to_settle_stays():
    project = make_project(overlap=2)
    open_records(project, 1)
    for choice, person in enumerate(make_annotators(project, 2)):
        answer(project, person, [choice])
    Assignment.objects.update(finished_at=timezone.now() - timedelta(days=40))
    retention.set_retention(project=project, actor="m", answers_days=30)
    assert dict(apply_retention(project_id=project.pk)) == {}
    assert Query.objects.get().state == QueryState.DISPUTED


def test_among_trusted_people_an_answer_is_accepted_by_what_was_agreed_on():
    project, _, people = asked_project(1, 3, overlap=3, price_per_label=Decimal("0.10"), currency="EUR")
    for choice, person in zip((1, 0, 1), people, strict=True):
        answer(project, person, [choice])
    own = [selectors.own_statistics(project=project, user=person) for person in people]
    assert [(one.sheet.accepted, one.sheet.refused, one.earned) for one in own] == [
        (1, 0, Decimal("0.10")),
        (0, 1, Decimal("0.00")),
        (1, 0, Decimal("0.10")),
    ]


def test_a_crowd_is_paid_by_its_checks_alone(crowd):
    me, other = make_annotators(crowd, 2)
    answer(crowd, me, [0, 0, 0])
    answer(crowd, other, [1, 2, 0])
    check = Query.objects.create(project=crowd, text="known", state="gold", round_number=0, overlap=9, open_slots=9)
    gold.GoldQuery.objects.create(query=check, choice=2, source="public", added_by=me)
    for person, choice in ((me, 2), (other, 0)):
        held = check.assignments.create(
            project=crowd, annotator=person, state="leased", leased_until="2100-01-01T00:00Z"
        )
        labels.submit_label(assignment=held, choice=choice)
    rows = list(csv.DictReader(io.StringIO("".join(selectors.payments_csv(crowd)))))
    columns = ("person", "answers", "accepted", "not accepted", "undecided", "amount")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (me.username, "4", "4", "0", "0", "0.4000"),
        (other.username, "4", "3", "1", "0", "0.3000"),
    ]
    # Managers see who agrees with whom all the same.
    assert [sheet.accepted for sheet in selectors.annotators_work(crowd)] == [2, 1]


def test_in_front_of_a_crowd_nobody_is_asked_because_others_disagreed(crowd):
    with pytest.raises(InvalidConfiguration, match="overlap_limit"):
        labelling.set_quality(project=crowd, overlap_limit=3)
    with pytest.raises(IntegrityError, match="annotation_project_crowd_fixed_overlap"), transaction.atomic():
        write_settings(crowd, overlap_limit=3)
    people = make_annotators(crowd, 3)
    for choice, person in enumerate(people[:2]):
        answer(crowd, person, [choice] * 3)
    assert queue.claim_next(project=crowd, user=people[2]) is None
    disputed = Query.objects.filter(state=QueryState.DISPUTED).first()
    with pytest.raises(InvalidConfiguration, match="Not for crowds: annotators would learn"):
        services.ask_beyond_overlap(project=crowd, query_id=disputed.pk)
    with pytest.raises(InvalidConfiguration, match="Not for crowds: annotators would learn"):
        services.settle(project=crowd, query_id=disputed.pk, choice=0, person=crowd.created_by, keep_as_check=True)
    services.settle(project=crowd, query_id=disputed.pk, choice=0, person=crowd.created_by)
    assert queue.claim_next(project=crowd, user=people[2]) is None


def test_the_pages_offer_a_crowds_manager_nothing_of_the_kind(crowd):
    members.add_member(project=crowd, user=crowd.created_by, role="manager")
    for choice, person in enumerate(make_annotators(crowd, 2)):
        answer(crowd, person, [choice] * 3)
    client = browser_of(crowd.created_by)
    page = client.get(f"/projects/{crowd.slug}/quality/")
    assert "overlap_limit" not in page.content.decode()
    given = {"gold_share": 10, "gold_minimum": 10, "aggregation": "majority", "overlap_limit": 5}
    assert client.post(f"/projects/{crowd.slug}/quality/", given).status_code == 302
    assert Project.objects.get(pk=crowd.pk).overlap_limit is None
    reviewed = client.get(f"/projects/{crowd.slug}/quality/review/").content.decode()
    assert 'value="leave"' in reviewed
    assert 'value="ask"' not in reviewed
    assert "keep_as_check" not in reviewed
