"""Pages and routes of populations, as their managers use them."""

import json
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from annotation.budget import services
from annotation.models import Role
from annotation.models.limits import LimitRequest
from privacy.accounting.events import OutputPerturbationEvent
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from tests.clients import browser_of, program_of
from tests.factories import add_members, make_project, make_user, open_population

pytestmark = pytest.mark.django_db
RELEASE = OutputPerturbationEvent(10.0, 0.3, 5, 1e-6)


@pytest.fixture
def owner():
    user = make_user("owner")
    user.user_permissions.add(Permission.objects.get(codename="add_project"))
    return user


@pytest.fixture
def second():
    return make_user("second")


@pytest.fixture
def population(owner, second):
    return open_population(epsilon_limit=4.0, delta_limit=1e-5, owner=owner, second=second)


@pytest.fixture
def project(owner):
    opened = make_project(name="Notes", slug="notes")
    add_members(opened, owner, role=Role.MANAGER)
    return opened


def page(client, population):
    return client.get(reverse("annotation:population", args=[population.slug]))


def test_the_walk_of_a_population(owner, second, project):
    mine, hers = browser_of(owner), browser_of(second)
    made = mine.post(
        reverse("annotation:new_population"),
        {
            "name": "Patients",
            "unit": "contributor",
            "filter": "pure",
            "epsilon_limit": "4",
            "delta_limit": "0.00001",
            "second": "second",
        },
        follow=True,
    )
    assert made.status_code == 200
    population = BudgetAccount.objects.exclude(key_fingerprint="").get()
    joined = mine.post(
        reverse("annotation:join_population", args=[population.slug]),
        {"project": "notes", "records_per_person": "2"},
        follow=True,
    )
    assert b"Saved." in joined.content
    ledger.reserve(account=project.pool_account, event=RELEASE, purpose="t", key=uuid4(), subject="release:1")
    shown = page(mine, population).content.decode()
    assert "Notes can still buy" in shown
    assert "for a person with at most 2 records" in shown
    limit = {"epsilon_limit": "6", "delta_limit": "0.00001", "reason": "a third project"}
    asked = mine.post(reverse("annotation:population_limit", args=[population.slug]), limit, follow=True)
    assert b"Nothing has changed yet" in asked.content
    wish = LimitRequest.objects.get()
    decide = reverse("annotation:decide_population", args=[population.slug, wish.pk])
    assert mine.post(decide, {"decision": "approve"}).status_code == 409
    assert b"a third project" in page(hers, population).content
    assert b"Saved." in hers.post(decide, {"decision": "approve"}, follow=True).content
    population.refresh_from_db()
    assert population.epsilon_limit_nano == 6 * 10**9
    third = make_user("third")
    mine.post(reverse("annotation:population_managers", args=[population.slug]), {"manager": "third", "reason": "r"})
    appointed = LimitRequest.objects.latest("pk")
    hers.post(reverse("annotation:decide_population", args=[population.slug, appointed.pk]), {"decision": "approve"})
    assert page(browser_of(third), population).status_code == 200
    assert b"Patients" in browser_of(third).get(reverse("annotation:populations")).content
    budget = mine.get(reverse("annotation:budget", args=["notes"])).content.decode()
    assert "Population Patients: " in budget


def test_nobody_else_sees_a_population(population, project):
    assert b"Patients" not in browser_of(make_user()).get(reverse("annotation:populations")).content


def test_only_ones_own_projects_outside_can_be_chosen(owner, population, project):
    make_project(slug="foreign")
    form = page(browser_of(owner), population).context["join"]
    assert [each.slug for each in form.fields["project"].queryset] == ["notes"]
    services.add_project(population=population, project=project, records_per_person=1, actor=owner)
    form = page(browser_of(owner), population).context["join"]
    assert not form.fields["project"].queryset


def test_the_walk_by_rest(owner, second, project):
    client = program_of(owner)

    def post(address: str, body: dict[str, object]):
        return client.post(f"/api/v1/{address}", json.dumps(body), content_type="application/json")

    terms = {"name": "Patients", "unit": "contributor", "filter": "pure", "epsilon_limit": 4.0, "delta_limit": 1e-5}
    assert post("populations", terms | {"second_manager": "nobody"}).status_code == 409
    assert post("populations", terms | {"second_manager": "second"}).status_code == 201
    assert post("projects/notes/population", {"population": "patients"}).status_code == 409
    joined = post("projects/notes/population", {"population": "patients", "records_per_person": 3})
    assert joined.status_code == 201
    (member,) = joined.json()["members"]
    assert (member["project"], member["records_per_person"], member["quota"]) == ("notes", 3, 30.0)
    limit = {"epsilon_limit": 5.0, "delta_limit": 1e-5, "reason": "r"}
    assert post("populations/patients/limit", limit).json() == {"state": "waiting"}
    assert post("populations/patients/limit", limit | {"epsilon_limit": 3.0}).json() == {"state": "changed"}
    (listed,) = client.get("/api/v1/populations").json()
    assert (listed["epsilon_limit"], listed["waiting"]) == (3.0, 1)
    assert client.get("/api/v1/populations/patients").json() == listed
