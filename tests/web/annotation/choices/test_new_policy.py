"""An update policy that is declared here, and nowhere else: chosen, asked for, planned, read, and followed."""

import pytest
from django.db import IntegrityError

from annotation.choices.rules import hides_selection
from annotation.projects.services.configuring import configure_project
from annotation.projects.services.known_choices import note_choice
from learner.models import StreamBatch
from learner.pools.configuration import stream_event
from tests import streaming
from tests.examples.policy import Growing
from tests.factories import write_settings
from tests.pure.annotation.choices.policies import test_updates

pytestmark = pytest.mark.django_db(transaction=True)
DECLARED = Growing


@pytest.fixture
def stream(declared, manager):
    # Of a visible block that asks about nobody there is no batch: at these rates one such block in 10^12.
    grows = {"update_policy": "growing", "growth": 2, "window_length": 40, "screen_high": 0.6, "screen_low": 0.5}
    return streaming.open_stream(manager, selection="bernoulli_screen", pool_epsilon=4.0, **grows)


def test_a_stream_closes_its_blocks_by_it_and_is_priced(stream, manager):
    event = stream_event(stream)
    assert (event.schedule, event.selection_visible) == ("flsw", True)
    streaming.posts.post_records(project=stream, records=streaming.rows(100))
    configure_project(project=stream, changes={"windows_ahead": 9}, actor=manager)
    streaming.work_off(stream)
    ends = list(StreamBatch.objects.filter(stream__project=stream).order_by("number").values_list("end", flat=True))
    assert ends == [40, 80]
    assert not hides_selection(stream.settings)


def test_the_database_asks_for_its_window_in_a_stream_and_for_no_denominator(stream):
    for broken in ({"window_length": None}, {"window_denominator": 5}):
        with pytest.raises(IntegrityError, match="annotation_project_stream"):
            write_settings(stream, **broken)


@pytest.mark.parametrize("check", test_updates.BATTERY, ids=lambda check: check.__name__)
def test_it_passes_the_battery_of_all_policies(check):
    check(Growing(window_length=4, growth=3))


def test_a_policy_that_hides_is_held_to_it_everywhere(declared, stream, manager, monkeypatch):
    """What a choice says of itself reaches Python's rules at once and, by its row, those of the database."""
    monkeypatch.setattr(Growing, "hides_selection", True)
    note_choice(Growing)
    assert hides_selection(stream.settings)
    with pytest.raises(IntegrityError, match="annotation_project_limit_tells_nothing"):
        write_settings(stream, labels_limit=10)
