"""The loop: a project's next step, and one private choice of questions."""

from collections.abc import Sequence

import numpy as np
from django.db import transaction
from django.db.models import Max
from numpy.typing import NDArray

from annotation.models import UNFINISHED, Arrival, Consensus, Oracle, Project, Selection
from annotation.questions.services import labels, queue
from annotation.work.services import broker, jobs, looks
from annotation.work.services.attempts import finish_work
from annotation.work.services.sending import send_on_commit
from learner.errors import NothingToAsk, NothingWaits, SharesRefused
from learner.models import Round, SharesReport, Stream, TrainingRun
from learner.pools import answers, attempts, features, prices, records, selectors
from learner.pools import stream_answers as stream_selectors
from learner.pools.attempts import CHOICE_PAID, CHOOSING, FEATURES, QUESTIONS, SCORES, Progress
from learner.pools.configuration import featurizer_of, strategy_choice_of, strategy_of
from learner.pools.keys import (
    CHECK_RELEASE_TASK,
    CHOOSE_QUESTIONS,
    EVALUATE_RELEASE_TASK,
    RUN_STREAM_TASK,
)
from learner.pools.records import Candidates, Examples
from learner.releases import evaluations
from learner.releases.services import checks
from learner.rounds import failures, next_step
from learner.rounds.next_step import ProjectStatus, Step
from learner.rounds.services import randomization, selection, suggestions, watching
from learner.rounds.services import streams as rounds_streams
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from privacy.ledger import services as ledger
from privacy.ledger.faults import fault_point
from privacy.ledger.models import LedgerEntry
from privacy.mechanisms.randomness import SecureRandom
from privacy.wording import as_message

NOTHING_LEFT = as_message("There is nothing left to ask.")
ANSWERS_SPENT = as_message("The annotation budget is spent; a manager can raise it.")


def advance_project(*, project_id: int) -> ProjectStatus:
    """Take the project's next step, if one is due, and return where it stands; any worker may call this at any time."""
    if Project.objects.filter(pk=project_id, arrival=Arrival.STREAM).exists():
        if _stream_moves(project_id):
            send_on_commit(RUN_STREAM_TASK, project_id=project_id)
        return next_step.project_status(Project.objects.select_related("pool_account").get(pk=project_id))
    with transaction.atomic():
        # One at a time for each project: the second caller sees what the first one started.
        project = Project.objects.select_for_update(no_key=True).get(pk=project_id)
        looks.begin_look(project_id)
        status = next_step.project_status(project)
        if status.step == Step.LABELLING and (block := records.open_block(project)) is not None:
            looks.look_at([project_id], at=block.closes_at)
        if status.step == Step.TRAIN and _counts_shares(project):
            # Both continue the series of secret blocks, and a step of it is paid for once.
            return status
        if status.step in (Step.ASK, Step.TRAIN) and jobs.is_busy():
            # The next beat asks again; what waits already comes first.
            looks.look_at([project_id])
            return status
        if status.step == Step.ASK:
            _start_round(project)
        elif status.step == Step.TRAIN:
            _start_training(project)
        else:
            return status
        return next_step.project_status(project)


def _stream_moves(project_id: int) -> bool:
    """Say whether a stream has something to do; it is looked at until it has not, and once its next batch closes."""
    project = Project.objects.select_related("pool_account").get(pk=project_id)
    with transaction.atomic():
        looks.begin_look(project_id)
        moves = stream_selectors.has_work(project)
        waits = not moves and stream_selectors.may_move(project)
        closes_at = stream_selectors.next_closing(project) if waits else None
        if moves or closes_at is not None:
            looks.look_at([project_id], at=closes_at)
    return moves


