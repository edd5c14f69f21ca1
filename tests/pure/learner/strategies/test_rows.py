import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.linear_model import LinearModel
from learner.strategies.blocks import draw_blocks
from learner.strategies.random import RandomChoice
from learner.strategies.rows import NO_ROWS, ListedRows, OpenRows, WatchedRows
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SimulationRandom


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


def test_a_watch_hears_how_many_were_taken_out():
    heard = []
    watched = WatchedRows(OpenRows(10, np.array([3])), heard.append)
    assert [block.tolist() for block in watched.blocks(4)] == [[0, 1, 2, 4], [5, 6, 7, 8], [9]]
    assert heard == [0, 4, 8]
    assert (len(watched), watched.at(np.array([3])).tolist()) == (9, [4])


MODEL = LinearModel(np.array([[1.0]]), np.zeros(1), ("no", "yes"))


HELD = {
    "top-c": (0.2, lambda X, rows: TopC().choose(X, rows, MODEL, 100, SimulationRandom(1))),
    "by chance": (0.2, lambda X, rows: RandomChoice().choose(X, rows, None, 100, SimulationRandom(1))),
    "uncertainty": (0.2, lambda X, rows: Uncertainty().choose(X, rows, MODEL, 100, SimulationRandom(1))),
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
