"""A strategy that is declared here, and nowhere else, is there everywhere: to be chosen, refused, priced and read."""

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.choices.person_limits import PersonLimits
from annotation.choices.presets import PRESETS
from annotation.choices.quality_checks import QualityChecks
from annotation.choices.question_plan import QuestionPlan
from annotation.choices.services.configurations import document_digest
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Project
from annotation.models.configurations import Configuration
from annotation.projects.forms.wizard import WizardStep
from annotation.projects.protection_words import what_it_costs
from annotation.projects.services.configuring import configure_project
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from learner.models import Round
from learner.simulation import plan_setups
from privacy.accounting.events import event_from_json
from privacy.ledger.models import LedgerEntry
from tests import learning
from tests.declaring import declaring, fields_shown
from tests.examples.strategy import Lengths, LongFirst
from tests.factories import make_annotators, make_project, make_user, write_settings
from tests.owning import as_owner
from tests.pure.learner.strategies import test_strategies

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def declared() -> Iterator[None]:
    with declaring(LongFirst):
        yield


@pytest.fixture
def project(declared, manager) -> Project:
    return learning.open_trusted(manager, selection="lengths", length_scale=0.75)


@contextmanager
def refused(rule: str) -> Iterator[None]:
    with pytest.raises(IntegrityError) as error, transaction.atomic():
        yield
    assert error.value.__cause__.diag.constraint_name == rule


def test_a_project_opens_with_it_and_another_oracle_refuses_it(declared, manager, client):
    form = {"name": "Long", "question": "Is it?", "classes": "yes\nno", "data_kind": "text", "pool_epsilon": 5.0}
    first = client.get(reverse("annotation:new_project", args=["pool-experts"]))
    values = {name: first.context["form"][name].value() for name in first.context["form"].fields}
    sent = {name: value for name, value in values.items() if value is not None} | form | {"selection": "lengths"}
    sent |= {"length_scale": "1.25", "round_size": 5, "labels_per_release": 5, "pool_delta": 1e-5}
    opened = client.post(reverse("annotation:new_project", args=["pool-experts"]), sent)
    assert opened.status_code == 302, opened.context["form"].errors
    project = Project.objects.get()
    assert (project.selection, project.settings["length_scale"]) == ("lengths", 1.25)
    # What the form's other fields chose stands beside it, each in its section.
    assert project.configuration.document == {
        "selection": {"selection": "lengths", "length_scale": 1.25, "length_floor": 0.0},
        "features": {"features": "planned", "feature_dimension": 64, "image_colours": "grey", "text_columns": 128},
        "training": {
            "update_policy": "per_round",
            "estimator": "planned",
            # As the page said them: of one release, where each round costs, the rest of the preset's limit.
            "training_epsilon": float(values["training_epsilon"]),
            "training_delta": float(values["training_delta"]),
        },
        "labelling": {
            "class_descriptions": [],
            "class_groups": [],
            "class_colours": [],
            "class_keys": [],
            "question_kind": "choose",
            **QuestionPlan(round_size=5).document(),
            **PersonLimits().document(),
            **QualityChecks().document(),
        },
        "budget": {"labels_limit": None, "price_per_label": None, "money_limit": None, "currency": ""},
        "releases": {"labels_per_release": 5, "maximum_releases": None},
        "stream": {"windows_ahead": 1, "updates_per_release": 1, "drop_unselected": False},
    }
    with pytest.raises(InvalidConfiguration, match="A length is read from the record"):
        learning.open_crowd(manager, selection="lengths")
    with refused("annotation_project_selection_fits_oracle"):
        make_project(oracle="crowd", selection="lengths")
    assert "lengths" not in dict(PRESETS)


