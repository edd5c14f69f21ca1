"""Secret blocks: who is asked is decided by coins that nobody outside sees, and each block gives one model.

A record has one coin in its life. The coins of an upload are drawn with the first block that opens after it and stored
in the transaction that opens the block's questions.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import timedelta

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now
from numpy.typing import NDArray

from annotation.models import Dataset, Project, WorkState
from annotation.questions.services import queue
from annotation.work.services.attempts import finish_work
from annotation.work.services.sending import send_on_commit
from learner import selectors
from learner.configuration.pool import blocks_choice_of, featurizer_of, secret_sample_of
from learner.errors import BlockNotOpen, NothingToAsk
from learner.linear_model import LinearModel
from learner.models import Round, SecretDraw
from learner.models.rounds import PART_ROWS
from learner.pools import secret_selectors
from learner.pools import selectors as pool_selectors
from learner.pools.selectors import Candidates, Examples
from learner.pools.services import disk_space, features
from learner.rounds.services import reserving, suggestions
from learner.selectors import round_prices
from learner.strategies.blocks import draw_blocks
from learner.strategies.noisy_clusters import NoisyClusters
from learner.strategies.rows import ListedRows
from learner.strategies.secret_sample import ScreenedSecretSample, SecretSample
from learner.work.purposes import CHOOSE_BLOCK
from learner.work.services.progress import CHOICE_PAID, FEATURES, QUESTIONS, Progress, silent
from learner.work.task_names import RUN_ROUND_TASK
from privacy.accounting.events import Event
from privacy.mechanisms.randomness import RandomSource, SecureRandom
from privacy.services import ledger
from privacy.services.faults import fault_point

THINNED_ROWS = 65_536


def start_block(project: Project) -> Round:
    """Open the next block; all that is written here is public."""
    last = Round.objects.filter(project=project).aggregate(number=Max("number"))["number"] or 0
    block = secret_selectors.next_block(project) or 0
    started = Round.objects.create(
        project=project,
        number=last + 1,
        strategy=project.selection,
        block=block,
        model=selectors.newest_release(project) if project.screened_blocks and block > 1 else None,
        requested=pool_selectors.pool_size(project),
    )
    send_on_commit(RUN_ROUND_TASK, round_id=started.pk)
    return started


def ask_block(chosen: Round, progress: Progress) -> None:
    """Draw the coins that are missing, open the questions of the block, and set the time at which it closes."""
    project = chosen.project
    block = chosen.block or 0
    sample = secret_sample_of(project, block=block)
    event = round_prices.round_event(chosen, left=0)
    if isinstance(sample, NoisyClusters):
        disk_space.find_room(project)
    progress.begin(CHOICE_PAID)
    reservation = reserving.reserve_choice(chosen, event=event, purpose=CHOOSE_BLOCK)
    candidates = pool_selectors.open_records(project)
    rng = SecureRandom()
    if isinstance(sample, NoisyClusters):
        # Files are written outside of the transaction that opens the questions.
        progress.begin(FEATURES)
        _features_of(project, candidates, progress)
    # How long the coins and the questions of a secret block take is not cut any finer.
    progress.begin(QUESTIONS)
    with transaction.atomic():
        if not candidates.datasets:
            raise NothingToAsk("There is no pool to ask about.")
        drawn = candidates.rows.only(_drawn_rows(candidates.datasets, block, rng))
        rows = np.asarray(rng.permutation(_kept(chosen, candidates, drawn, sample, rng)), dtype=np.int64)
        ids = candidates.ids_of(rows)
        fault_point("round_chosen")
        queue.open_queries(project=project, round_number=chosen.number, record_ids=ids)
        # Over all that could have been drawn: the time it takes is the same whatever the coins said.
        suggestions.suggest_for_round(chosen, Examples(ids, rows, candidates.datasets), applied_to=candidates.rows)
        entry = ledger.commit(reservation=reservation, output_digest=_public_digest(chosen, event))
        finish_work(
            row=chosen,
            committed_entry=entry,
            # Uploads may have come since the block was started.
            requested=candidates.rows.total,
            selected=len(ids),
            closes_at=Now() + timedelta(hours=project.block_hours),
        )
        send_on_commit(settings.PROJECT_CHANGED_TASK, project_id=project.pk)
        fault_point("round_finished")


def close_block(*, project: Project) -> Round:
    """Close the open block now instead of at its time; what nobody has agreed on by then counts as empty.

    The moment shows outside, so it must not depend on the answers; the site cannot check why a manager chooses it.
    """
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        block = secret_selectors.open_block(project)
        if block is None:
            raise BlockNotOpen("There is no open block to close.")
        Round.objects.filter(pk=block.pk, state=WorkState.DONE).update(closes_at=Now())
        send_on_commit(settings.PROJECT_CHANGED_TASK, project_id=project.pk)
    block.refresh_from_db()
    return block


def _kept(
    chosen: Round, candidates: Candidates, drawn: NDArray[np.int64], sample: SecretSample, rng: RandomSource
) -> NDArray[np.int64]:
    """Return which rows a screened or spread block keeps of those its coins have drawn; every other block keeps all."""
    blocks = ListedRows(drawn).blocks(THINNED_ROWS)
    if isinstance(sample, NoisyClusters):
        X = _features_of(chosen.project, candidates)
        rates = sample.rates_of(sample.counted(X, candidates.rows, rng), len(candidates.rows))
        kept = [sample.thin(features.scattered(X), block, rates, rng) for block in blocks]
    elif isinstance(sample, ScreenedSecretSample) and chosen.model is not None:
        X = _features_of(chosen.project, candidates)
        model = LinearModel.from_json(chosen.model.weights)
        kept = [sample.thin(features.scattered(X), block, model, rng) for block in blocks]
    else:
        return drawn
    return np.concatenate([pool_selectors.NO_ROWS, *kept])


def _features_of(project: Project, candidates: Candidates, progress: Progress | None = None) -> NDArray[np.float32]:
    tell = silent if progress is None else progress.tell
    dimension = featurizer_of(project).dimension
    return features.stacked_features(candidates.datasets, dimension=dimension, tell=tell)


def _drawn_rows(datasets: Sequence[Dataset], block: int, rng: SecureRandom) -> NDArray[np.int64]:
    """Return the rows of the stacked uploads that the coins have put into a block; one part's coins at a time."""
    first, drawn = 0, [pool_selectors.NO_ROWS]
    for dataset in datasets:
        parts = _coins_of(dataset, rng)
        drawn += [first + start + np.flatnonzero(coins == block) for start, coins in parts]
        first += dataset.row_count
    return np.concatenate(drawn)


def _coins_of(dataset: Dataset, rng: SecureRandom) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the first row of each part of an upload and the blocks of its rows, drawn now if they never were."""
    parts, rates = SecretDraw.objects.filter(dataset=dataset), blocks_choice_of(dataset.project).block_rates
    known = parts.exists()
    for start in range(0, dataset.row_count, PART_ROWS):
        if known:
            yield start, np.frombuffer(parts.get(first_row=start).blocks, dtype=np.uint8)
        else:
            drawn = draw_blocks(min(PART_ROWS, dataset.row_count - start), rates, rng)
            SecretDraw.objects.create(dataset=dataset, first_row=start, blocks=drawn.tobytes())
            yield start, drawn


def _public_digest(chosen: Round, event: Event) -> str:
    """Digest what may be said of the choice; one of the ids would let anybody with a list of them test guesses."""
    public = {"round": chosen.number, "block": chosen.block, "event": event.to_json()}
    return hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()
