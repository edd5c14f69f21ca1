"""A gate that is declared here, and nowhere else: chosen, planned, priced, told, and passed by an upload."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.urls import reverse

from annotation.choices.gates import run_event
from annotation.choices.presets import broken_rules
from annotation.gates import services as gates
from annotation.gates.receipts import receipt_of
from annotation.models import GateRun, Query
from annotation.projects.services import configuring
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from learner.simulation import plan_setups
from tests.declaring import declaring
from tests.examples.gate import Halfway
from tests.factories import make_records, open_preset, write_settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def declared() -> Iterator[None]:
    with declaring(Halfway):
        yield


@pytest.fixture
def crowd(declared, manager):
    return open_preset(manager, "voice-crowd", privacy_unit="record", gate_kind="halfway", gate_voices=10)


@pytest.fixture
def sender(manager):
    _, secret = tokens.create_token(user=manager, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
    return {"headers": {"Authorization": f"Bearer {secret}"}, "content_type": "application/json"}


def test_another_gate_takes_its_place_and_its_settings_go(crowd, manager):
    sampled = {"gate_kind": "k_anonymity", "gate_k": 30, "gate_sampling_rate": 0.2, "gate_epsilon": 1.0}
    changed = configuring.configure_project(project=crowd, changes=sampled, actor=manager)
    assert "gate_voices" not in changed.configuration.document["gate"]
    gates.choose_gate(project=changed, settings={"gate_kind": "halfway", "gate_epsilon": 1.0, "gate_voices": 20})
    changed.refresh_from_db()
    assert (changed.settings["gate_voices"], changed.gate_k) == (20, None)


def test_the_gate_page_compares_it_and_takes_it_over(crowd, client):
    url = reverse("annotation:gate", args=[crowd.slug])
    page = client.get(url)
    html = page.content.decode()
    assert "10 voices are wanted." in html
    assert [offer.choice.name for offer in page.context["best_of_each"]] == ["k_anonymity", "threshold", "halfway"]
    assert "Take half of what is wanted: a text passes once about 12 say it" in html

    assert client.post(url, {"gate_kind": "halfway", "gate_epsilon": "0.5"}).status_code == 302
    crowd.refresh_from_db()
    assert (crowd.settings["gate_voices"], crowd.gate_epsilon) == (12, 0.5)
    assert client.get(reverse("learner:plan", args=[crowd.slug])).status_code == 200
    assert plan_setups.purchase_of(crowd, 300) is not None


def test_what_the_pool_cannot_pay_is_refused_in_its_words(crowd):
    limits = {"pool_epsilon": 3.0, "pool_delta": 1e-6, "labels_epsilon": 4.0}
    assert broken_rules(crowd.settings | limits) == {"pool_delta": "This gate always costs delta 2e-06."}


def test_the_database_wants_its_settings_and_no_other_gates(crowd):
    for broken in ({"gate_voices": None}, {"gate_epsilon": None}, {"gate_k": 20}, {"gate_floor": 3}):
        with pytest.raises(IntegrityError, match="annotation_project_crowd_has_gate"):
            write_settings(crowd, **broken)
    with pytest.raises(IntegrityError, match=r"no choice declares this value of gate\.gate_voices"):
        write_settings(crowd, gate_voices=61)


def test_the_database_keeps_its_settings_out_of_other_gates(crowd):
    noisy = {"gate_kind": "threshold", "gate_delta": 1e-6, "gate_floor": 3}
    with pytest.raises(IntegrityError, match="annotation_project_crowd_has_gate"):
        write_settings(crowd, **noisy)
    write_settings(crowd, **noisy, gate_voices=None)


def test_an_upload_goes_through_it_and_its_event_is_charged(crowd):
    assert receipt_of(crowd).why == "About 10 voices were wanted, and half of them came"
    records = make_records(crowd, ["play jazz"] * 300 + ["my own secret"] * 3)
    gates.run_gate(job_id=gates.start_gate(dataset=records[0].dataset).pk)
    assert list(Query.objects.values_list("text", flat=True)) == ["play jazz"]
    charged = GateRun.objects.get().reservation
    event = run_event(crowd.settings)
    assert (charged.event["kind"], charged.event["threshold"]) == ("threshold_gate", event.threshold)
    assert charged.epsilon_nano == round(event.cost().epsilon * 1e9)
    with pytest.raises(configuring.ConfigurationFrozen):
        configuring.configure_project(project=crowd, changes={"gate_voices": 20}, actor=crowd.created_by)
