"""Every setting may change until something rests on it; what is fixed is shown with the reason and refused."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.choices.presets import PRESETS
from annotation.choices.services import frozen_settings
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Project
from annotation.projects.services.configuring import configure_project
from privacy.accounting.selection import RandomChoiceEvent
from privacy.ledger import services as ledger
from privacy.ledger.selectors import guarantee
from tests.clients import browser_of
from tests.factories import open_preset

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(manager: User) -> Client:
    return browser_of(manager)


def charge(project: Project) -> None:
    event = RandomChoiceEvent(1)
    ledger.reserve(account=project.pool_account, event=event, purpose="test", key=uuid4(), actor="test")


def page_of(project: Project) -> str:
    return reverse("annotation:configuration", args=[project.slug])


def sent_from(client: Client, project: Project, **changes: object) -> dict[str, object]:
    page = client.get(page_of(project))
    assert page.status_code == 200
    values = {bound.name: bound.value() for bound in page.context["fields"] if not bound.field.disabled}
    sent = {name: "on" if value is True else value for name, value in values.items() if value not in (None, False)}
    sent = {name: value for name, value in sent.items() if value != "false"}
    return sent | {"boxes": page.context["boxes"], "fields": page.context["sent_fields"]} | changes


@pytest.mark.parametrize("preset", PRESETS)
def test_saving_what_stands_changes_nothing(client: Client, manager: User, preset: str) -> None:
    project = open_preset(manager, preset)
    before = Project.objects.filter(pk=project.pk).values().get()
    response = client.post(page_of(project), sent_from(client, project))
    assert response.status_code == 302, response.context["errors"]
    assert Project.objects.filter(pk=project.pk).values().get() == before
    assert not project.changes.exists()


@pytest.mark.parametrize("preset", PRESETS)
def test_before_the_first_charge_nothing_is_fixed(manager: User, preset: str) -> None:
    assert frozen_settings(open_preset(manager, preset)) == {}


def test_settings_change_with_a_history_before_anything_is_paid(client: Client, manager: User) -> None:
    project = open_preset(manager, "pool-experts")
    changes = {"classes": "a\nb\nc", "selection_rate": "0.2", "training_epsilon": "1.2", "feature_dimension": "32"}
    assert client.post(page_of(project), sent_from(client, project, **changes)).status_code == 302
    project.refresh_from_db()
    assert (project.classes, project.selection_rate, project.feature_dimension) == (["a", "b", "c"], 0.2, 32)
    change = project.changes.get()
    assert change.fields["training_epsilon"] == [2.195, 1.2]
    assert change.actor == "manager"


def test_a_new_choice_shows_its_settings_first(client: Client, manager: User) -> None:
    project = open_preset(manager, "pool-experts")
    response = client.post(page_of(project), sent_from(client, project, selection="top_c"))
    assert response.status_code == 200
    assert "selection_epsilon" in {bound.name for bound in response.context["fields"]}
    project.refresh_from_db()
    assert project.selection == "secret_sample"


def test_a_combination_without_a_proof_is_refused_with_its_rule(client: Client, manager: User) -> None:
    project = open_preset(manager, "pool-experts", estimator="logistic", training_delta=0.0)
    response = client.post(page_of(project), sent_from(client, project, regularization="0"))
    assert response.status_code == 422
    assert "Must be above 0, got" in response.content.decode()
    with pytest.raises(InvalidConfiguration, match="not for contributors"):
        configure_project(project=project, changes={"privacy_unit": "contributor"}, actor=manager)


def test_the_unit_changes_with_an_account_of_its_own_before_the_first_charge(client: Client, manager: User) -> None:
    project = open_preset(manager, "voice-crowd")
    old = project.pool_account
    assert client.post(page_of(project), sent_from(client, project, privacy_unit="record")).status_code == 302
    project.refresh_from_db()
    assert (project.privacy_unit, project.pool_account.unit) == ("record", "record")
    assert project.pool_account_id != old.pk
    assert guarantee(project.pool_account).epsilon_limit == guarantee(old).epsilon_limit


@pytest.mark.parametrize(
    ("preset", "fixed", "free"),
    [
        (
            "pool-experts",
            {"classes", "feature_dimension", "selection", "selection_rate"},
            {"training_epsilon", "overlap"},
        ),
        ("voice-crowd", {"classes", "privacy_unit", "gate_floor", "normalizer"}, {"round_size", "labels_per_release"}),
        ("fraud-stream", {"columns", "selection", "estimator", "training_epsilon"}, {"updates_per_release"}),
    ],
)
def test_after_the_first_charge_the_guarantees_fields_are_shown_and_fixed(
    client: Client, manager: User, preset: str, fixed: set[str], free: set[str]
) -> None:
    project = open_preset(manager, preset)
    charge(project)
    page = client.get(page_of(project))
    disabled = {bound.name for bound in page.context["fields"] if bound.field.disabled}
    shown = {bound.name for bound in page.context["fields"]}
    assert fixed <= disabled
    assert free <= shown - disabled
    assert "Something was charged, so settings of the guarantee are fixed." in page.content.decode()
    # A page sends nothing for a field that is switched off; whoever sends it all the same changes nothing.
    response = client.post(page_of(project), sent_from(client, project, classes="x\ny", feature_dimension="99"))
    assert response.status_code == 302, response.context["errors"]
    project.refresh_from_db()
    assert project.classes == ["yes", "no"]
    for name in fixed - {"columns", "normalizer", "selection", "classes", "privacy_unit"}:
        with pytest.raises(ConfigurationFrozen, match=name):
            configure_project(project=project, changes={name: project.settings[name] * 2}, actor=manager)


def test_a_charge_between_page_and_click_wins(client: Client, manager: User) -> None:
    """The form was free when it was shown; the service looks again under a lock."""
    project = open_preset(manager, "pool-experts")
    sent = sent_from(client, project, classes="a\nb\nc")
    charge(project)
    response = client.post(page_of(project), sent)
    project.refresh_from_db()
    assert project.classes == ["yes", "no"]
    assert response.status_code in (302, 422)
