"""What SQL knows of events, compared with Python over every kind: unit, place in a series, and least price."""

import json

import pytest
from django.db import connection

from privacy.accounting import events as ev
from privacy.accounting.cost import ADJACENCIES, NoProof
from privacy.ledger.rules import charge_of
from tests.pure.privacy.accounting.test_events import EXAMPLES

pytestmark = pytest.mark.django_db
# Later batches of running sums, and all runs of a gate but one, are left out of the price in SQL.
SHARE_OF_PRICE = {"running_sums": 0.5, "stream": 0.5, "composed_gate_window": 0.6, "composed_capped_gate": 0.6}


def asked(function: str, *arguments: object) -> tuple:
    places = ", ".join(["%s::jsonb" if str(each).startswith("{") else "%s" for each in arguments])
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {function}({places})", arguments)
        return cursor.fetchone()


def text(event: ev.Event) -> str:
    return json.dumps(event.to_json())


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_unit_and_place_in_a_series_are_the_events_own(event):
    assert asked("privacy_event_unit", text(event)) == (getattr(event, "unit", "record"),)
    if event.kind != "post_processing":
        assert asked("privacy_event_continues", text(event)) == (event.needs_parent,)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_the_least_price_is_close_below_the_cost(event, adjacency):
    try:
        charge = charge_of(event, adjacency=adjacency)
    except NoProof:
        return
    epsilon, delta, rho = asked("privacy_least_cost", text(event), adjacency)
    for name, paid, least in (
        ("epsilon", charge.epsilon_nano, epsilon * 1e9),
        ("delta", charge.delta_atto, delta * 1e18),
        ("rho", charge.rho_nano, rho * 1e9),
    ):
        assert paid is None or least * (1 - 1e-6) - 1 <= paid, name
    # A group's price is compared with its project's entry.
    if event.kind != "people":
        if charge.epsilon_nano is None:
            assert epsilon * 1e9 > 1e15 or charge.rho_nano == 0
        elif adjacency == "null":
            assert epsilon * 1e9 >= SHARE_OF_PRICE.get(event.kind, 0.98) * charge.epsilon_nano - 1
