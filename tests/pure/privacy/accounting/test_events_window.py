from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.cost import ADJACENCIES, float_at_least
from privacy.accounting.events import (
    ComposedCappedGateEvent,
    ComposedGateWindowEvent,
    GateWindowEvent,
    GaussianEvent,
    KAnonymityGateEvent,
    ThresholdGateEvent,
)
from privacy.accounting.gate_events import MOST_UPLOADS_TOGETHER, next_window_run
from tests.pure.privacy.accounting.test_events_snapshot import OtherGateEvent, ProvedGateEvent

GATE = KAnonymityGateEvent(20, 0.3, 0.5)
GATES = (GATE, ThresholdGateEvent(1.0, 1e-6), ThresholdGateEvent(1.0, 1e-6, noise="weighted_gaussian"))


def runs_of(window, epochs, inner=GATE):
    """Return the events of runs of these epochs, one after the other; None is a new one."""
    found, before = [], None
    for epoch in epochs:
        before = GateWindowEvent.next_of(before, inner, window=window, epoch=epoch)
        found.append(before)
    return found


def in_runs(events, adjacency="null"):
    once = events[0].inner.cost(adjacency=adjacency).epsilon
    return round(sum(event.cost(adjacency=adjacency).epsilon for event in events) / once, 9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("inner", GATES, ids=["sampled", "laplace", "gaussian"])
def test_a_series_of_any_number_of_epochs_costs_its_window(inner, adjacency):
    once = inner.cost(adjacency=adjacency)
    first, *others = [event.cost(adjacency=adjacency) for event in runs_of(7, [None] * 40, inner)]
    seven = [float_at_least(7 * Fraction(amount)) for amount in (once.epsilon, once.delta, once.rho)]
    assert [first.epsilon, first.delta, first.rho] == seven
    assert {(cost.epsilon, cost.delta, cost.rho) for cost in others} == {(0.0, 0.0, 0.0)}


def test_a_window_of_one_costs_one_run_for_all_uploads():
    assert in_runs(runs_of(1, [None] * 40)) == 1


def test_a_repeated_run_pays_once_more_where_its_records_meet_no_other_repeat():
    """No record is in the runs of epochs 2 and 5 under a window of three: those of upload 2 end with epoch 4."""
    events = runs_of(3, [None, None, 2, None, None, None, 5, None])
    assert [event.cost().epsilon for event in events] == [1.5, 0, 0.5, 0, 0, 0, 0, 0]
    assert in_runs(runs_of(3, [None, None, 2, None, None, 4])) == 5
    assert in_runs(runs_of(3, [None, 1, 1])) == 5
    assert in_runs(runs_of(1, [None, 1, None, 2])) == 2


def test_a_gate_that_declares_no_proof_is_in_no_series():
    with pytest.raises(ValueError, match="no proof over uploads that are counted together"):
        GateWindowEvent(OtherGateEvent(), 3, 1)
    assert in_runs(runs_of(3, [None] * 9, ProvedGateEvent())) == 3


def test_a_run_reads_the_newest_uploads_of_its_epoch():
    assert [(event.first, event.epoch) for event in runs_of(3, [None, None, None, None, 2])] == [
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 4),
        (1, 2),
    ]


@given(window=st.integers(1, 5), steps=st.lists(st.integers(0, 8), max_size=25), data=st.data())
def test_no_record_is_in_more_runs_than_were_paid_at_any_moment(window, steps, data):
    """Against a count of what every run reads; a charge of one run less would be too little for some record."""
    events, read, paid = [], Counter(), 0.0
    for step in [0, *steps]:
        entered = events[-1].counted[0] if events else 0
        epoch = None if step == 0 or not entered else min(step, entered)
        events.append(GateWindowEvent.next_of(events[-1] if events else None, GATE, window=window, epoch=epoch))
        paid = in_runs(events)
        for upload in range(events[-1].first, events[-1].epoch + 1):
            assert upload <= events[-1].counted[0]
            read[upload] += 1
        assert max(read.values()) <= paid
    # Every epoch to come is paid for: once they are there, nothing was paid in vain.
    for _ in range(window):
        events.append(GateWindowEvent.next_of(events[-1], GATE, window=window))
        assert events[-1].cost().epsilon == 0
        read.update(range(events[-1].first, events[-1].epoch + 1))
    assert max(read.values()) == paid


