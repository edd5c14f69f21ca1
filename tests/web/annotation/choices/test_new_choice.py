"""A strategy that is declared here, and nowhere else, is there everywhere: to be chosen, refused, priced and read."""

import inspect
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from annotation.errors import ConfigurationFrozen
from annotation.models import Project
from annotation.models.configurations import Configuration
from annotation.projects.services.configuring import configure_project
from learner.models import Round
from privacy.accounting.events import event_from_json
from privacy.ledger.models import LedgerEntry
from tests import learning
from tests.examples.strategy import Lengths, LongFirst
from tests.factories import make_user, write_settings
from tests.owning import as_owner
from tests.pure.learner.strategies import test_strategies
from tests.refusing import refused

pytestmark = pytest.mark.django_db(transaction=True)
DECLARED = LongFirst


@pytest.fixture
def project(declared, manager) -> Project:
    return learning.open_trusted(manager, selection="lengths", length_scale=0.75)


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
