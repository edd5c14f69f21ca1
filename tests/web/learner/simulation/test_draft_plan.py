import math

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from annotation.choices.presets import PRESETS
from annotation.models import Job, Project
from annotation.projects.forms.wizard import WizardStep
from annotation.projects.services import opening
from learner.models.planning import PlanSimulation
from learner.simulation import plan_setups
from privacy.ledger.models import BudgetAccount, LedgerEntry
from tests.clients import browser_of
from tests.factories import make_user, open_preset

pytestmark = pytest.mark.django_db


@pytest.fixture
def opener() -> User:
    user: User = make_user("opener")
    user.user_permissions.add(Permission.objects.get(codename="add_project"))
    return user


@pytest.fixture
def client(opener: User) -> Client:
    return browser_of(opener)


def at(preset: str, step: str) -> str:
    return reverse("annotation:wizard", args=[preset, step])


def plan_of(preset: str) -> str:
    return reverse("learner:draft_plan", args=[preset])


def typed(client: Client, preset: str, **budget: object) -> None:
    task = {"name": "Invoices", "question": "Fraud?", "classes": "fraud\nhonest", "data_kind": "text", "guidelines": ""}
    assert client.post(at(preset, WizardStep.TASK), task).status_code == 302
    defaults = PRESETS[preset].defaults
    limits = {name: defaults[name] for name in ("pool_epsilon", "pool_delta", "labels_epsilon") if name in defaults}
    sent = client.post(at(preset, WizardStep.BUDGET), {"level": "own", **limits, **budget, "go": "plan"})
    assert sent["Location"] == plan_of(preset)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_counted_before_anything_is_opened(client: Client, opener: User, preset: str) -> None:
    typed(client, preset)
    page = client.get(plan_of(preset))
    assert page.status_code == 200
    assert [model.objects.count() for model in (Project, BudgetAccount, LedgerEntry)] == [0, 0, 0]
    # As the project counts once it is opened.
    project = opening.create_project(
        name="x", preset=preset, owner=opener, data_kind="text", classes=["fraud", "honest"], question="Fraud?"
    )
    assert page.context["purchase"] == plan_setups.purchase_of(project, page.context["purchase"].records)
    assert page.context["setup"] == plan_setups.setup_of(project, page.context["purchase"].records)


def test_what_was_typed_is_what_is_counted(client: Client) -> None:
    typed(client, "pool-experts", pool_epsilon="1.2")
    page = client.get(plan_of("pool-experts"), {"records": "500"})
    # All of the limit is planned for: as many releases, each at a lower price.
    strict = page.context["purchase"]
    assert (strict.releases, strict.records) == (2, 500)
    assert "500 records, a public number" in page.content.decode()
    typed(client, "pool-experts", level="loose")
    loose = client.get(plan_of("pool-experts")).context["purchase"]
    assert loose.releases == 2
    assert loose.training > strict.training
    # The way back has everything that was typed.
    assert "10" in str(client.get(at("pool-experts", "budget")).context["fields"][0].value())


def test_settings_without_a_proof_are_named_with_their_step(client: Client) -> None:
    typed(client, "voice-crowd", pool_epsilon="0.2")
    page = client.get(plan_of("voice-crowd"))
    assert page.status_code == 422
    assert "more than the limit" in page.content.decode()
    assert at("voice-crowd", "budget") in page.content.decode()
    assert not Project.objects.exists()


def test_a_simulation_needs_no_project_and_serves_the_project_later(client: Client, opener: User) -> None:
    client.post(at("pool-experts", WizardStep.MODEL), {"feature_dimension": "8", "go": "budget"})
    typed(client, "pool-experts")
    response = client.post(plan_of("pool-experts"), {"records": "300"})
    assert response["Location"] == plan_of("pool-experts") + "?records=300"
    job = Job.objects.get()
    assert (job.kind, job.project, job.owner) == ("simulate", None, opener)
    PlanSimulation.objects.update(
        result={"seeds": 2, "curves": {"made_up": [{"labels": 30, "mean": 0.8, "low": 0.7, "high": 0.9}]}}
    )
    page = client.get(plan_of("pool-experts"), {"records": "300"})
    assert "A simulation, and no promise about your data" in page.content.decode()
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
    assert "A simulation, and no promise about your data" in later.content.decode()


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
    purchase = plan_setups.purchase_of(project, 2000)
    assert purchase.labels == 200
    assert purchase.whole == pytest.approx(math.log1p(0.1 * math.expm1(4.172)))
    page = client.get(reverse("learner:plan", args=[project.slug]), {"records": "2000"}).content.decode()
    assert "The whole stream costs" in page
    assert "Choosing costs" not in page
    few = client.get(reverse("learner:plan", args=[project.slug]), {"records": "300"}).content.decode()
    assert "so many records give too few labels for one model" in few
