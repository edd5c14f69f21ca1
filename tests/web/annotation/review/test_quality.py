import csv
import io
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse

from annotation.models import Assignment, Consensus, Dataset, DatasetRole, Membership, Query, QueryState, Role
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
def project(manager):
    made = make_project(owner=manager, overlap=2)
    add_members(made, manager, role=Role.MANAGER)
    return made


@pytest.fixture
def annotators(project):
    return make_annotators(project, 2)


@pytest.fixture
def disputed(project, annotators):
    (query,) = open_records(project, 1)
    for choice, person in enumerate(annotators):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    return query


def web(user) -> Client:
    return browser_of(user)


@pytest.mark.parametrize("name", ["add_checks", "compare_answers", "set_pause", "settle"])
def test_looking_changes_nothing(project, manager, annotators, disputed, name):
    rows = {"set_pause": [project.memberships.get(user=annotators[0]).pk], "settle": [disputed.pk]}
    address = reverse(f"annotation:{name}", args=[project.slug, *rows.get(name, [])])
    assert web(manager).get(address).status_code == 405


def test_settings_are_kept_in_shares(project, manager):
    address = reverse("annotation:quality", args=[project.slug])
    sent = {
        "gold_share": 10,
        "gold_minimum": 12,
        "gold_warn_below": 80,
        "gold_pause_below": 60,
        "overlap_limit": 5,
        "aggregation": "dawid_skene",
        "reviewed": "differing",
        "review_share": 20,
    }
    assert web(manager).post(address, sent).status_code == 302
    project.refresh_from_db()
    assert (project.gold_share, project.gold_warn_below, project.gold_pause_below) == (0.1, 0.8, 0.6)
    assert (project.overlap_limit, project.aggregation, project.reviewed) == (5, "dawid_skene", "differing")
    assert project.review_share == 0.2
    refused = web(manager).post(address, sent | {"gold_pause_below": 90})
    assert refused.status_code == 422
    assert "gold_pause_below" in refused.context["form"].errors


@pytest.mark.parametrize(
    ("field", "percent"),
    [("gold_share", 51), ("gold_share", -1), ("gold_warn_below", 0), ("gold_pause_below", 0), ("review_share", 101)],
)
def test_a_percentage_out_of_its_range_is_refused_at_its_field(project, manager, field, percent):
    sent = {"gold_share": 10, "gold_minimum": 12, "aggregation": "majority", "reviewed": "differing", "review_share": 0}
    refused = web(manager).post(reverse("annotation:quality", args=[project.slug]), sent | {field: percent})
    assert refused.status_code == 422
    assert field in refused.context["form"].errors


def test_a_dispute_is_settled_on_the_page(project, manager, disputed):
    page = web(manager).get(reverse("annotation:review", args=[project.slug])).content.decode()
    assert "record 0" in page
    assert "sport</span>: 1" in page
    web(manager).post(reverse("annotation:settle", args=[project.slug, disputed.pk]), {"choice": 1})
    assert Consensus.objects.get().choice == 1
    again = web(manager).post(reverse("annotation:settle", args=[project.slug, disputed.pk]), {"choice": 1})
    assert again.status_code == 422


def test_a_paused_person_reads_why(project, annotators, manager):
    open_records(project, 1)
    member = Membership.objects.get(user=annotators[0], project=project)
    gold.pause_member(membership=member, reason="checks")
    client = web(annotators[0])
    page = client.get(reverse("annotation:label", args=[project.slug])).content.decode()
    assert "You are paused in this project" in page
    own = client.get(reverse("annotation:own_statistics", args=[project.slug])).content.decode()
    assert "You are paused: only" in own
    web(manager).post(reverse("annotation:set_pause", args=[project.slug, member.pk]), {"state": "active"})
    assert 'id="answer"' in client.get(reverse("annotation:label", args=[project.slug])).content.decode()


def test_statistics_are_ones_own(project, annotators, disputed):
    address = reverse("annotation:own_statistics", args=[project.slug])
    page = web(annotators[0]).get(address).content.decode()
    assert "<dt>Waiting</dt>" in page
    assert annotators[1].username not in page
    assert web(make_user()).get(address).status_code == 404


