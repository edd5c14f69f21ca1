"""Rounds of a screen: coins decide about records one after another, and how often each was looked at is kept.

The first round of a series pays for all looks at every record, the others are free. An attempt that died may have shown
its coins, so the next one opens a series of its own.
"""

import numpy as np
from django.conf import settings
from django.db import transaction
from numpy.typing import NDArray

from annotation.questions.services import queue
from annotation.work.services.attempts import finish_work
from annotation.work.services.sending import send_on_commit
from learner.configuration.pool import featurizer_of
from learner.errors import NothingToAsk
from learner.linear_model import LinearModel
from learner.models import Round, ScreenLooks
from learner.models.rounds import PART_ROWS
from learner.pools import selectors as pool_selectors
from learner.pools.selectors import Candidates, Examples
from learner.pools.services import disk_space, features
from learner.rounds.services import reserving, suggestions
from learner.selectors import round_prices
from learner.strategies.rows import OpenRows
from learner.strategies.screen import Screen, note_looks
from learner.work.purposes import CHOOSE_QUESTIONS
from learner.work.services import attempts
from learner.work.services.progress import CHOICE_PAID, FEATURES, QUESTIONS, SCORES, Progress
from privacy.mechanisms.randomness import SecureRandom
from privacy.services import ledger
from privacy.services.faults import fault_point


def ask_screened(chosen: Round, screen: Screen, model: LinearModel, progress: Progress) -> None:
    """Reserve, flip the coins of records that may still be looked at, and store the choice with the looks it took."""
    project = chosen.project
    candidates = pool_selectors.open_records(project)
    looks = pool_selectors.looks_at(candidates.datasets)
    fresh = _fresh(candidates, looks, screen)
    pool_size = int(np.count_nonzero(fresh))
    if not pool_size:
        _store_looks(candidates, looks, fresh)
        raise NothingToAsk("Every record was looked at as often as it may be.")
    event = round_prices.round_event(chosen, left=pool_size)
    disk_space.find_room(project)
    progress.begin(CHOICE_PAID)
    reservation = reserving.reserve_choice(chosen, event=event, purpose=CHOOSE_QUESTIONS)
    progress.begin(FEATURES)
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension, tell=progress.tell)
    # How many records the coins look at until enough are chosen is not public, so it is one step whole.
    progress.begin(SCORES)
    selected = [pool_selectors.NO_ROWS]
    # Rows that are open are drawn from all by chance, so no list of them is made.
    everything = OpenRows(len(looks), pool_selectors.NO_ROWS)
    for screening in screen.examine(features.scattered(X), everything, fresh, model, chosen.requested, SecureRandom()):
        note_looks(looks, screening, exposures=screen.exposures)
        selected.append(screening.selected)
        progress.check()
    rows = np.concatenate(selected)
    ids = candidates.ids_of(rows)
    progress.begin(QUESTIONS)
    fault_point("round_chosen")
    with transaction.atomic():
        queue.open_queries(project=project, round_number=chosen.number, record_ids=ids)
        suggestions.suggest_for_round(chosen, Examples(ids, rows, candidates.datasets))
        entry = ledger.commit(reservation=reservation, output_digest=attempts.asked_digest(chosen, ids))
        _store_looks(candidates, looks, _fresh(candidates, looks, screen))
        finish_work(row=chosen, committed_entry=entry, selected=len(ids))
        send_on_commit(settings.PROJECT_CHANGED_TASK, project_id=project.pk)
        fault_point("round_finished")


def _fresh(candidates: Candidates, looks: NDArray[np.uint8], screen: Screen) -> NDArray[np.bool_]:
    """Say of each row whether nobody was asked about it and it may still be looked at."""
    fresh = candidates.rows.mask()
    fresh &= looks < screen.exposures
    return fresh


def _store_looks(candidates: Candidates, looks: NDArray[np.uint8], fresh: NDArray[np.bool_]) -> None:
    """Keep the looks of each upload, part by part, and how many of its records may still be looked at."""
    first = 0
    for dataset in candidates.datasets:
        for start in range(0, dataset.row_count, PART_ROWS):
            part = slice(first + start, first + min(start + PART_ROWS, dataset.row_count))
            values = {"looks": looks[part].tobytes(), "left": int(np.count_nonzero(fresh[part]))}
            ScreenLooks.objects.update_or_create(dataset=dataset, first_row=start, defaults=values)
        first += dataset.row_count