def test_entries_follow_one_another():
    first, second, third = runs_of(3, [None, None, 1])
    first.check_parent(None)
    second.check_parent(first)
    third.check_parent(second)
    other = runs_of(3, [None], KAnonymityGateEvent(20, 0.3, 0.4))[0]
    wider = runs_of(4, [None])[0]
    for parent, said in (
        (other, "the same gate over as many"),
        (wider, "the same gate over as many"),
        (GATE, "the same gate over as many"),
        (second, "count every run"),
        (None, "must name the entry"),
    ):
        with pytest.raises(ValueError, match=said):
            second.check_parent(parent)
    with pytest.raises(ValueError, match="count every run"):
        replace(third, repeats=(1,)).check_parent(second)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((KAnonymityGateEvent(20, 0.3, 0.5, "contributor", 2), 3, 1), "a person may be in every upload"),
        ((ThresholdGateEvent(1.0, 1e-6, "contributor", 2, "weighted_gaussian"), 3, 1), "may be in every upload"),
        ((GaussianEvent(1.0, 2.0), 3, 1), "no run of a gate"),
        ((GATE, 0, 1), "window must be an integer >= 1"),
        ((GATE, MOST_UPLOADS_TOGETHER + 1, 1), "window must be at most 168"),
        ((GATE, 3, 0), "epoch must lie in"),
        ((GATE, 3, 3, 1), "epoch must lie in"),
        ((GATE, 3, 1, -1), "epochs must be"),
        ((GATE, 3, 3, 2, (2, 1)), "in their order"),
        ((GATE, 3, 3, 2, (3,)), "that were entered"),
    ],
)
def test_series_that_are_none_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        GateWindowEvent(*wrong)


def test_it_says_what_is_counted_together():
    assert runs_of(3, [None] * 5)[-1].summary().startswith("uploads 3 to 5 together: k-anonymity gate")


@given(
    records=st.integers(1, 6),
    window=st.integers(1, 4),
    places=st.lists(st.integers(1, 6), min_size=6, max_size=6),
    repeats=st.lists(st.integers(1, 6), max_size=3),
)
def test_a_person_of_several_uploads_pays_no_more_than_a_population_is_charged(records, window, places, repeats):
    """Run by run: each costs the group of those records that it reads, and all of them no more than the entries do."""
    events = runs_of(window, [None] * 6 + repeats)
    charged = [event.cost().of_group(records) for event in events]
    once = GATE.cost()
    told = [sum(event.first <= place <= event.epoch for place in places[:records]) for event in events]
    costs = [once.of_group(number) for number in told if number]
    for name in ("epsilon", "delta", "rho"):
        true, most = sum(getattr(cost, name) for cost in costs), sum(getattr(cost, name) for cost in charged)
        assert true <= most * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_composed_window_pays_the_product_of_its_runs_once_and_repeats_by_themselves(adjacency):
    once = GATE.cost(adjacency=adjacency)
    events = [ComposedGateWindowEvent.next_of(None, GATE, window=7)]
    for epoch in (None, None, 2, None):
        events.append(ComposedGateWindowEvent.next_of(events[-1], GATE, window=7, epoch=epoch))
    opened, *others = [event.cost(adjacency=adjacency) for event in events]
    added = GateWindowEvent(GATE, 7, 1).cost(adjacency=adjacency)
    assert once.epsilon / 2 <= opened.epsilon < added.epsilon / 3
    assert (opened.delta, opened.rho) == (added.delta, min(added.rho, opened.rho))
    assert [cost.epsilon for cost in others] == [0.0, 0.0, once.epsilon, 0.0]
    assert others[2] == once


def test_only_a_gate_with_a_curve_has_its_window_composed():
    assert type(next_window_run(None, GATE, window=3)) is ComposedGateWindowEvent
    assert type(next_window_run(None, GATES[1], window=3)) is GateWindowEvent
    published = KAnonymityGateEvent(20, 0.3, 0.5, method="li2012")
    assert type(next_window_run(None, published, window=3)) is GateWindowEvent
    for inner, said in ((GATES[1], "no curve"), (published, "exact curve"), (ProvedGateEvent(), "no curve")):
        with pytest.raises(ValueError, match=said):
            ComposedGateWindowEvent(inner, 3, 1)
    with pytest.raises(ValueError, match="the same gate over as many"):
        ComposedGateWindowEvent(GATE, 3, 2, 1).check_parent(GateWindowEvent(GATE, 3, 1))


def test_a_cap_pays_the_product_of_its_texts():
    once = KAnonymityGateEvent(20, 0.3, 0.5).cost()
    capped = ComposedCappedGateEvent(20, 0.3, 0.5, "contributor", 7)
    window = ComposedGateWindowEvent(KAnonymityGateEvent(20, 0.3, 0.5), 7, 1)
    assert capped.cost() == window.cost()
    assert ComposedCappedGateEvent(20, 0.3, 0.5, "contributor", 1).cost() == once
    replaced = capped.cost(adjacency="replace")
    assert capped.cost().epsilon < replaced.epsilon < 2 * capped.cost().epsilon
    assert replaced.delta == pytest.approx(2 * capped.cost().delta)
    for wrong, said in (
        (("record", 1), "a cap protects one contributor"),
        (("contributor", 0), "texts_per_contributor"),
    ):
        with pytest.raises(ValueError, match=said):
            ComposedCappedGateEvent(20, 0.3, 0.5, *wrong)
    with pytest.raises(ValueError, match="exact curve"):
        ComposedCappedGateEvent(20, 0.3, 0.5, "contributor", 7, method="li2012")
