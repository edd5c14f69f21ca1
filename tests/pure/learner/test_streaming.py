import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.choices.policies import BatchState, FixedBatches, FixedWindows
from learner.linear_model import LinearModel
from learner.pools.streaming import examine
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.secret_sample import SecretSample
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom

X = np.random.default_rng(2).uniform(-0.4, 0.4, size=(300, 4)).astype(np.float32)
MODEL = LinearModel(np.array([[1.0, 0.0, 0.0, 0.0]]), np.zeros(1), ("no", "yes"))


def run(start, stop, state, **changes):
    options = {
        "examiner": BernoulliScreen(),
        "policy": FixedBatches(7),
        "model": MODEL,
        "rng": SimulationRandom(1),
        "first_slot": start,
    }
    return examine(X[start:stop], state=state, **(options | changes))


@given(cuts=st.lists(st.integers(0, 300), max_size=6), seed=st.integers(0, 99))
def test_every_record_is_examined_once_whatever_is_posted_again(cuts, seed):
    """Blocks that overlap what was seen before, from a state that went through JSON: no slot gets a second coin."""
    rng = SimulationRandom(seed)
    state, asked, batches = BatchState(), [], []
    coins = CountsCoins()
    for stop in [*sorted(cuts), 300]:
        start = max(0, state.next_slot - 11)
        done = run(start, stop, state, rng=rng, examiner=coins)
        asked += (start + done.selected).tolist()
        batches += done.batches
        assert done.examined == max(0, stop - start)
        state = BatchState.from_json(json.loads(json.dumps(done.state.to_json())))
    assert coins.flipped == 300
    assert asked == sorted(set(asked))
    assert state.next_slot == 300
    assert [slot for batch in batches for slot in batch.slots] + list(state.open_slots) == asked
    assert all(len(batch.slots) == 7 for batch in batches)


class CountsCoins(BernoulliScreen):
    flipped = 0

    def decide(self, X, rows, model, rng):
        self.flipped += len(rows)
        return super().decide(X, rows, model, rng)


def test_a_gap_is_refused():
    with pytest.raises(ValueError, match="slots 3 to 9 were not examined"):
        run(10, 20, BatchState(next_slot=3))


@pytest.mark.parametrize("policy", [FixedBatches(5), FixedWindows(20, denominator=5), FixedBatches(1)])
def test_stopping_leaves_the_rest_for_the_next_model(policy):
    done = run(0, 300, BatchState(), policy=policy, most_batches=1)
    assert len(done.batches) == 1
    assert done.state.next_slot == done.examined == done.batches[0].end < 300
    assert done.state.open_slots == ()
    assert done.batches[0].slots == tuple(done.selected.tolist())
    rest = run(0, 300, done.state, policy=policy)
    assert rest.selected.min() >= done.examined
    assert rest.batches[0].number == 2


def test_a_new_model_changes_the_slab():
    other = LinearModel(np.array([[0.0, 1.0, 0.0, 0.0]]), np.zeros(1), ("no", "yes"))
    picks = [run(0, 300, BatchState(), model=model).selected.tolist() for model in (MODEL, other)]
    assert picks[0] != picks[1]


def test_secret_samples_need_no_model_and_screens_do():
    done = run(0, 300, BatchState(), examiner=SecretSample(0.5), model=None)
    assert 100 < len(done.selected) < 200
    with pytest.raises(ValueError, match="needs a released model"):
        run(0, 10, BatchState(), model=None)


def test_release_randomness_drives_the_coins():
    """The number selected, not seeded, 6.5 sigma. False alarm: < 1e-10."""
    wide = np.tile(X, (60, 1))
    done = examine(
        wide,
        first_slot=0,
        state=BatchState(),
        examiner=BernoulliScreen(0.6, 0.2, threshold=0.8),
        policy=FixedBatches(100),
        model=MODEL,
        rng=SecureRandom(),
    )
    expected = np.where(np.exp(-np.abs(wide[:, 0])) >= 0.8, 0.6, 0.2)
    sigma = np.sqrt((expected * (1 - expected)).sum())
    assert abs(len(done.selected) - expected.sum()) < 6.5 * sigma
