import csv
import io
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models import F
from django.urls import reverse

from annotation.models import Assignment, Dataset, DatasetRole, Membership, Query, QueryState, Role
from annotation.models.quality import GoldQuery
from annotation.questions.services import checks as gold
from annotation.questions.services import labels, queue
from annotation.review import selectors
from annotation.review import services as comparing
from tests.clients import browser_of
from tests.factories import (
    add_members,
    make_annotators,
    make_manager,
    make_project,
    make_records,
    make_user,
    open_records,
)
from tests.programs import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project(overlap=2)


@pytest.fixture
def program(project):
    return Caller(make_manager(project))


def public_examples(project, number=3) -> Dataset:
    records = make_records(project, [f"example {place}" for place in range(number)], role=DatasetRole.PUBLIC_TEST)
    for record in records:
        record.label = 1
        record.save(update_fields=["label"])
    return records[0].dataset


def test_checks_are_made_listed_and_retired(project, program):
    dataset, at = public_examples(project), f"projects/{project.slug}/checks"
    for _again in range(2):
        added = program.post(at, {"dataset": dataset.pk, "most": 2}, key="one")
        assert (added.status_code, added.json()) == (201, {"added": 2})
    assert Query.objects.filter(project=project, state=QueryState.GOLD).count() == 2
    first, second = program.get(at).json()
    assert (first["source"], first["answer"], first["right"], first["wrong"]) == ("public", "music", 0, 0)
    assert first["text"].startswith("example")
    assert not first["has_image"]
    assert program.get(at, limit=1).json() == [first]
    for _again in range(2):
        assert program.delete(f"{at}/{first['check']}").status_code == 204
    assert [row["check"] for row in program.get(at).json()] == [second["check"]]
    assert GoldQuery.objects.get(pk=first["check"]).retired_at is not None
    assert program.get(f"{at}/{second['check']}/image").status_code == 404


def test_checks_come_from_public_examples_alone(project, program):
    at = f"projects/{project.slug}/checks"
    (private, *_more) = make_records(project, ["private"])
    refused = program.post(at, {"dataset": private.dataset_id})
    assert refused.status_code == 422
    assert "Checks must be public examples: private" in refused.json()["code"]
    elsewhere = program.post(at, {"dataset": public_examples(make_project()).pk})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (422, "Choose a public upload with labels.")
    assert not GoldQuery.objects.exists()


def test_somebody_pauses_and_goes_on(project, program):
    open_records(project, 2)
    (ann,) = make_annotators(project, 1)
    labels.submit_label(assignment=queue.claim_next(project=project, user=ann), choice=0)
    held = Membership.objects.get(user=ann)
    (sheet,) = program.get(f"projects/{project.slug}/annotators").json()
    assert (sheet["membership"], sheet["username"], sheet["answers"], sheet["paused_at"]) == (
        held.pk,
        ann.get_username(),
        1,
        None,
    )
    at = f"projects/{project.slug}/members/{held.pk}/pause"
    assert program.post(at, key="one").status_code == 204
    assert queue.claim_next(project=project, user=ann) is None
    (sheet,) = program.get(f"projects/{project.slug}/annotators").json()
    assert (sheet["pause_reason"], sheet["paused_at"] is None) == ("manager", False)
    assert program.delete(at).status_code == 204
    assert queue.claim_next(project=project, user=ann) is not None
    held.refresh_from_db()
    assert held.judged_from is not None
    # Whoever annotates nothing cannot be paused, as on the page.
    boss = Membership.objects.get(project=project, role=Role.MANAGER)
    assert program.post(f"projects/{project.slug}/members/{boss.pk}/pause").status_code == 404


def file_of(person, project, name) -> list[dict[str, str]]:
    client = browser_of(person)
    answer = client.get(reverse(f"annotation:{name}", args=[project.slug]))
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode(), newline="")))


def answered(project, *choices) -> list:
    people = [make_user(f"person-{place}") for place in range(len(choices))]
    add_members(project, *people)
    for person, choice in zip(people, choices, strict=True):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    return people


def as_in_the_file(paid: dict) -> tuple[str, ...]:
    counts = (paid["answers"], paid["accepted"], paid["refused"], paid["undecided"])
    return (paid["username"], *map(str, counts), paid["price"] or "", paid["amount"] or "", paid["currency"])


