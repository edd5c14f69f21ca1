import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.policies import Batch, BatchState, FixedBatches, FixedWindows, PerRound
from privacy.accounting.events import MinibatchSgdEvent, NoProof, StreamEvent
from privacy.choices import Kind


def test_schedule():
    used = 0
    for target in (50, 100, 150, 200):
        used = PerRound().labels_for_next_release(labels_at_last_release=used, labels_per_release=50)
        assert used == target


POLICIES = [FixedWindows(5, denominator=2), FixedBatches(3), FixedBatches(1)]


def slot_by_slot(policy, selected):
    """The source's loop: one record at a time, and what each policy says about it."""
    batches, held, closed = [], [], 0
    for slot, chosen in enumerate(selected):
        held += [slot] * bool(chosen)
        seen = slot + 1
        due = seen % policy.length == 0 if isinstance(policy, FixedWindows) else len(held) == policy.length
        if due:
            if held or not policy.selection_visible:
                closed += 1
                batches.append(Batch(closed, tuple(held), seen, policy.denominator))
            held = []
    return batches, held


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: f"{type(policy).__name__}-{policy.denominator}")
@given(selected=st.lists(st.booleans(), max_size=60), cuts=st.lists(st.integers(0, 60), max_size=5))
def test_blocks_of_any_size_close_the_batches_of_the_loop(policy, selected, cuts):
    """However the stream is cut, and with the state stored as JSON at every cut."""
    expected, held = slot_by_slot(policy, selected)
    state, batches = BatchState(), []
    edges = sorted({0, len(selected), *(cut for cut in cuts if cut <= len(selected))})
    for start, stop in pairwise(edges):
        state, closed = policy.advance(state, np.array(selected[start:stop], dtype=bool))
        state = BatchState.from_json(json.loads(json.dumps(state.to_json())))
        batches += closed
    assert batches == expected
    assert state == BatchState(len(selected), len(expected), tuple(held))


def test_a_hidden_window_updates_whatever_was_selected():
    """Times, number and denominators of the updates are the same for every course of the coins."""
    policy = FixedWindows(4, denominator=3)
    seen = set()
    for seed in range(20):
        _, batches = policy.advance(BatchState(), np.random.default_rng(seed).random(22) < 0.2)
        seen.add(tuple((batch.number, batch.end, batch.denominator) for batch in batches))
    assert seen == {tuple((k, 4 * k, 3) for k in range(1, 6))}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_only_windows_can_hide(policy):
    """The accountant refuses hidden selection where updates come by count."""
    update = MinibatchSgdEvent(1.0, 3)
    hidden = StreamEvent(0.5, 0.25, update, policy.selection_visible, policy.schedule)
    assert hidden.cost().epsilon > 0
    if policy.schedule == "flmb":
        assert policy.selection_visible
        with pytest.raises(NoProof, match="timing"):
            StreamEvent(0.5, 0.25, update, False, policy.schedule)


@pytest.mark.parametrize(
    ("policy", "asked", "slots"),
    [(FixedWindows(10, denominator=2), 2, 10), (FixedWindows(1, denominator=1), 1, 1), (FixedBatches(3), 3, 12)],
    ids=lambda policy: type(policy).__name__,
)
def test_each_says_how_much_a_batch_takes_at_a_rate(policy, asked, slots):
    assert (policy.asked_at(0.25), policy.slots_at(0.25)) == (asked, slots)


def cutting_a_stream_changes_nothing(choice):
    selected = np.random.default_rng(11).random(90) < 0.4
    state, whole = choice.batches().advance(BatchState(), selected)
    for size in (1, 7, 33):
        seen, batches = BatchState(), []
        for start in range(0, len(selected), size):
            seen, closed = choice.batches().advance(seen, selected[start : start + size])
            batches += closed
        assert (seen, batches) == (state, whole)
    slots = [slot for batch in whole for slot in batch.slots] + list(state.open_slots)
    assert slots == np.flatnonzero(selected).tolist()


def what_shows_is_what_is_declared(choice):
    rule = choice.batches()
    assert rule.selection_visible is not choice.hides_selection
    StreamEvent(0.5, 0.25, MinibatchSgdEvent(1.0, 3), rule.selection_visible, rule.schedule)
    ends = {
        tuple(
            batch.end for batch in choice.batches().advance(BatchState(), np.random.default_rng(seed).random(60) < q)[1]
        )
        for seed, q in enumerate((0.1, 0.5, 0.9))
    }
    assert len(ends) == 1 or not choice.hides_selection


def it_asks_for_answers_and_time(choice):
    for rate in (0.01, 0.5, 1.0):
        assert choice.batches().asked_at(rate) >= 1
        assert (choice.batches().slots_at(rate) or 1) >= 1


BATTERY = (cutting_a_stream_changes_nothing, what_shows_is_what_is_declared, it_asks_for_answers_and_time)
CHOSEN = [
    policy.of({"window_length": 6, "window_denominator": 2})
    for policy in CATALOGUE.of_kind(Kind.POLICY)
    if "stream" in policy.sound.arrivals
]


@pytest.mark.parametrize("check", BATTERY, ids=lambda check: check.__name__)
@pytest.mark.parametrize("choice", CHOSEN, ids=lambda choice: choice.name)
def test_every_policy_of_a_stream_passes_the_battery(choice, check):
    check(choice)