def test_the_settings_page_changes_it_as_another_version_with_a_history(project, manager, client):
    url = reverse("annotation:configuration", args=[project.slug])
    page = client.get(url)
    assert fields_shown(page)["length_scale"] == "0.75"
    sent = {name: value for name, value in fields_shown(page).items() if value not in (None, "false")}
    extra = {"boxes": page.context["boxes"], "fields": page.context["sent_fields"]}
    assert client.post(url, sent | extra | {"length_scale": "1.5"}).status_code == 302
    project.refresh_from_db()
    assert project.settings["length_scale"] == 1.5
    versions = Configuration.objects.filter(project=project).order_by("version")
    assert [(one.version, one.document["selection"]["length_scale"]) for one in versions] == [(1, 0.75), (2, 1.5)]
    assert [one.digest for one in versions] == [document_digest(one.document) for one in versions]
    assert versions[1].created_by == manager
    assert project.changes.latest("pk").fields["length_scale"] == [0.75, 1.5]
    history = client.get(reverse("annotation:settings", args=[project.slug])).content.decode()
    assert "Pull of long records" in history
    refused = client.post(url, sent | extra | {"length_scale": "0"})
    assert (refused.status_code, Configuration.objects.count()) == (422, 2)


def test_rest_lists_it_shows_it_and_changes_it(project, manager):
    _, secret = tokens.create_token(user=manager, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
    sent = {"headers": {"Authorization": f"Bearer {secret}"}, "content_type": "application/json"}
    client = Client()
    listed = {one["name"]: one for one in client.get("/api/v1/choices?kind=strategy", **sent).json()}
    assert listed["lengths"]["oracles"] == ["trusted"]
    assert listed["lengths"]["parameters"]["properties"]["length_scale"]["maximum"] == 3
    url = f"/api/v1/projects/{project.slug}/configuration"
    before = client.get(url, **sent).json()
    assert before["document"]["selection"] == {"selection": "lengths", "length_scale": 0.75, "length_floor": 0.0}
    for value, words in ((9, "Above 0 and at most 3"), ("1", "type number")):
        refused = client.patch(url, json.dumps({"settings": {"length_scale": value}}), **sent)
        assert refused.status_code == 422
        assert words in refused.json()["detail"]
    unknown = client.patch(url, json.dumps({"settings": {"slug": "other"}}), **sent)
    assert (unknown.status_code, "No choice declares this setting" in unknown.json()["detail"]) == (422, True)
    after = client.patch(url, json.dumps({"settings": {"length_scale": 2}}), **sent)
    assert after.status_code == 200, after.json()
    assert after.json()["document"]["selection"]["length_scale"] == 2
    assert after.json()["digest"] != before["digest"]
    other = client.patch(url, json.dumps({"settings": {"selection": "random"}}), **sent).json()
    assert other["document"]["selection"] == {"selection": "random"}
    assert client.get(url, **sent).json() == other


def test_the_plan_prices_and_simulates_it(project, client):
    bought = plan_setups.purchase_of(project, 300)
    assert bought.choosing > 0
    setup = plan_setups.setup_of(project, 300)
    assert setup.parameters == {"selection": "lengths", "length_scale": 0.75, "length_floor": 0.0}
    dearer = configure_project(project=project, changes={"length_scale": 2.0}, actor=make_user())
    assert plan_setups.purchase_of(dearer, 300).choosing > bought.choosing
    assert client.get(reverse("learner:plan", args=[project.slug])).status_code == 200


def test_a_round_of_it_is_charged_and_then_it_stays(project, manager):
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    chosen = Round.objects.filter(project=project).first()
    assert chosen.strategy == "lengths"
    event = event_from_json(LedgerEntry.objects.get(pk=chosen.committed_entry_id).parent.event)
    assert (event.kind, event.scale) == ("top_c", 0.75)
    with pytest.raises(ConfigurationFrozen, match="length_scale"):
        configure_project(project=project, changes={"length_scale": 0.1}, actor=manager)
    project.refresh_from_db()
    values = {"project": project, "version": 2, "digest": "0" * 64}
    other = Configuration.objects.create(
        **values, document={"selection": {"selection": "lengths", "length_scale": 0.1}}
    )
    with refused("annotation_project_successor"):
        Project.objects.filter(pk=project.pk).update(configuration=other)


def test_an_annotator_is_told_why_in_its_words(project, client):
    client.force_login(make_annotators(project, 1)[0])
    page = client.get(reverse("annotation:why", args=[project.slug])).content.decode()
    assert "Long records are asked more often, by a pull of 0.75," in page


def test_the_page_of_what_is_protected_knows_no_number_of_another_choice(project):
    assert what_it_costs(WizardStep.QUESTIONS, project.settings) == "Choosing is charged with every round of questions."


def test_the_database_gives_its_rounds_no_block(project):
    values = {"project": project, "strategy": "lengths", "requested": 5}
    with refused("learner_round_in_blocks"):
        Round.objects.create(number=1, block=1, **values)
    with refused("learner_round_in_blocks"):
        Round.objects.create(number=1, **values | {"strategy": "secret_sample"})
    with refused("learner_round_block_secret"):
        Round.objects.create(number=1, block=0, **values | {"strategy": "secret_sample"})
    with refused("learner_round_block_secret"):
        Round.objects.create(number=1, closes_at=timezone.now(), **values)
    Round.objects.create(number=1, block=1, **values | {"strategy": "secret_sample"})


@pytest.mark.parametrize("check", test_strategies.BATTERY, ids=lambda check: check.__name__)
def test_it_passes_the_battery_of_all_strategies(declared, check):
    """The battery takes it from the catalogue, as it takes every other; `LongFirst` names no list of tests."""
    (registered,) = (strategy for strategy in test_strategies.registered() if strategy.name == "lengths")
    assert isinstance(registered, Lengths)
    values = {"strategy": registered, "model": test_strategies.BINARY}
    check(**{name: values[name] for name in inspect.signature(check).parameters})


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ({"selection": {"length_scale": 0}}, "annotation_configuration_declared"),
        ({"selection": {"length_scale": 3.5}}, "annotation_configuration_declared"),
        ({"selection": {"length_scale": "1"}}, "annotation_configuration_declared"),
        ({"selection": {"length_scale": None}}, "annotation_configuration_declared"),
        ({"selection": {"no_such_setting": 1}}, "annotation_configuration_declared"),
        ({"training": {"length_scale": 1}}, "annotation_configuration_declared"),
        ({"selection": 1}, "annotation_configuration_declared"),
        ([], "annotation_configuration_declared"),
    ],
)
def test_the_database_takes_no_document_that_nothing_declares(project, document, rule):
    with refused(rule):
        Configuration.objects.create(project=project, version=2, digest="0" * 64, document=document)


