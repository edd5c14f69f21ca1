"""Rows that stop with their attempt and report progress while a strategy reads them."""

import numpy as np
from numpy.typing import NDArray

from learner.pools import features
from learner.pools.attempts import Progress
from learner.strategies.rows import Rows, WatchedRows

# One process scores so many in a second or less.
REPORTED_ROWS = 1_000_000


def watched(rows: Rows, X: NDArray[np.float32], progress: Progress) -> Rows:
    """Return rows that stop with the attempt, tell how many are scored, and leave nothing of `X` in memory."""
    parts = -(-len(rows) // REPORTED_ROWS)
    reported = -1

    def heard(taken: int) -> None:
        nonlocal reported
        features.let_go_of_files(X)
        if taken // REPORTED_ROWS > reported:
            reported = taken // REPORTED_ROWS
            progress.check()
            if parts > 1:
                progress.tell(reported, parts)

    return WatchedRows(rows, heard)