def advance_projects() -> None:
    """Advance every project that is due, and send again what a stream or a release waits for."""
    faults: list[Exception] = []
    moving = []
    for project_id, arrival in looks.due_looks():
        try:
            if arrival != Arrival.STREAM:
                advance_project(project_id=project_id)
            elif _stream_moves(project_id):
                # Several workers keep apart by the stream's own lock.
                moving.append(project_id)
        except Exception as fault:  # noqa: BLE001 - raised below
            looks.put_off_look(project_id)
            faults.append(fault)
    _send_unless_waiting(RUN_STREAM_TASK, "project_id", moving)
    # A canary takes many fits and a test set may be large, so neither keeps the clock's own queue waiting.
    unchecked = checks.unchecked_releases().values_list("pk", flat=True)
    _send_unless_waiting(CHECK_RELEASE_TASK, "release_id", list(unchecked))
    unmeasured = evaluations.unmeasured_releases().values_list("pk", flat=True)
    _send_unless_waiting(EVALUATE_RELEASE_TASK, "release_id", list(unmeasured))
    if faults:
        raise faults[0]


def _send_unless_waiting(task: str, name: str, ids: Sequence[int | str]) -> None:
    """Send a task for each id again, unless the broker holds as many as that already."""
    if broker.may_have_lost(len(ids)):
        for each in ids:
            send_on_commit(task, **{name: each})


def start_anew(*, row: Round | TrainingRun) -> Round | TrainingRun | None:
    """Start another round or training where the newest one was cancelled or failed, None where there is none."""
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=row.project_id)
        if not failures.may_start_anew(project, row):
            return None
        if isinstance(row, Round):
            return _start_round(project)
        if project.arrival == Arrival.STREAM:
            return rounds_streams.start_release(project=project, stream=Stream.objects.get(project=project))
        return _start_training(project)


