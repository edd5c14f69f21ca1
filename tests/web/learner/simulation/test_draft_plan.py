import math

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.choices.presets import PRESETS
from annotation.models import Job, Project
from annotation.models.imports import OpeningDraft
from annotation.projects.services import opening
from learner.models.planning import PlanSimulation
from learner.simulation.forecast import forecast_of
from privacy.ledger.models import BudgetAccount, LedgerEntry
from tests.clients import browser_of
from tests.factories import make_opener, open_preset
from tests.openings import begin, sent_by

pytestmark = pytest.mark.django_db


@pytest.fixture
def opener() -> User:
    return make_opener("opener")


@pytest.fixture
def client(opener: User) -> Client:
    return browser_of(opener)


def plan_of(client: Client, preset: str, **typed: object) -> str:
    """Type a project that is not opened yet; return the address of its plan."""
    task = {"name": "Invoices", "question": "Fraud?", "classes": "fraud\nhonest", "data_kind": "text"}
    address = begin(client, preset)
    assert client.post(address, sent_by(client.get(address), "own") | task | typed).status_code == 302
    return reverse("learner:draft_plan", args=[OpeningDraft.objects.latest("created_at").pk])


@pytest.mark.one_in(5)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_counted_before_anything_is_opened(client: Client, opener: User, preset: str) -> None:
    page = client.get(plan_of(client, preset))
    assert page.status_code == 200
    assert [model.objects.count() for model in (Project, BudgetAccount, LedgerEntry)] == [0, 0, 0]
    # As the project counts once it is opened.
    project = opening.create_project(
        name="x", preset=preset, owner=opener, data_kind="text", classes=["fraud", "honest"], question="Fraud?"
    )
    assert page.context["forecast"] == forecast_of(project)


def test_what_was_typed_is_what_is_counted(client: Client) -> None:
    page = client.get(plan_of(client, "pool-experts", pool_epsilon="1.2"), {"records": "500"})
    # All of the limit is planned for: as many releases, each at a lower price.
    strict = page.context["forecast"]
    assert (strict.releases, strict.records) == (2, 500)
    assert "500 records (a public number)" in page.content.decode()
    loose = client.get(plan_of(client, "pool-experts", level="loose")).context["forecast"]
    assert loose.releases == 2
    assert loose.training > strict.training


def test_settings_without_a_proof_are_named(client: Client) -> None:
    page = client.get(plan_of(client, "voice-crowd", pool_epsilon="0.2"))
    assert page.status_code == 422
    assert "more than the limit" in page.content.decode()
    assert not Project.objects.exists()


def test_a_simulation_needs_no_project_and_serves_the_project_later(client: Client, opener: User) -> None:
    address = plan_of(client, "pool-experts", feature_dimension="8")
    response = client.post(address, {"records": "300"})
    assert response["Location"] == address + "?records=300"
    job = Job.objects.get()
    assert (job.kind, job.project, job.owner) == ("simulate", None, opener)
    PlanSimulation.objects.update(
        result={"seeds": 2, "curves": {"made_up": [{"labels": 30, "mean": 0.8, "low": 0.7, "high": 0.9}]}}
    )
    page = client.get(address, {"records": "300"})
    assert "simulated projects with real noise" in page.content.decode()
    assert client.get(page.context["accuracy_plot"])["Content-Type"] == "image/svg+xml"
    project = open_preset(
        opener,
        "pool-experts",
        name="x",
        data_kind="text",
        classes=["fraud", "honest"],
        question="Fraud?",
        feature_dimension=8,
    )
    later = client.get(reverse("learner:plan", args=[project.slug]), {"records": "300"})
    assert "simulated projects with real noise" in later.content.decode()


def test_a_stream_is_asked_about_no_more_than_its_coins_leave(client: Client, opener: User) -> None:
    """Two thousand records at a rate of a tenth give at most 200 labels, and a stream has one price."""
    project = open_preset(
        opener,
        "fraud-stream",
        name="x",
        data_kind="text",
        classes=["a", "b"],
        question="?",
        update_policy="flsw_hidden",
        window_length=500,
        window_denominator=50,
    )
    purchase = forecast_of(project, records=2000)
    assert purchase.labels == 200
    assert purchase.whole == pytest.approx(math.log1p(0.1 * math.expm1(4.172)))
    page = client.get(reverse("learner:plan", args=[project.slug]), {"records": "2000"}).content.decode()
    assert "The whole stream costs" in page
    assert "Choosing costs" not in page
    few = client.get(reverse("learner:plan", args=[project.slug]), {"records": "300"}).content.decode()
    assert "Nothing to simulate: too few" in few