def test_a_check_is_retired_by_its_managers(project, manager, annotators, disputed):
    check = gold.keep_as_check(query=disputed, choice=1, owner=manager, answered=2)
    page = web(manager).get(reverse("annotation:checks", args=[project.slug])).content.decode()
    assert "1 of 2 answers right" in page
    assert reverse("annotation:checks", args=[project.slug]) in (
        web(manager).get(reverse("annotation:quality", args=[project.slug])).content.decode()
    )
    address = reverse("annotation:retire_check", args=[project.slug, check.pk])
    assert web(annotators[0]).post(address).status_code == 404
    assert web(manager).get(address).status_code == 405
    other = make_project(owner=manager)
    add_members(other, manager, role=Role.MANAGER)
    assert web(manager).post(reverse("annotation:retire_check", args=[other.slug, check.pk])).status_code == 404
    check.refresh_from_db()
    assert check.retired_at is None
    assert web(manager).post(address).status_code == 302
    check.refresh_from_db()
    first = check.retired_at
    assert first is not None
    assert web(manager).post(address).status_code == 302
    check.refresh_from_db()
    assert check.retired_at == first
    page = web(manager).get(reverse("annotation:checks", args=[project.slug])).content.decode()
    assert "Nothing yet." in page


@pytest.fixture
def compared():
    return make_project(overlap=2)


@pytest.fixture
def program(compared):
    return Caller(make_manager(compared))


def public_examples(compared, number=3) -> Dataset:
    records = make_records(compared, [f"example {place}" for place in range(number)], role=DatasetRole.PUBLIC_TEST)
    for record in records:
        record.label = 1
        record.save(update_fields=["label"])
    return records[0].dataset


def test_checks_are_made_listed_and_retired(compared, program):
    dataset, at = public_examples(compared), f"projects/{compared.slug}/checks"
    for _again in range(2):
        added = program.post(at, {"dataset": dataset.pk, "most": 2}, key="one")
        assert (added.status_code, added.json()) == (201, {"added": 2})
    assert Query.objects.filter(project=compared, state=QueryState.GOLD).count() == 2
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


def test_checks_come_from_public_examples_alone(compared, program):
    at = f"projects/{compared.slug}/checks"
    (private, *_more) = make_records(compared, ["private"])
    refused = program.post(at, {"dataset": private.dataset_id})
    assert refused.status_code == 422
    assert "Checks must be public examples: private" in refused.json()["code"]
    elsewhere = program.post(at, {"dataset": public_examples(make_project()).pk})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (422, "Choose a public upload with labels.")
    assert not GoldQuery.objects.exists()


def test_somebody_pauses_and_goes_on(compared, program):
    open_records(compared, 2)
    (ann,) = make_annotators(compared, 1)
    labels.submit_label(assignment=queue.claim_next(project=compared, user=ann), choice=0)
    held = Membership.objects.get(user=ann)
    (sheet,) = program.get(f"projects/{compared.slug}/annotators").json()
    assert (sheet["membership"], sheet["username"], sheet["answers"], sheet["paused_at"]) == (
        held.pk,
        ann.get_username(),
        1,
        None,
    )
    at = f"projects/{compared.slug}/members/{held.pk}/pause"
    assert program.post(at, key="one").status_code == 204
    assert queue.claim_next(project=compared, user=ann) is None
    (sheet,) = program.get(f"projects/{compared.slug}/annotators").json()
    assert (sheet["pause_reason"], sheet["paused_at"] is None) == ("manager", False)
    assert program.delete(at).status_code == 204
    assert queue.claim_next(project=compared, user=ann) is not None
    held.refresh_from_db()
    assert held.judged_from is not None
    # Whoever annotates nothing cannot be paused, as on the page.
    boss = Membership.objects.get(project=compared, role=Role.MANAGER)
    assert program.post(f"projects/{compared.slug}/members/{boss.pk}/pause").status_code == 404


def file_of(person, compared, name) -> list[dict[str, str]]:
    client = browser_of(person)
    answer = client.get(reverse(f"annotation:{name}", args=[compared.slug]))
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode(), newline="")))


