"""A project that is opened as one of a population's: on the page, or by REST."""

import json

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from annotation.models import Project
from annotation.projects.services import opening
from privacy.errors import UnsoundCombination
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of
from tests.clients import browser_of, program_of
from tests.factories import make_user, open_population
from tests.openings import look, open_by

pytestmark = pytest.mark.django_db
EXPERTS, CROWD = "pool-experts", "voice-crowd"
OUTSIDE = "No common limit: people with records"


@pytest.fixture
def owner():
    user = make_user("owner")
    user.user_permissions.add(Permission.objects.get(codename="add_project"))
    return user


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
