import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Consensus, Membership, Role
from annotation.questions.services import checks as gold
from annotation.questions.services import labels, queue
from tests.clients import browser_of
from tests.factories import add_members, make_annotators, make_project, make_user, open_records

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
