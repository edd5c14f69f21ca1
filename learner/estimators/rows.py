"""Work over ranges of rows on all cores: one thread and one wait per core, whatever the BLAS would have done."""

import functools
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")
# Below this many rows starting threads costs more than it saves.
LEAST_ROWS_PER_THREAD = 8192
MOST_THREADS = 8


def over_rows(work: Callable[[slice], Result], n_rows: int) -> list[Result]:
    """Return the results of `work` on consecutive ranges that cover all rows, in order.

    A BLAS splits every call among threads that wait for each other. On a machine with other work
    each such wait can last a time slice, and a pass over blocks of rows has hundreds. Here the
    BLAS keeps to one thread, and the ranges run side by side.
    """
    n_threads = min(_cores(), MOST_THREADS, n_rows // LEAST_ROWS_PER_THREAD)
    if n_threads < 2:
        return [work(slice(0, n_rows))]
    edges = [n_rows * index // n_threads for index in range(n_threads + 1)]
    ranges = [slice(start, stop) for start, stop in itertools.pairwise(edges)]
    with one_thread_per_call(), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, ranges))


def one_thread_per_call() -> AbstractContextManager[object]:
    """Keep the BLAS to the calling thread within a block: products this small are slower shared than alone."""
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@functools.cache
def _libraries() -> ThreadpoolController:
    # Finding the loaded libraries takes milliseconds, setting their threads microseconds.
    return ThreadpoolController()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