def train_on_few(*, project: Project) -> TrainingRun:
    """Train on fewer questions than are declared for a model, at a manager's word; nothing else begins that."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if next_step.project_status(locked).step != Step.FEW_LABELS:
            raise NothingWaits("No training is waiting for a decision any more.")
        return _start_training(locked)


def _start_round(project: Project) -> Round:
    if records.labels_in_secret(project):
        return selection.start_block(project)
    started = prices.coming_round(project)
    last = Round.objects.filter(project=project).aggregate(number=Max("number"))["number"] or 0
    started.number = last + 1
    started.model = None if started.strategy == Selection.RANDOM else selectors.newest_release(project)
    started.save()
    jobs.send_on_commit()
    return started


def _counts_shares(project: Project) -> bool:
    return SharesReport.objects.filter(project=project, state__in=UNFINISHED).exists()


def _start_training(project: Project) -> TrainingRun:
    if _counts_shares(project):
        raise SharesRefused(as_message("A training or measurement is running; try again later."))
    agreed = Consensus.objects.filter(project=project)
    newest = selectors.releases_of(project).first()
    counts = selectors.question_counts(project)
    block = records.current_block(project) if records.labels_in_secret(project) else None
    if block is not None:
        labels.withdraw_questions(project=project, round_number=block.number)
        agreed = agreed.filter(query__round_number=block.number)
    labels_used, unagreed = agreed.count(), counts.unagreed
    if answers.randomizes_answers(project):
        # Something is said of every question whose answers are in, whether they agree or not.
        labels_used, unagreed = labels_used + counts.disputed, unagreed - counts.disputed
    # A secret block may have no label at all; its model is trained all the same.
    last_consensus_id = agreed.aggregate(last=Max("pk"))["last"] or project.labels_used_through
    labels.mark_labels_used(project=project, last_consensus_id=last_consensus_id)
    project.labels_used_through = last_consensus_id
    started = TrainingRun.objects.create(
        project=project,
        version=(newest.version if newest else 0) + 1,
        block=block,
        last_consensus_id=last_consensus_id,
        labels_used=labels_used,
        unagreed=unagreed,
    )
    jobs.send_on_commit()
    return started


def run_round(*, round_id: int) -> None:
    """Choose the questions of a round and open them, in one transaction with what the choice cost."""
    chosen = Round.objects.select_related("project__pool_account", "model").get(pk=round_id)
    with attempts.charged_attempt(chosen) as lease:
        if lease is None:
            return
        progress = Progress(lease, CHOOSING)
        if chosen.block is not None:
            selection.ask_block(chosen, progress)
            return
        if not chosen.requested:
            raise NothingToAsk(ANSWERS_SPENT)
        if chosen.project.oracle == Oracle.CROWD:
            # Before anybody answers: what is asked next may then hang on what was said of the answers before.
            randomization.pay_for_answers(chosen.project)
        if chosen.strategy == Selection.REPEAT_VOTES:
            selection.repeat_doubted(chosen, progress)
            return
        if chosen.project.oracle == Oracle.CROWD:
            _ask_crowd(chosen, progress)
        else:
            _ask_trusted(chosen, progress)


def _ask_trusted(chosen: Round, progress: Progress) -> None:
    project = chosen.project
    candidates = records.open_records(project)
    pool_size = len(candidates.rows)
    if not pool_size:
        raise NothingToAsk(NOTHING_LEFT)
    event = prices.round_event(chosen, left=pool_size)
    if strategy_of(project, chosen.strategy).needs_model:
        features.find_room(project)
    progress.begin(CHOICE_PAID)
    reservation = selection.reserve_choice(chosen, event=event, purpose=CHOOSE_QUESTIONS)
    rows = _choose(chosen, candidates, progress)
    progress.begin(QUESTIONS)
    ids = candidates.ids_of(rows)
    fault_point("round_chosen")
    with transaction.atomic():
        queue.open_queries(project=project, round_number=chosen.number, record_ids=ids)
        suggestions.suggest_for_round(chosen, Examples(ids, rows, candidates.datasets))
        entry = ledger.commit(reservation=reservation, output_digest=attempts.asked_digest(chosen, ids))
        _finish(chosen, entry, selected=len(ids))


def _ask_crowd(chosen: Round, progress: Progress) -> None:
    project = chosen.project
    candidates = records.waiting_texts(project)
    if not len(candidates.ids):
        raise NothingToAsk(NOTHING_LEFT)
    gates = records.gate_entries(candidates.datasets)
    progress.begin(SCORES)
    strategy = strategy_of(project, chosen.strategy)
    if isinstance(strategy, ClusteredUncertainty):
        ids = selection.spread_questions(chosen, strategy, candidates)
    else:
        ids = selection.leading_texts(chosen, strategy, candidates, progress)
    if not ids.size:
        raise NothingToAsk(ANSWERS_SPENT)
    progress.begin(QUESTIONS)
    fault_point("round_chosen")
    with transaction.atomic():
        queue.open_queries(project=project, round_number=chosen.number, query_ids=ids)
        suggestions.suggest_for_round(chosen, suggestions.only(candidates, ids))
        entries = attempts.record_free_use(
            chosen,
            gates=gates,
            operation=strategy_choice_of(project, chosen.strategy).label,
            purpose=CHOOSE_QUESTIONS,
            output_digest=attempts.asked_digest(chosen, ids),
        )
        _finish(chosen, entries[-1], selected=len(ids))


def _choose(chosen: Round, candidates: Candidates, progress: Progress) -> NDArray[np.int64]:
    strategy = strategy_of(chosen.project, chosen.strategy)
    if not strategy.needs_model:
        # Rows without a column take no room, and a strategy may look whether its candidates are among them.
        blank = np.empty((candidates.rows.total, 0), dtype=np.float32)
        return strategy.choose(blank, candidates.rows, None, chosen.requested, SecureRandom())
    model = selection.scoring_model(chosen)
    progress.begin(FEATURES)
    dimension = featurizer_of(chosen.project).dimension
    X = features.stacked_features(candidates.datasets, dimension=dimension, tell=progress.tell)
    progress.begin(SCORES)
    rows = watching.watched(candidates.rows, X, progress)
    return strategy.choose(X, rows, model, chosen.requested, SecureRandom())


def _finish(chosen: Round, entry: LedgerEntry, *, selected: int) -> None:
    finish_work(row=chosen, committed_entry=entry, selected=selected)
    jobs.send_project_changed(chosen.project_id)
    fault_point("round_finished")
