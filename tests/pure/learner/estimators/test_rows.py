"""Ranges of rows: every row once, in order, on as many threads as pay off, and the BLAS as it was afterwards."""

import itertools
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from learner.estimators import rows
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
    before = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    together = threading.Barrier(2, timeout=30)

    def work(part):
        together.wait()
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    assert all(set(threads) == {1} for threads in over_rows(work, 20_000))
    assert {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()} == before


def test_errors_reach_the_caller(monkeypatch):
    monkeypatch.setattr(rows, "_cores", lambda: 2)

    def work(part):
        raise np.linalg.LinAlgError(f"rows {part.start} to {part.stop}")

    with pytest.raises(np.linalg.LinAlgError, match="rows 0 to 10000"):
        over_rows(work, 20_000)
