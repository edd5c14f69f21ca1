"""Private choice of the records that a round asks about."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import timedelta

import numpy as np
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now
from numpy.typing import NDArray

from annotation.budget.label_budget import questions_left
from annotation.models import Dataset, Oracle, Project, WorkState
from annotation.questions.services import queue
from annotation.work.services import jobs
from annotation.work.services.attempts import finish_work
from learner.errors import BlockNotOpen, NothingToAsk
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round, SecretDraw
from learner.models.rounds import PART_ROWS
from learner.pools import answers, attempts, features, prices, records, selectors, starts
from learner.pools.attempts import CHOICE_PAID, QUESTIONS, SCORES, Progress
from learner.pools.configuration import blocks_choice_of, featurizer_of, strategy_of
from learner.pools.keys import CHOOSE_BLOCK, CHOOSE_QUESTIONS
from learner.pools.records import Examples
from learner.rounds import next_step
from learner.rounds.next_step import Step
from learner.rounds.services import randomization, suggestions
from learner.rounds.services.watching import watched
from learner.strategies.base import QueryStrategy
from learner.strategies.blocks import draw_blocks
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from learner.strategies.random import RandomChoice
from learner.strategies.rows import ListedRows
from learner.strategies.uncertainty import Uncertainty
from privacy.accounting.event import Event
from privacy.errors import BudgetExceeded
from privacy.ledger import services as ledger
from privacy.ledger.faults import fault_point
from privacy.ledger.models import LedgerEntry
from privacy.ledger.selectors import can_pay
from privacy.mechanisms.randomness import SecureRandom
from privacy.wording import in_english


def reserve_choice(chosen: Round, *, event: Event, purpose: str) -> LedgerEntry:
    """Hold what an attempt to choose questions costs, durably, before anything private is read."""
    account = chosen.project.pool_account
    wanted = [event, selectors.training_event(chosen.project)]
    if not can_pay(account, wanted):
        raise BudgetExceeded(next_step.too_little_words(account, Step.ASK))
    return attempts.reserve_attempt(chosen, account=account, event=event, purpose=purpose)


def scoring_model(chosen: Round) -> LinearModel | None:
    if chosen.model is not None:
        return LinearModel.from_json(chosen.model.weights)
    if not strategy_of(chosen.project, chosen.strategy).needs_model:
        return None
    model = starts.start_model(chosen.project)
    if model is None and chosen.project.oracle == Oracle.TRUSTED:
        raise NothingToAsk(in_english("There is no model left to score this round."))
    return model


def repeat_doubted(chosen: Round, progress: Progress) -> None:
    """Open the questions the model doubts; what was answered to them is looked at by nobody."""
    project = chosen.project
    settled = answers.settled_questions(project)
    examples = records.gate_examples(project, settled)
    chooser, model = strategy_of(project, chosen.strategy), scoring_model(chosen)
    if model is None or not len(examples.ids):
        raise NothingToAsk("There is nothing left to ask.")
    assert isinstance(chooser, Uncertainty)
    progress.begin(SCORES)
    X = features.stacked_features(examples.datasets, dimension=featurizer_of(project).dimension)
    rows = watched(ListedRows(examples.rows), X, progress)
    ids = examples.ids[chooser.most_uncertain(X, rows, model, chosen.requested)]
    progress.begin(QUESTIONS)
    fault_point("round_chosen")
    with transaction.atomic():
        queue.open_for_more_answers(project=project, round_number=chosen.number, query_ids=ids.tolist())
        entries = attempts.record_free_use(
            chosen,
            gates=records.gate_entries(examples.datasets),
            operation="choice of questions to ask again",
            purpose=CHOOSE_QUESTIONS,
            output_digest=attempts.asked_digest(chosen, ids),
        )
        finish_work(row=chosen, committed_entry=entries[-1], selected=len(ids))
        jobs.send_project_changed(project.pk)
        fault_point("round_finished")


def spread_questions(chosen: Round, strategy: ClusteredUncertainty, candidates: Examples) -> NDArray[np.int64]:
    """Return the questions of a round within what the answers may cost; gate output, releases and words choose them."""
    project = chosen.project
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension)
    affordable = questions_left(project)
    wanted = chosen.requested if affordable is None else min(chosen.requested, affordable)
    model = _model_of(project, chosen.model, X)
    counts = answers.gate_counts(project)
    asked = np.setdiff1d(np.arange(len(X)), candidates.rows)
    rows = strategy.query(X, candidates.rows, model, wanted, SecureRandom(), counts=counts, asked=asked)
    order = np.argsort(candidates.rows)
    return candidates.ids[order[np.searchsorted(candidates.rows, rows, sorter=order)]]


def _model_of(project: Project, release: ModelRelease | None, X: NDArray[np.float32]) -> LinearModel | None:
    if release is not None:
        return LinearModel.from_json(release.weights)
    if answers.learns_from_questions(project):
        return randomization.prior_of(project, X)
    return starts.start_model(project)


BLANK = np.empty((0, 0), dtype=np.float32)


def leading_texts(
    chosen: Round, strategy: QueryStrategy, candidates: Examples, progress: Progress
) -> NDArray[np.int64]:
    """Return what a round asks within the budget: what the model it was opened with doubts most, or by chance."""
    project = chosen.project
    affordable = questions_left(project)
    wanted = chosen.requested if affordable is None else min(chosen.requested, affordable)
    model = scoring_model(chosen)
    if not isinstance(strategy, Uncertainty) or model is None:
        places = ListedRows(np.arange(len(candidates.ids), dtype=np.int64))
        return candidates.ids[RandomChoice().choose(BLANK, places, None, wanted, SecureRandom())]
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension)
    rows = watched(ListedRows(candidates.rows), X, progress)
    return candidates.ids[strategy.most_uncertain(X, rows, model, wanted)]


def start_block(project: Project) -> Round:
    """Open the next block; all that is written here is public."""
    last = Round.objects.filter(project=project).aggregate(number=Max("number"))["number"] or 0
    block = records.next_block(project) or 0
    started = Round.objects.create(
        project=project, number=last + 1, strategy=project.selection, block=block, requested=records.pool_size(project)
    )
    jobs.send_on_commit()
    return started


def ask_block(chosen: Round, progress: Progress) -> None:
    """Draw the coins that are missing, open the questions of the block, and set the time at which it closes."""
    project = chosen.project
    block = chosen.block or 0
    event = prices.round_event(chosen, left=0)
    progress.begin(CHOICE_PAID)
    reservation = reserve_choice(chosen, event=event, purpose=CHOOSE_BLOCK)
    candidates = records.open_records(project)
    rng = SecureRandom()
    # How long the coins and the questions of a secret block take is not cut any finer.
    progress.begin(QUESTIONS)
    with transaction.atomic():
        if not candidates.datasets:
            raise NothingToAsk("There is no pool.")
        drawn = candidates.rows.only(_drawn_rows(candidates.datasets, block, rng))
        rows = np.asarray(rng.permutation(drawn), dtype=np.int64)
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
        jobs.send_project_changed(project.pk)
        fault_point("round_finished")


def close_block(*, project: Project) -> Round:
    """Close the open block now instead of at its time; what nobody has agreed on by then counts as empty."""
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        block = records.open_block(project)
        if block is None:
            raise BlockNotOpen(in_english("There is no open block to close."))
        Round.objects.filter(pk=block.pk, state=WorkState.DONE).update(closes_at=Now())
        jobs.send_project_changed(project.pk)
    block.refresh_from_db()
    return block


def _drawn_rows(datasets: Sequence[Dataset], block: int, rng: SecureRandom) -> NDArray[np.int64]:
    """Return the rows of the stacked uploads that the coins have put into a block; one part's coins at a time."""
    first, drawn = 0, [records.NO_ROWS]
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
