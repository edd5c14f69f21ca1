"""A secret sample spread over cells: who is in which cell, the rates that counts give, and what both cost together."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learner.strategies.cells import CELLS, record_cells
from learner.strategies.noisy_clusters import NoisyClusters, fitted_sizes
from learner.strategies.rows import ListedRows
from learner.strategies.secret_blocks import SecretBlocks
from learner.strategies.secret_sample import SecretSample
from privacy.accounting.events import MinibatchSgdEvent
from privacy.mechanisms.cell_counts import NO_CELL
from privacy.mechanisms.randomness import SimulationRandom

DRAWN = np.random.default_rng(4)
CROWD = DRAWN.normal((0.6, 0.1, 0.1, 0.0), 0.01, size=(3000, 4))
FEW = DRAWN.normal((-0.1, -0.6, 0.2, 0.1), 0.01, size=(60, 4))
X = np.vstack([CROWD, FEW]).astype(np.float32)
ROWS = np.arange(len(X))
counts_of = st.lists(st.integers(-(10**6), 10**12), min_size=CELLS, max_size=CELLS)


def test_a_cell_is_a_function_of_the_row_alone():
    """Whatever stands beside it, in whatever block: a product that rounds otherwise would move a second record."""
    rows = DRAWN.normal(size=(300, 33)) / 8
    whole = record_cells(rows)
    assert len(np.unique(whole)) > CELLS / 2
    assert [int(record_cells(row[None])[0]) for row in rows] == whole.tolist()
    assert record_cells(rows[::-3]).tolist() == whole[::-3].tolist()


def test_empty_slots_are_in_no_cell_and_odd_numbers_in_some():
    odd = np.array([[0, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0], [1e30, -1, 0], [1e-9, 0, 0]])
    assert record_cells(odd).tolist()[:2] == [NO_CELL, NO_CELL]
    assert (record_cells(odd)[2:4] >= 0).all()
    assert record_cells(odd)[4] == NO_CELL


@settings(max_examples=50)
@given(counts=counts_of, total=st.integers(0, 10**12), rate=st.floats(1e-3, 0.99), spread=st.floats(1.01, 50))
def test_rates_stay_within_what_is_charged_whatever_the_counts(counts, total, rate, spread):
    """And what is asked of the sizes that fit the counts is not above the public share."""
    sample = NoisyClusters(rate, spread=spread)
    noisy = np.array(counts, dtype=np.int64)
    rates = sample.rates_of(noisy, total)
    assert (rates >= float(sample.low)).all()
    assert (rates <= sample.rate).all()
    sizes = fitted_sizes(noisy, total, sample.counts_event.noise_scale)
    assert sizes.sum() == pytest.approx(total, rel=1e-6, abs=1e-3)
    assert rates @ sizes <= sample.rate / spread * total * (1 + 1e-6) + 1e-3
    order = np.argsort(noisy, kind="stable")
    assert (np.diff(rates[order]) <= 0).all()


def test_the_few_are_asked_about_as_often_as_they_may_be():
    sample = NoisyClusters(0.4, epsilon=2.0, spread=4.0)
    asked = np.concatenate([sample.query(X, ROWS, None, 0, SimulationRandom(seed)) for seed in range(40)])
    few = (asked >= 3000).mean()
    assert len(asked) / 40 == pytest.approx(0.1 * len(X), rel=0.05)
    assert (asked >= 3000).sum() / 40 == pytest.approx(0.4 * 60, rel=0.15)
    assert few > 2.5 * 60 / len(X)


def test_thinning_a_block_draws_what_its_own_coins_would():
    sample = NoisyClusters(0.4, epsilon=2.0, spread=4.0)
    rates = sample.rates_of(sample.counted(X, ListedRows(ROWS), SimulationRandom(1)), len(X))
    rng = SimulationRandom(5)
    sizes = np.zeros(2)
    for _ in range(40):
        block = np.flatnonzero(rng.random(ROWS.shape) < 0.4)
        kept = sample.thin(X, block, rates, rng)
        assert np.isin(kept, block).all()
        sizes += np.array([(kept < 3000).sum(), (kept >= 3000).sum()]) / 40
    expected = sample.of_rows(X, ROWS, rates)
    assert sizes == pytest.approx([expected[:3000].sum(), expected[3000:].sum()], rel=0.1)


def test_one_record_moves_one_count_by_one():
    """The counts without their noise, of ten thousand neighbours: the sensitivity that is charged."""
    cells = record_cells(X)
    whole = np.bincount(cells, minlength=CELLS)
    for row in range(0, len(X), 11):
        emptied = X[row : row + 1] * 0
        moved = whole - np.bincount(np.delete(cells, row), minlength=CELLS)
        assert np.abs(moved).sum() == 1
        assert record_cells(emptied).tolist() == [NO_CELL]


def test_counts_and_release_together_stay_within_both_charges():
    """The joint law of the counts of two cells and of a randomised response on the sample, outcome by outcome.

    A second reckoning of the whole price, which knows neither event: nothing but the definition of the loss.
    """
    sample = NoisyClusters(0.5, epsilon=0.3, spread=2.0)
    inner = 1.2
    kept = math.exp(inner) / (1 + math.exp(inner))
    training = MinibatchSgdEvent(noise_scale=1 / inner, dimension=1)
    grid = np.arange(-60, 80)

    def law(count):
        noise = np.exp(-np.abs(grid - count) / sample.counts_event.noise_scale)
        noise *= math.tanh(0.5 / sample.counts_event.noise_scale)
        return noise

    others = 100 * np.arange(CELLS)
    worst = 0.0
    for noisy, present, absent in zip(grid, law(3), law(2), strict=True):
        rate = sample.rates_of(np.concatenate([[noisy], others[1:]]), int(others.sum()))[0]
        for told in (kept, 1 - kept):
            here = present * ((1 - rate) * (1 - kept if told == kept else kept) + rate * told)
            there = absent * (1 - kept if told == kept else kept)
            worst = max(worst, abs(math.log(here / there)))
    charged = sample.counts_event.cost().epsilon + sample.release_event(training).cost().epsilon
    assert 0.9 * charged < worst <= charged


def test_the_release_is_charged_at_the_largest_rate_and_the_counts_beside_it():
    training = MinibatchSgdEvent(1.0, 5)
    sample = NoisyClusters(0.25, epsilon=0.05)
    assert sample.release_event(training) == SecretSample(0.25).release_event(training)
    assert sample.event_for(pool_size=9, picks=1, series="single").cost().epsilon == pytest.approx(0.05, rel=1e-12)
    assert sample.counts_event.cost().epsilon <= 0.05


def test_what_a_project_declares_is_opened_planned_and_refused():
    settings = {"pool_epsilon": 2.0, "pool_delta": 5e-6, "oracle": "trusted", "arrival": "pool"}
    plain, spread = SecretBlocks(), SecretBlocks(cluster_epsilon=0.05)
    assert plain.opening(settings) is None
    assert spread.opening(settings) == NoisyClusters(0.1, epsilon=0.05).counts_event
    less = spread.planned(settings)["training_epsilon"]
    assert less == pytest.approx(plain.planned(settings | {"pool_epsilon": 1.95})["training_epsilon"], rel=1e-12)
    assert less < plain.planned(settings)["training_epsilon"]
    dear = {"selection": "secret_sample", "selection_rate": 0.1, "cluster_epsilon": 2.5}
    assert "pool_epsilon" in SecretBlocks.broken_by(settings | dear)
    assert "cluster_spread" in SecretBlocks.broken_by(settings | dear | {"cluster_spread": 1.0})


@pytest.mark.parametrize("values", [{"spread": 1.0}, {"spread": math.inf}, {"epsilon": 0.0}, {"rate": 1.0}])
def test_refusals(values):
    with pytest.raises(ValueError, match="got"):
        NoisyClusters(**values)
