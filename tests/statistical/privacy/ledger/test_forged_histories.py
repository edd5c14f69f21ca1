"""Histories of every series drawn at random: honest ones pass service, database and auditor, mutated ones none.

`make evidence` draws 10,000.
"""

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from privacy.accounting import events as ev
from privacy.accounting.counts import class_counts_event
from privacy.ledger.rules import OPENED_ONCE, charge_of
from tests.forging import History, Step, said_by_auditor, said_by_database, said_by_service

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_counter")]
# 10,000 in `make evidence`.
EXAMPLES = 500 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "0")) or 250
ONE_UNIT = {"pure": "epsilon_nano", "zcdp": "rho_nano"}


def followed(events: list[ev.Event]) -> list[Step]:
    return [Step(event, place - 1 if event.needs_parent else None) for place, event in enumerate(events)]


@st.composite
def trainings(draw: Any) -> ev.Event:
    return ev.MinibatchSgdEvent(draw(st.floats(0.3, 30)), draw(st.integers(1, 9)))


@st.composite
def blocks(draw: Any) -> History:
    training, rates = draw(trainings()), draw(st.sampled_from([(0.1, 0.7), (0.1, 0.1, 0.2), (0.5,)]))
    events: list[ev.Event] = []
    for block in draw(st.lists(st.integers(1, len(rates)), min_size=2, max_size=5)):
        before = events[-1] if events else None
        told = training
        if before is not None and draw(st.booleans()):
            told = class_counts_event(before.series.epsilons[block - 1], cells=9, counted=2)
        events.append(ev.SecretBlockEvent.next_of(before, told, block=block, rates=rates))
    return History(followed(events))


@st.composite
def samples(draw: Any) -> History:
    events, released = [], 0.0
    rate = draw(st.floats(0.01, 0.9))
    for _release in range(draw(st.integers(2, 5))):
        event = ev.SecretSampleEvent(draw(trainings()), rate, released)
        released += event.inner.cost(adjacency="null").epsilon
        events.append(event)
    return History(followed(events))


@st.composite
def windows(draw: Any) -> History:
    gate = draw(st.sampled_from([ev.ThresholdGateEvent(1.0, 1e-6), ev.KAnonymityGateEvent(20, 0.3, 0.5)]))
    events: list[ev.Event] = []
    width, kind = draw(st.integers(1, 9)), ev.GateWindowEvent
    if isinstance(gate, ev.KAnonymityGateEvent):
        kind = draw(st.sampled_from([kind, ev.ComposedGateWindowEvent]))
    for again in [False, *draw(st.lists(st.booleans(), min_size=1, max_size=5))]:
        before = events[-1] if events else None
        events.append(kind.next_of(before, gate, window=width, epoch=1 if again else None))
    return History(followed(events))


@st.composite
def rounds(draw: Any) -> History:
    scale, picks = draw(st.floats(0.1, 3)), draw(st.integers(1, 9))
    series = ["opened", *["continued"] * draw(st.integers(1, 4))]
    return History(followed([ev.TopCEvent(200 - place, picks, scale, kind) for place, kind in enumerate(series)]))


@st.composite
def looks(draw: Any) -> History:
    screen = ev.ExposureCappedScreenEvent(draw(st.floats(0.5, 0.9)), draw(st.floats(0.05, 0.4)), 3)
    further = [ev.ScreenRoundEvent(screen.q_hi, screen.q_lo)] * draw(st.integers(1, 4))
    return History(followed([screen, *further]))


@st.composite
def sums(draw: Any) -> History:
    once = ev.SumsEvent(draw(st.integers(1, 9)), 3, 1.0, draw(st.sampled_from([0.0, 20.0])), draw(st.floats(3, 30)))
    steps = ev.GradientStepsEvent(draw(st.integers(1, 40)), 3, 3, 1.0, 0.3, draw(st.floats(2, 30)), 9.0)
    running = ev.RunningSumsEvent(once, draw(st.integers(1, 16)), (11796, 55273), (5695, 27007))
    picked = ev.PickedFitEvent(draw(st.sampled_from([once, steps])), draw(st.integers(2, 9)), draw(st.floats(2, 30)))
    spans = ev.SpanStepsEvent(draw(st.integers(1, 40)), 5, 3, 1.0, 0.5, draw(st.floats(2, 30)), 9.0)
    told = draw(st.sampled_from([spans, ev.PickedFitEvent(spans, 5, draw(st.floats(2, 30)))]))
    measured = ev.MeasuredFitEvent(told, draw(st.integers(1, 9)), draw(st.floats(2, 90)))
    counts = ev.ClassCountsEvent(9, draw(st.integers(1, 2)), draw(st.floats(0.5, 30)))
    told = draw(st.lists(st.sampled_from([once, steps, running, picked, measured, counts]), min_size=1, max_size=4))
    return History([Step(event) for event in told], filter="zcdp")


