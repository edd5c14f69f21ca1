"""An update policy that is declared here, and nowhere else: chosen, asked for, planned, read, and followed."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import numpy as np
import pytest
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse

from annotation.choices.policies.base import LONGEST_WINDOW, STREAM, WindowPolicy
from annotation.choices.policies.updates import BatchPolicy
from annotation.choices.secrecy import hides_selection
from annotation.projects.forms.wizard import WizardStep
from annotation.projects.services.configuring import configure_project
from annotation.projects.services.known_choices import note_choice
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from learner.models import StreamBatch
from learner.pools.configuration import stream_event
from learner.rounds import next_step
from privacy.choices import Sound, parameter
from tests import learning, streaming
from tests.declaring import declaring, fields_shown
from tests.factories import make_user, write_settings
from tests.pure.annotation.choices.policies import test_updates

pytestmark = pytest.mark.django_db(transaction=True)


class GrowingBlocks(BatchPolicy):
    """Blocks that end at `first` slots, at `growth` times as many, and so on."""

    schedule = "flsw"

    def __init__(self, first: int, growth: int) -> None:
        self.first, self.growth = first, growth

    def asked_at(self, rate: float) -> int:
        return max(1, round(self.first * rate))

    def _ends(self, state, slots, stop) -> Iterable[int]:
        end = self.first
        while end <= stop:
            if end > state.next_slot:
                yield end
            end *= self.growth


@dataclass(frozen=True)
class Growing(WindowPolicy):
    """What a project chooses of it."""

    name: ClassVar[str] = "growing"
    label: ClassVar[str] = "whenever there is several times as much"
    sound: ClassVar[Sound] = Sound()

    growth: int = parameter(
        3,
        at_least=2,
        at_most=9,
        label="Times as much",
        help="Of labels, or of records.",
        rule="From 2 to 9, not {got}.",
    )
    window_length: int | None = parameter(
        None, at_least=1, at_most=LONGEST_WINDOW, arrivals=STREAM, label="Window or batch", help="Of the first block."
    )

    def _labels_due(self, last: int, each: int) -> int:
        return max(each, self.growth * last)

    def batches(self) -> GrowingBlocks:
        return GrowingBlocks(self.window_length or 1, self.growth)


@pytest.fixture
def declared() -> Iterator[None]:
    with declaring(Growing):
        yield


@pytest.fixture
def pool(declared, manager):
    return learning.open_trusted(manager, selection="random", update_policy="growing", growth=4, labels_per_release=10)


@pytest.fixture
def stream(declared, manager):
    # Of a visible block that asks about nobody there is no batch: at these rates one such block in 10^12.
    grows = {"update_policy": "growing", "growth": 2, "window_length": 40, "screen_high": 0.6, "screen_low": 0.5}
    return streaming.open_stream(manager, selection="bernoulli_screen", pool_epsilon=4.0, **grows)


@pytest.mark.parametrize(("preset", "around"), [("pool-experts", {"selection": "random"}), ("fraud-stream", {})])
def test_the_wizard_offers_it_with_its_settings_and_rule(declared, client, preset, around):
    questions = reverse("annotation:wizard", args=[preset, WizardStep.QUESTIONS])
    sent = {name: value for name, value in fields_shown(client.get(questions)).items() if value not in (None, False)}
    client.post(questions, sent | around)
    url = reverse("annotation:wizard", args=[preset, WizardStep.MODEL])
    page = client.get(url)
    assert "whenever there is several times as much" in page.content.decode()
    sent = {name: value for name, value in fields_shown(page).items() if value not in (None, False)}
    client.post(url, sent | {"update_policy": "growing"})
    page = client.get(url)
    assert fields_shown(page)["growth"] in ("3", 3)
    assert "Times as much" in page.content.decode()
    sent = {name: value for name, value in fields_shown(page).items() if value not in (None, False)}
    refused = client.post(url, sent | {"growth": "10"})
    assert refused.status_code == 422


def test_the_settings_page_changes_it_and_the_history_names_it(pool, client):
    url = reverse("annotation:configuration", args=[pool.slug])
    page = client.get(url)
    assert fields_shown(page)["growth"] in ("4", 4)
    sent = {name: value for name, value in fields_shown(page).items() if value not in (None, "false")}
    extra = {"boxes": page.context["boxes"], "fields": page.context["sent_fields"]}
    assert client.post(url, sent | extra | {"growth": "5"}).status_code == 302
    pool.refresh_from_db()
    assert pool.configuration.document["training"]["growth"] == 5
    assert "Times as much" in client.get(reverse("annotation:settings", args=[pool.slug])).content.decode()
    assert client.post(url, sent | extra | {"growth": "1"}).status_code == 422


def test_rest_lists_it_and_changes_it(pool, manager):
    _, secret = tokens.create_token(user=manager, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
    sent = {"headers": {"Authorization": f"Bearer {secret}"}, "content_type": "application/json"}
    listed = {one["name"]: one for one in Client().get("/api/v1/choices?kind=policy", **sent).json()}
    assert listed["growing"]["parameters"]["properties"]["growth"]["maximum"] == 9
    url = f"/api/v1/projects/{pool.slug}/configuration"
    refused = Client().patch(url, json.dumps({"settings": {"growth": 12}}), **sent)
    assert (refused.status_code, "From 2 to 9, not 12" in refused.json()["detail"]) == (422, True)
    after = Client().patch(url, json.dumps({"settings": {"growth": 2}}), **sent).json()
    assert after["document"]["training"]["growth"] == 2


def test_the_next_step_follows_it(pool, client):
    assert client.get(reverse("learner:plan", args=[pool.slug])).status_code == 200
    learning.fill_trusted(pool)
    learning.run_to_release(pool, make_user(), version=1)
    # Four times as many as the first model had, whole rounds of them, and not one label sooner.
    step = next_step.project_status(pool)
    assert step.step != next_step.Step.TRAIN


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


def test_the_same_draws_close_the_same_blocks():
    _, batches = GrowingBlocks(2, 3).advance(test_updates.BatchState(), np.ones(20, dtype=bool))
    assert [batch.end for batch in batches] == [2, 6, 18]
