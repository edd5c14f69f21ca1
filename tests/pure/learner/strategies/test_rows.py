"""Candidates that nobody lists: the same rows as a list of them, every one once in a random order, and no memory."""

import tracemalloc
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.linear_model import LinearModel
from learner.strategies import rows as all_rows
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.blocks import draw_blocks
from learner.strategies.random import RandomChoice
from learner.strategies.rows import NO_ROWS, ListedRows, OpenRows, WatchedRows, in_random_order
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SimulationRandom

TRIALS = 24_000


@given(
    total=st.integers(0, 60),
    taken=st.lists(st.integers(0, 59), max_size=80),
    size=st.integers(1, 70),
    asked=st.lists(st.integers(0, 59), max_size=20),
)
def test_open_rows_are_the_list_of_them(total, taken, size, asked):
    taken = np.array([row for row in taken if row < total], dtype=np.int64)
    found = OpenRows(total, taken)
    listed = np.setdiff1d(np.arange(total), taken)
    assert len(found) == len(listed)
    for rows in (found, ListedRows(listed)):
        blocks = list(rows.blocks(size))
        assert [row for block in blocks for row in block] == listed.tolist()
        assert all(len(block) == size for block in blocks[:-1])
        assert rows.at(np.arange(len(listed))[::-1]).tolist() == listed[::-1].tolist()
    assert np.flatnonzero(found.mask()).tolist() == listed.tolist()
    asked = np.array([row for row in asked if row < total], dtype=np.int64)
    assert found.only(asked).tolist() == [row for row in asked if row in listed]


@pytest.mark.parametrize("taken", [[-1], [5], [2, 9]])
def test_taken_rows_that_are_none_are_refused(taken):
    with pytest.raises(ValueError, match="among the 5"):
        OpenRows(5, np.array(taken))


def test_a_watch_hears_how_many_were_taken_out():
    heard = []
    watched = WatchedRows(OpenRows(10, np.array([3])), heard.append)
    assert [block.tolist() for block in watched.blocks(4)] == [[0, 1, 2, 4], [5, 6, 7, 8], [9]]
    assert heard == [0, 4, 8]
    assert (len(watched), watched.at(np.array([3])).tolist()) == (9, [4])


@pytest.fixture
def drawn_by_chance(monkeypatch):
    """Have every row drawn from all, until none is left to shuffle."""
    monkeypatch.setattr(all_rows, "LISTED_ROWS", 0)
    monkeypatch.setattr(all_rows, "LISTED_SHARE", 1000)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_every_open_row_comes_once(monkeypatch, listed, seed):
    if not listed:
        monkeypatch.setattr(all_rows, "LISTED_ROWS", 7)
    is_open = np.random.default_rng(seed).random(300) < 0.7
    expected = np.flatnonzero(is_open).tolist()
    blocks = list(in_random_order(is_open, block_rows=16, rng=SimulationRandom(seed)))
    order = [row for block in blocks for row in block]
    assert sorted(order) == expected != order
    assert max(map(len, blocks)) <= 16
    assert not is_open.any()


def squared_z(orders):
    """Return the statistic over the 24 orders of four rows: of 23 degrees, so 100 is beyond five sigma."""
    counts = Counter(orders)
    expected = TRIALS / 24
    return sum((counts[order] - expected) ** 2 / expected for order in permutations([0, 2, 3, 5]))


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("in_row_order", "accepted"), [(False, True), (True, False)])
@pytest.mark.usefixtures("drawn_by_chance")
def test_all_orders_are_equally_likely(in_row_order, accepted):
    """False alarm below 1e-6; a twin that sorts what it drew at once must be refused."""
    rng, orders = SimulationRandom(20_261_124), []
    for _ in range(TRIALS):
        is_open = np.array([1, 0, 1, 1, 0, 1], dtype=np.bool_)
        blocks = in_random_order(is_open, block_rows=3, rng=rng)
        orders.append(tuple(int(row) for block in blocks for row in (np.sort(block) if in_row_order else block)))
    assert (squared_z(orders) < 100) == accepted


MODEL = LinearModel(np.array([[1.0]]), np.zeros(1), ("no", "yes"))


def screened(X, rows):
    screen = BernoulliScreen(0.002, 0.001)
    asked = sum(len(part.selected) for part in screen.examine(X, rows, rows.mask(), MODEL, 10**9, SimulationRandom(3)))
    assert 0.0005 < asked / len(rows) < 0.003


HELD = {
    "top-c": (0.2, lambda X, rows: TopC().choose(X, rows, MODEL, 100, SimulationRandom(1))),
    "by chance": (0.2, lambda X, rows: RandomChoice().choose(X, rows, None, 100, SimulationRandom(1))),
    "uncertainty": (0.2, lambda X, rows: Uncertainty().choose(X, rows, MODEL, 100, SimulationRandom(1))),
    # The mask, and what is listed of the rest.
    "screen": (6.0, screened),
    "secret coins": (1.2, lambda X, rows: draw_blocks(len(rows), (0.1, 0.7), SimulationRandom(1))),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", HELD)
def test_a_choice_holds_next_to_nothing_of_a_candidate(name):
    """The largest memory of a choice grows by so many bytes a candidate; it may be 48."""
    most, choose = HELD[name]
    small, large = 1_500_000, 3_000_000
    X = np.linspace(-1, 1, large, dtype=np.float32)[:, None]
    peaks = []
    for count in (small, large):
        rows = OpenRows(count, NO_ROWS)
        tracemalloc.start()
        choose(X[:count], rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / (large - small) < most
