"""Pages and routes of populations, as their managers use them."""

import json
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from annotation.budget import services
from annotation.models import Project, Role
from annotation.models.limits import LimitRequest
from annotation.projects.services import opening
from privacy.accounting.events import OutputPerturbationEvent
from privacy.errors import UnsoundCombination
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of
from tests.clients import browser_of, program_of
from tests.factories import add_members, make_opener, make_project, make_user, open_population
from tests.openings import look, open_by

pytestmark = pytest.mark.django_db
RELEASE = OutputPerturbationEvent(10.0, 0.3, 5, 1e-6)


@pytest.fixture
def owner():
    return make_opener("owner")


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


EXPERTS, CROWD = "pool-experts", "voice-crowd"
OUTSIDE = "No common limit: people with records"


@pytest.fixture
def client(owner) -> Client:
    return browser_of(owner)


def opened(owner, name="Patients", **terms):
    given = {"unit": "contributor", "filter": "zcdp", "epsilon_limit": 40.0, "delta_limit": 1e-5}
    return open_population(name=name, owner=owner, second=make_user(f"second of {name}"), **given | terms)


TASK = {"name": "Invoices", "question": "Is this fraud?", "classes": "fraud\nhonest"}


def membership_form(client, preset=EXPERTS, **typed):
    return look(client, preset, TASK | typed).context["membership"]


def offered(form) -> list[str]:
    return [slug for slug, _label in form.fields["population"].choices]


def nothing_opened() -> bool:
    return not Project.objects.exists() and not BudgetAccount.objects.filter(scope__startswith="project:").exists()


def test_the_page_opens_a_project_inside_a_population(owner, client):
    population = opened(owner)
    typed = TASK | {"population": population.slug}
    assert look(client, EXPERTS, typed).context["membership"]["population"].value() == population.slug
    open_by(client, EXPERTS, typed | {"records_per_person": "3"})
    quota = quota_of(Project.objects.get().pool_account)
    assert (quota.population, quota.records_per_person) == (population, 3)


def test_only_populations_that_fit_are_offered(owner, client, settings):
    opened(owner), opened(owner, "Sums", filter="pure"), opened(owner, "Notes", unit="record")
    opened(make_user("somebody else"), "Foreign")
    assert offered(membership_form(client)) == ["", "notes", "patients", "sums"]
    form = membership_form(client, CROWD)
    assert offered(form) == ["", "patients", "sums"]
    assert "records_per_person" not in form.fields
    assert "contributors" in form.unfitting["Notes"]
    page = look(client, CROWD, TASK).content.decode()
    assert "cannot join" in page
    assert "only a population of contributors" in page
    settings.PSEUDONYM_KEY = "another key of thirty-two characters, or more"
    form = membership_form(client, CROWD)
    assert offered(form) == [""]
    assert "uses another pseudonym key" in form.unfitting["Patients"]


def test_a_wrong_unit_is_refused_with_its_rule_and_nothing_is_opened(owner, client):
    notes = opened(owner, "Notes", unit="record")
    refused = open_by(client, CROWD, TASK | {"population": notes.slug})
    assert refused.status_code == 422
    assert "only a population of contributors" in refused.content.decode()
    assert nothing_opened()


def test_a_number_nobody_declared_and_a_population_of_others_are_refused(owner, client):
    population, foreign = opened(owner), opened(make_user("somebody else"), "Foreign")
    refused = open_by(client, EXPERTS, TASK | {"population": population.slug, "records_per_person": ""})
    assert refused.status_code == 422
    assert "declare the maximum number of records" in refused.content.decode()
    refused = open_by(client, EXPERTS, TASK | {"population": foreign.slug, "records_per_person": "1"})
    assert refused.context["membership"].errors.keys() == {"population"}
    assert "Foreign" not in refused.content.decode()


def test_opening_and_joining_are_one_transaction(owner):
    population = opened(owner)
    with pytest.raises(UnsoundCombination, match="declare the maximum number"):
        opening.create_project(
            name="Notes",
            preset=EXPERTS,
            owner=owner,
            data_kind="text",
            classes=["a", "b"],
            question="Which?",
            population=population,
        )
    assert nothing_opened()


def test_rest_opens_a_project_inside_a_population_or_not_at_all(owner):
    opened(owner), opened(owner, "Notes", unit="record"), opened(make_user("somebody else"), "Foreign")
    rest = program_of(owner)

    def post(preset: str, **changes: object):
        settings = {"name": "Calls", "question": "Which?", "classes": ["a", "b"], **changes.pop("settings", {})}
        body = {"format": "dpal-configuration", "format_version": 1, "preset": preset, "settings": settings, **changes}
        return rest.post("/api/v1/projects", json.dumps(body), content_type="application/json")

    wrong = post(CROWD, population="notes", settings={"privacy_unit": "contributor"})
    assert wrong.status_code == 409
    assert "only a population of contributors" in wrong.json()["detail"]
    assert post(EXPERTS, population="patients").status_code == 409
    assert post(EXPERTS, population="foreign", records_per_person=1).status_code == 404
    assert post(EXPERTS, population="patients", records_per_person=0).status_code == 422
    assert nothing_opened()
    assert not BudgetAccount.objects.filter(parent__isnull=False).exists()
    assert post(EXPERTS, population="patients", records_per_person=2).status_code == 201
    assert post(CROWD, population="patients", settings={"privacy_unit": "contributor"}).status_code == 201
    numbers = (
        BudgetAccount.objects.filter(parent__isnull=False).order_by("pk").values_list("unit", "records_per_person")
    )
    assert list(numbers) == [("record", 2), ("contributor", 1)]
    assert post(EXPERTS).status_code == 201
    assert quota_of(Project.objects.latest("pk").pool_account) is None
