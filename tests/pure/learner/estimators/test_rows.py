import itertools
import threading
from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from learner.estimators import rows
from learner.estimators.linear import largest_norm
from learner.estimators.rows import over_rows


@pytest.mark.parametrize("n_rows", [0, 1, 8_192, 16_384, 100_001])
@pytest.mark.parametrize("cores", [1, 2, 3, 64])
def test_every_row_is_covered_once_in_order(monkeypatch, n_rows, cores):
    monkeypatch.setattr(rows, "_cores", lambda: cores)
    ranges = over_rows(lambda part: (part.start, part.stop), n_rows)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_rows
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))
    assert len(ranges) <= max(1, min(cores, rows.MOST_THREADS, n_rows // rows.LEAST_ROWS_PER_THREAD))


def test_ranges_run_side_by_side_with_one_blas_thread_each(monkeypatch):
    monkeypatch.setattr(rows, "_cores", lambda: 2)
    together = threading.Barrier(2, timeout=120)

    def work(part):
        together.wait()
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(limits=2, user_api="blas"):
        before = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
        assert 2 in before.values()
        assert all(set(threads) == {1} for threads in over_rows(work, 20_000))
        assert {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()} == before


def test_errors_reach_the_caller(monkeypatch):
    monkeypatch.setattr(rows, "_cores", lambda: 2)

    def work(part):
        raise np.linalg.LinAlgError(f"rows {part.start} to {part.stop}")

    with pytest.raises(np.linalg.LinAlgError, match="rows 0 to 10000"):
        over_rows(work, 20_000)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("width", [np.float32, np.float64])
def test_no_row_is_longer_than_the_largest_norm_says(monkeypatch, width, cores):
    """Against exact arithmetic, wherever the longest row stands."""
    monkeypatch.setattr(rows, "_cores", lambda: cores)
    X = np.random.default_rng(20_251_123).normal(size=(20_000, 7)).astype(width)
    for place in (0, 4_095, 9_999, 10_000, 19_999):
        longer = X.copy()
        longer[place] *= 10
        exact = sum(Fraction(float(value)) ** 2 for value in longer[place])
        stated = Fraction(largest_norm(longer))
        assert exact <= stated**2 <= exact * (1 + Fraction(1, 10**13))
