from dataclasses import dataclass

import pytest

from privacy.accounting.cost import ADJACENCIES, Cost
from privacy.accounting.events import (
    GateEvent,
    GateOfSnapshotEvent,
    GateWindowEvent,
    GaussianEvent,
    KAnonymityGateEvent,
    PeopleEvent,
    ThresholdGateEvent,
    event_from_json,
)

SNAPSHOT = "0a" * 32
GATES = [
    KAnonymityGateEvent(20, 0.3, 0.5, normalizer="l1"),
    KAnonymityGateEvent(60, 0.2, 0.1, "contributor", 5),
    ThresholdGateEvent(1.0, 1e-6),
    ThresholdGateEvent(1.0, 1e-6, "contributor", 10, "weighted_gaussian"),
]


@pytest.mark.parametrize("inner", GATES, ids=lambda gate: f"{gate.kind} {gate.unit}")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_where_the_rows_lie_changes_no_price(inner, adjacency):
    event = GateOfSnapshotEvent(inner, SNAPSHOT)
    assert event.cost(adjacency=adjacency) == inner.cost(adjacency=adjacency)
    assert event.unit == inner.unit
    assert event_from_json(event.to_json()) == event
    assert event.to_json()["snapshot"] == SNAPSHOT
    assert inner.summary() in event.summary()


def test_a_population_groups_it_by_its_unit():
    event = GateOfSnapshotEvent(GATES[1], SNAPSHOT)
    assert PeopleEvent(event, "contributor", 1, "project:a:pool", 2).cost() == event.cost()
    with pytest.raises(ValueError, match="records per person must be 1"):
        PeopleEvent(event, "contributor", 2, "project:a:pool", 2)


@pytest.mark.parametrize("snapshot", ["", "0a" * 31, "0A" * 32, "0a" * 32 + "\n", "zz" * 32])
def test_a_snapshot_is_named_by_its_digits(snapshot):
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        GateOfSnapshotEvent(GATES[0], snapshot)


@pytest.mark.parametrize("inner", [GaussianEvent(1.0, 2.0), GateWindowEvent(GATES[0], 7, 1)])
def test_nothing_but_one_run_of_a_gate_is_over_a_snapshot(inner):
    with pytest.raises(ValueError, match="no run of a gate"):
        GateOfSnapshotEvent(inner, SNAPSHOT)


@dataclass(frozen=True)
class OtherGateEvent(GateEvent):
    unit: str = "record"

    def cost(self, *, adjacency="null"):
        return Cost(1.0)

    def summary(self):
        return "another gate"


@dataclass(frozen=True)
class ProvedGateEvent(OtherGateEvent):
    proved_over_snapshots = True
    proved_in_windows = True


def test_a_gate_that_declares_no_proof_is_over_no_snapshot():
    with pytest.raises(ValueError, match="no proof over a registered table"):
        GateOfSnapshotEvent(OtherGateEvent(), SNAPSHOT)
    event = GateOfSnapshotEvent(ProvedGateEvent("contributor"), SNAPSHOT)
    assert (event.cost(), event.unit) == (Cost(1.0), "contributor")
