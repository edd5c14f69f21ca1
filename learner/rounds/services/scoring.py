"""What a round scores its candidates with, and how far it is with them."""

import numpy as np
from numpy.typing import NDArray

from annotation.models import Oracle
from learner.configuration.pool import strategy_of
from learner.errors import NothingToAsk
from learner.linear_model import LinearModel
from learner.models import Round
from learner.pools.services import features
from learner.starts.services import labelled_examples
from learner.strategies.rows import Rows, WatchedRows
from learner.work.services.progress import Progress

# One process scores so many in a second or less.
REPORTED_ROWS = 1_000_000


def scoring_model(chosen: Round) -> LinearModel | None:
    """Return the release the round was opened with, or the start's model where there was none."""
    if chosen.model is not None:
        return LinearModel.from_json(chosen.model.weights)
    if not strategy_of(chosen.project, chosen.strategy).needs_model:
        return None
    model = labelled_examples.start_model(chosen.project)
    if model is None and chosen.project.oracle == Oracle.TRUSTED:
        raise NothingToAsk("There is no model any more that could score this round.")
    return model


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