@st.composite
def answers(draw: Any) -> History:
    unit = draw(st.sampled_from(["answer", "annotator"]))
    asked = draw(st.integers(1, 20)) if unit == "annotator" else 1
    event = ev.RandomizedAnswersEvent(draw(st.floats(0.5, 5)), 7, unit=unit, questions_per_annotator=asked)
    return History([Step(event)], unit=unit)


@st.composite
def caps(draw: Any) -> History:
    capped = ev.ComposedCappedGateEvent(draw(st.integers(8, 30)), 0.3, 0.5, "contributor", draw(st.integers(1, 9)))
    return History([Step(capped)], unit="contributor")


HONEST = st.one_of(caps(), blocks(), samples(), windows(), rounds(), looks(), sums(), answers())


def one_unit(history: History, place: int) -> History:
    name = ONE_UNIT[history.filter]
    step = history.steps[place]
    assume((step.charge(history.adjacency)[name] or 0) > 10)
    return with_step(history, place, step.priced(**{name: 1}))


def another_unit(history: History, place: int) -> History:
    charge = charge_of(history.steps[place].event, adjacency="null")
    assume((charge.epsilon_nano, charge.delta_atto, charge.rho_nano) != (0, 0, 0))
    return replace(history, unit="contributor" if history.unit == "record" else "record")


def no_parent(history: History, place: int) -> History:
    assume(history.steps[place].parent is not None)
    return with_step(history, place, replace(history.steps[place], parent=None))


def needless_parent(history: History, place: int) -> History:
    assume(not history.steps[place].event.needs_parent)
    return replace(history, steps=[*history.steps, replace(history.steps[place], parent=0)])


def fork(history: History, place: int) -> History:
    step = history.steps[place]
    assume(step.parent is not None or step.event.kind in OPENED_ONCE)
    # A round says nothing of those before it: after the last one, the same again is the next.
    assume(step.event.kind not in ("top_c", "screen_round") or place + 1 < len(history.steps))
    return replace(history, steps=[*history.steps, step])


def no_opening(history: History, _place: int) -> History:
    assume(len(history.steps) > 1 and history.steps[1].event.needs_parent)
    steps = [replace(step, parent=None if place == 0 else place - 1) for place, step in enumerate(history.steps[1:])]
    return replace(history, steps=steps)


def miscounted(history: History, place: int) -> History:
    event = history.steps[place].event
    assume(event.needs_parent)
    if isinstance(event, ev.SecretBlockEvent):
        event = replace(event, attempts=tuple(count + 1 for count in event.attempts))
    elif isinstance(event, ev.GateWindowEvent):
        event = replace(event, epochs=event.epochs + 1)
    elif isinstance(event, ev.SecretSampleEvent):
        event = replace(event, released_before=event.released_before / 2)
    elif isinstance(event, ev.TopCEvent):
        event = replace(event, scale=2 * event.scale)
    else:
        event = replace(event, q_hi=event.q_hi + 0.05)
    return with_step(history, place, replace(history.steps[place], event=event))


def no_cost(history: History, _place: int) -> History:
    free = ev.GaussianEvent(1.0, 0.1) if history.filter == "pure" else blockless()
    return replace(history, steps=[*history.steps, Step(free)])


def blockless() -> ev.Event:
    return ev.SecretBlockEvent.next_of(None, ev.MinibatchSgdEvent(1.0, 3), block=1, rates=(0.5,))


def another_mechanism(history: History, place: int) -> History:
    return with_step(history, place, history.steps[place].priced(mechanism="another"))


def with_step(history: History, place: int, step: Step) -> History:
    return replace(history, steps=[*history.steps[:place], step, *history.steps[place + 1 :]])


# Prices, parents and mechanisms are set by the service itself.
BY_THE_SERVICE = (another_unit, no_opening, miscounted, no_cost)
WRITTEN = (one_unit, no_parent, needless_parent, fork, another_mechanism)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(history=HONEST, mutate=st.sampled_from([None, *BY_THE_SERVICE, *WRITTEN]), data=st.data())
def test_honest_histories_pass_all_three_and_forged_ones_none(history, mutate, data):
    if mutate is not None:
        history = mutate(history, data.draw(st.integers(0, len(history.steps) - 1)))
    forged = mutate is not None
    assert bool(said_by_auditor(history)) == forged
    assert bool(said_by_database(history)) == forged
    if mutate not in WRITTEN:
        assert bool(said_by_service(history)) == forged