@pytest.mark.parametrize("money", [{"price_per_label": Decimal("0.10"), "currency": "EUR"}, {}])
def test_payments_are_those_of_the_file_page_by_page(money):
    project = make_project(overlap=3, **money)
    manager = make_manager(project)
    open_records(project, 1)
    people = answered(project, 1, 0, 1)
    program, at = Caller(manager), f"projects/{project.slug}/payments"
    rows = program.get(at).json()
    assert [row["username"] for row in rows] == [person.username for person in people]
    assert [(row["accepted"], row["refused"], row["undecided"]) for row in rows] == [(1, 0, 0), (0, 1, 0), (1, 0, 0)]
    assert [row["amount"] for row in rows] == (["0.1000", "0.0000", "0.1000"] if money else [None] * 3)
    assert [as_in_the_file(row) for row in rows] == [
        tuple(row.values()) for row in file_of(manager, project, "payments")
    ]
    first = program.get(at, limit=2)
    assert first.json() == rows[:2]
    following = first.headers["Link"].partition("/api/v1/")[2].partition(">")[0]
    assert following == f"{at}?limit=2&offset=2"
    last = program.get(following)
    assert last.json() == rows[2:]
    assert "Link" not in last.headers


def test_opinions_are_those_of_the_file_page_by_page(project, program):
    at = f"projects/{project.slug}/opinions"
    assert program.get(at).json() == []
    open_records(project, 1)
    answered(project, 1, 1)
    records = make_records(project, ["first", "second"])
    for place, record in enumerate(records):
        record.metadata = {"id": f"row {place}"}
        record.save(update_fields=["metadata"])
    queue.open_queries(project=project, round_number=2, record_ids=[record.pk for record in records])
    for membership in project.memberships.filter(role=Role.ANNOTATOR):
        for _each in records:
            held = queue.claim_next(project=project, user=membership.user)
            labels.submit_label(assignment=held, choice=2)
    job = program.post(f"projects/{project.slug}/agreement").json()["job"]["id"]
    comparing.make_report(job_id=job)
    rows = program.get(at).json()
    assert sorted((row["answer"], row["owner_id"]) for row in rows if row["owner_id"]) == [
        ("other", "row 0"),
        ("other", "row 1"),
    ]
    assert [(row["answer"], row["owner_id"]) for row in rows if not row["owner_id"]] == [("music", None)]
    assert [
        (str(row["question"]), row["owner_id"] or "", row["answer"], f"{row['probability']:.6f}", row["method"])
        for row in rows
    ] == [tuple(row.values()) for row in file_of(project.memberships.get(role=Role.MANAGER).user, project, "opinions")]
    first = program.get(at, limit=2)
    assert first.json() == rows[:2]
    assert f"{at}?limit=2&offset=2" in first.headers["Link"]
    assert program.get(at, limit=2, offset=2).json() == rows[2:]
    assert program.get(at, after=rows[1]["question"]).json() == rows[2:]
    assert program.get(at, after=rows[2]["question"]).json() == []


def test_statistics_are_ones_own_as_on_the_page():
    project = make_project(overlap=3, price_per_label=Decimal("0.10"), currency="EUR", gold_minimum=1)
    boss = make_manager(project)
    open_records(project, 1)
    ann, ben, _cleo = answered(project, 1, 0, 1)
    Assignment.objects.filter(annotator=ann).update(created_at=F("finished_at") - timedelta(seconds=12.34))
    at = f"projects/{project.slug}/statistics"
    told = Caller(ann).get(at).json()
    own = selectors.own_statistics(project=project, user=ann)
    assert (told["answers"], told["accepted"], told["refused"], told["undecided"]) == (1, 1, 0, 0)
    assert (told["answered_today"], told["answered_in_seven_days"], told["skipped"]) == (1, 1, 0)
    assert (told["earned"], told["currency"]) == (str(own.earned), "EUR") == ("0.1000", "EUR")
    assert told["seconds"] == 12.3
    assert (told["checks"], told["checks_right"], told["is_warned"]) == (0, 0, False)
    assert (told["is_paused"], told["pause_reason"]) == (False, None)
    other = Caller(ben).get(at).json()
    assert (other["accepted"], other["refused"], other["earned"]) == (0, 1, "0.0000")
    gold.pause_member(membership=Membership.objects.get(user=ben), reason="checks")
    paused = Caller(ben).get(at).json()
    assert (paused["is_paused"], paused["pause_reason"]) == (True, "checks")
    # Whoever annotates nothing has none, as on the page.
    refused = Caller(boss).get(at)
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "This needs one of these roles in the project: annotator.",
    )
    assert Caller(make_user()).get(at).status_code == 404


def test_in_front_of_a_crowd_nothing_of_others_is_told():
    project = make_project(oracle="crowd", overlap=2, price_per_label=Decimal("0.10"))
    (ann,) = make_annotators(project, 1)
    told = Caller(ann).get(f"projects/{project.slug}/statistics").json()
    assert (told["accepted"], told["refused"], told["undecided"]) == (None, None, None)
    assert (told["answers"], told["earned"]) == (0, "0.0000")