def test_the_database_demands_what_its_charge_rests_on_and_keeps_its_numbers_in_order(project):
    for changes in ({"length_scale": None}, {"length_floor": 0.8}):
        with refused("annotation_project_selection_fits_oracle"):
            write_settings(project, **changes)
    write_settings(project, length_floor=0.75)
    # No charge rests on it.
    write_settings(project, length_floor=None)


def test_the_database_keeps_every_version_as_it_is(project, manager):
    stored = Configuration.objects.filter(project=project)
    for change in ({"document": {}}, {"digest": "1" * 64}, {"version": 7}):
        with as_owner(), refused("annotation_configuration_kept"):
            stored.update(**change)
    with as_owner(), refused("annotation_configuration_kept"):
        connection.cursor().execute("DELETE FROM annotation_configuration")
    with as_owner(), refused("annotation_configuration_kept_whole"):
        connection.cursor().execute("TRUNCATE annotation_configuration CASCADE")
    with refused("annotation_configuration_follows"):
        Configuration.objects.create(project=project, version=3, digest="0" * 64, document={})
    elsewhere = learning.open_trusted(manager, selection="lengths")
    with refused("annotation_project_configuration_own"):
        Project.objects.filter(pk=elsewhere.pk).update(configuration=stored.get())
    with refused("annotation_configuration_declared"):
        write_settings(project, selection=f"never declared {uuid4().hex[:8]}")
