"""A large pool scored by many workers: ranges of its candidates, each scored in the blocks that one worker would use.

Whoever runs the round scores parts as well, and others help as they are free. Scoring takes no coin: what is secret
about a choice is drawn once, by whoever runs the round, over all scores. So neither the number of parts nor a part that
is scored twice changes a bit of the result or of its law.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
from celery import current_app
from django.db import transaction
from numpy.typing import NDArray

from annotation.models import Dataset, Oracle, WorkState
from learner.configuration.pool import featurizer_of, strategy_of
from learner.errors import NothingToAsk
from learner.linear_model import LinearModel
from learner.models import Round
from learner.models.parts import ScorePart
from learner.pools.services import features
from learner.starts.services import warm_start
from learner.strategies.scoring import RowScorer
from learner.work.services.progress import Tell, silent

# One process scores so many in a second; handing fewer around costs more than it saves.
PART_ROWS = 1_000_000
LOOK_AGAIN_SECONDS = 0.05
SCORE_TASK = "learner.tasks.score_part_task"
MOST_HELPERS = 64
Check = Callable[[], None]


def score_rows(
    chosen: Round,
    strategy: RowScorer,
    datasets: Sequence[Dataset],
    rows: NDArray[np.int64],
    model: LinearModel,
    check: Check,
    tell: Tell = silent,
) -> NDArray[np.float64]:
    """Return what the strategy makes of each row, shape (n, width), whoever made it; `tell` hears of parts."""
    X = features.stacked_features(datasets, dimension=featurizer_of(chosen.project).dimension)
    step = strategy.block_rows(X.shape[1], model)
    step *= max(1, PART_ROWS // step)
    if len(rows) < 2 * step:
        return strategy.row_scores(X, rows, model)
    ScorePart.objects.filter(round=chosen).delete()
    starts = range(0, len(rows), step)
    with transaction.atomic():
        for number, start in enumerate(starts):
            ScorePart.objects.create(
                round=chosen,
                number=number,
                datasets=[dataset.pk for dataset in datasets],
                runs=runs_of(rows[start : start + step]),
            )
        helping = current_app.signature(SCORE_TASK, kwargs={"round_id": chosen.pk})
        for _ in range(min(MOST_HELPERS, len(starts) - 1)):
            transaction.on_commit(helping.apply_async, robust=True)
    parts = ScorePart.objects.filter(round=chosen)
    while left := parts.filter(scores=None).count():
        check()
        tell(len(starts) - left, len(starts))
        if not score_part(round_id=chosen.pk):
            time.sleep(LOOK_AGAIN_SECONDS)
    return _put_together(chosen, len(rows))


def score_part(*, round_id: int) -> bool:
    """Score a part that nobody holds; false where none is left or the round has ended."""
    free = ScorePart.objects.filter(round=round_id, round__state=WorkState.RUNNING, scores=None)
    with transaction.atomic():
        # The lock lasts while the part is scored, and ends with its worker.
        part = (
            free.select_for_update(of=("self",), skip_locked=True)
            .select_related("round__project__pool_account", "round__model")
            .order_by("number")
            .first()
        )
        if part is None:
            return False
        strategy, model = strategy_of(part.round.project, part.round.strategy), scoring_model(part.round)
        if not isinstance(strategy, RowScorer) or model is None:
            raise TypeError(f"strategy {strategy.name} scores no rows")
        stored = {dataset.pk: dataset for dataset in Dataset.objects.filter(pk__in=part.datasets)}
        datasets = [stored[each] for each in part.datasets]
        X = features.stacked_features(datasets, dimension=featurizer_of(part.round.project).dimension)
        rows = rows_of(part.runs)
        part.scores = np.ascontiguousarray(strategy.row_scores(X, rows, model), dtype="<f8").tobytes()
        part.save(update_fields=["scores"])
    return True


def help_scoring(*, round_id: int) -> None:
    """Score parts until none is free."""
    while score_part(round_id=round_id):
        pass


def forget_abandoned() -> int:
    """Delete what rounds left that ended without all their scores; return how many parts those were."""
    return ScorePart.objects.exclude(round__state=WorkState.RUNNING).delete()[0]


def runs_of(rows: NDArray[np.int64]) -> bytes:
    """Return rows as the first and the length of each run of consecutive ones: few, as most of a pool is not asked."""
    firsts = np.flatnonzero(np.diff(rows, prepend=rows[:1] - 2) != 1)
    lengths = np.diff(firsts, append=len(rows))
    return np.column_stack([rows[firsts], lengths]).astype("<i8").tobytes()


def rows_of(runs: bytes | memoryview) -> NDArray[np.int64]:
    """Return the rows that `runs_of` packed."""
    firsts, lengths = np.frombuffer(runs, dtype="<i8").reshape(-1, 2).T
    ends = np.cumsum(lengths)
    rows: NDArray[np.int64] = np.arange(lengths.sum(), dtype=np.int64) + np.repeat(firsts - (ends - lengths), lengths)
    return rows


def scoring_model(chosen: Round) -> LinearModel | None:
    """Return the release the round was opened with, or the start's model where there was none."""
    if chosen.model is not None:
        return LinearModel.from_json(chosen.model.weights)
    if not strategy_of(chosen.project, chosen.strategy).needs_model:
        return None
    model = warm_start.start_model(chosen.project)
    if model is None and chosen.project.oracle == Oracle.TRUSTED:
        raise NothingToAsk("There is no model any more that could score this round.")
    return model


def _put_together(chosen: Round, count: int) -> NDArray[np.float64]:
    """Return the scores of all parts in order and forget them; `LookupError` where the database has lost some."""
    parts = ScorePart.objects.filter(round=chosen)
    scores: NDArray[np.float64] | None = None
    place = 0
    # One at a time: a cursor over all of them would first be written out whole by the database.
    for number in parts.order_by("number").values_list("number", flat=True):
        runs, values = parts.values_list("runs", "scores").get(number=number)
        if not values:
            break
        size = int(np.frombuffer(runs, dtype="<i8")[1::2].sum())
        part = np.frombuffer(values, dtype="<f8").reshape(size, -1)
        if scores is None:
            scores = np.empty((count, part.shape[1]))
        scores[place : place + size] = part
        place += size
    ScorePart.objects.filter(round=chosen).delete()
    if scores is None or place != count:
        raise LookupError("parts of the scores are gone")
    return scores