def answered(compared, *choices) -> list:
    people = [make_user(f"person-{place}") for place in range(len(choices))]
    add_members(compared, *people)
    for person, choice in zip(people, choices, strict=True):
        labels.submit_label(assignment=queue.claim_next(project=compared, user=person), choice=choice)
    return people


def as_in_the_file(paid: dict) -> tuple[str, ...]:
    counts = (paid["answers"], paid["accepted"], paid["refused"], paid["undecided"])
    return (paid["username"], *map(str, counts), paid["price"] or "", paid["amount"] or "", paid["currency"])


@pytest.mark.parametrize("money", [{"price_per_label": Decimal("0.10"), "currency": "EUR"}, {}])
def test_payments_are_those_of_the_file_page_by_page(money):
    compared = make_project(overlap=3, **money)
    manager = make_manager(compared)
    open_records(compared, 1)
    people = answered(compared, 1, 0, 1)
    program, at = Caller(manager), f"projects/{compared.slug}/payments"
    rows = program.get(at).json()
    assert [row["username"] for row in rows] == [person.username for person in people]
    assert [(row["accepted"], row["refused"], row["undecided"]) for row in rows] == [(1, 0, 0), (0, 1, 0), (1, 0, 0)]
    assert [row["amount"] for row in rows] == (["0.1000", "0.0000", "0.1000"] if money else [None] * 3)
    assert [as_in_the_file(row) for row in rows] == [
        tuple(row.values()) for row in file_of(manager, compared, "payments")
    ]
    first = program.get(at, limit=2)
    assert first.json() == rows[:2]
    following = first.headers["Link"].partition("/api/v1/")[2].partition(">")[0]
    assert following == f"{at}?limit=2&offset=2"
    last = program.get(following)
    assert last.json() == rows[2:]
    assert "Link" not in last.headers


def test_opinions_are_those_of_the_file_page_by_page(compared, program):
    at = f"projects/{compared.slug}/opinions"
    assert program.get(at).json() == []
    open_records(compared, 1)
    answered(compared, 1, 1)
    records = make_records(compared, ["first", "second"])
    for place, record in enumerate(records):
        record.metadata = {"id": f"row {place}"}
        record.save(update_fields=["metadata"])
    queue.open_queries(project=compared, round_number=2, record_ids=[record.pk for record in records])
    for membership in compared.memberships.filter(role=Role.ANNOTATOR):
        for _each in records:
            held = queue.claim_next(project=compared, user=membership.user)
            labels.submit_label(assignment=held, choice=2)
    job = program.post(f"projects/{compared.slug}/agreement").json()["job"]["id"]
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
    ] == [
        tuple(row.values()) for row in file_of(compared.memberships.get(role=Role.MANAGER).user, compared, "opinions")
    ]
    first = program.get(at, limit=2)
    assert first.json() == rows[:2]
    assert f"{at}?limit=2&offset=2" in first.headers["Link"]
    assert program.get(at, limit=2, offset=2).json() == rows[2:]
    assert program.get(at, after=rows[1]["question"]).json() == rows[2:]
    assert program.get(at, after=rows[2]["question"]).json() == []


def test_statistics_are_ones_own_as_on_the_page():
    compared = make_project(overlap=3, price_per_label=Decimal("0.10"), currency="EUR", gold_minimum=1)
    boss = make_manager(compared)
    open_records(compared, 1)
    ann, ben, _cleo = answered(compared, 1, 0, 1)
    Assignment.objects.filter(annotator=ann).update(created_at=F("finished_at") - timedelta(seconds=12.34))
    at = f"projects/{compared.slug}/statistics"
    told = Caller(ann).get(at).json()
    own = selectors.own_statistics(project=compared, user=ann)
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
    compared = make_project(oracle="crowd", overlap=2, price_per_label=Decimal("0.10"))
    (ann,) = make_annotators(compared, 1)
    told = Caller(ann).get(f"projects/{compared.slug}/statistics").json()
    assert (told["accepted"], told["refused"], told["undecided"]) == (None, None, None)
    assert (told["answers"], told["earned"]) == (0, "0.0000")
