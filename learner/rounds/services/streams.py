"""Streams: updates and releases as records arrive."""

import logging
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import F, Max
from django.db.models.functions import Now
from numpy.typing import NDArray

from annotation.budget.label_budget import questions_left
from annotation.choices.label_types.base import Teaching
from annotation.choices.policies import BatchState
from annotation.data.selectors import waiting_posts
from annotation.data.services import streams as records
from annotation.models import Consensus, DataKind, Project, Query, QueryState
from annotation.questions.selectors import label_type
from annotation.questions.services import labels
from annotation.work.services import jobs
from annotation.work.services.attempts import Lease
from annotation.work.services.sending import send_on_commit
from learner.errors import NotEnoughLabels
from learner.estimators.streaming import AnsweredBatch, StreamingLinearClassifier
from learner.features.base import Featurizer
from learner.linear_model import LinearModel
from learner.models import Stream, StreamBatch, TrainingRun
from learner.pools import attempts, starts, streaming
from learner.pools import stream_answers as stream_selectors
from learner.pools.configuration import (
    featurizer_of,
    learner_of,
    policy_of,
    records_at_once,
    stream_event,
    stream_screen,
)
from learner.pools.keys import RUN_STREAM_TASK
from learner.pools.streaming import Examination, examine
from learner.releases.services import checks, publishing
from privacy.errors import BudgetExceeded, SimulationNotReleasable
from privacy.ledger.faults import fault_point
from privacy.mechanisms.randomness import SecureRandom
from privacy.wording import in_english


def release_version(run: TrainingRun, lease: Lease) -> None:
    """Publish the weights as they stand; no noise is drawn, so a second attempt publishes the same."""
    project = run.project
    stream = Stream.objects.select_related("entry__account", "entry__parent").get(project=project)
    if stream.learner_state is None or stream.entry is None or stream.batches_used != run.stream_batches:
        raise NotEnoughLabels(in_english("The stream has moved on since."))
    featurizer = featurizer_of(project)
    learner = learner_of(project, featurizer).resume(stream.learner_state)
    if not learner.releasable:
        raise SimulationNotReleasable("The noise was seeded, so the model has no guarantee.")
    model = LinearModel(learner.coef_, learner.intercept_, tuple(project.classes), "softmax")
    paid = stream.entry
    with publishing.staged_version(
        run, model, featurizer, entries=[paid], lease=lease, transcript=learner.transcript_, paid=paid
    ) as staged:
        entry = attempts.record_descent(
            run,
            account=project.pool_account,
            parent=paid,
            operation="a version of the paid stream",
            purpose="release a version of the stream's model",
            output_digest=staged.digest,
        )
        Stream.objects.filter(pk=stream.pk).update(
            batches_released=F("batches_used"), learner_state=learner.begin_version().state()
        )
        candidate = publishing.publish(staged, entry=entry, lineage=[paid, entry])
    checks.check_release(release_id=candidate.pk)


@dataclass(frozen=True, slots=True)
class AgreedAnswer:
    record: Any
    choice: int
    query_id: int
    guess: int | None


def update_stream(*, project: Project, stream: Stream) -> bool:
    """Make every update that is due up to the next release, and start that; return whether anything changed."""
    if stream_selectors.release_is_running(project):
        return False
    if stream_selectors.release_is_due(project, stream):
        start_release(project=project, stream=stream)
        return True
    batches = stream_selectors.due_batches(project, stream)
    if not batches:
        return False
    # Whoever takes an answer back locks the project first, too: what is used here stays as it is.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    numbers = [batch.number for batch in batches]
    _withdraw_unanswered(project, numbers)
    featurizer = featurizer_of(project)
    learner = current_learner(project, stream, featurizer)
    _learn(project, learner, batches, featurizer)
    if learner.simulated_:
        raise SimulationNotReleasable("The noise was seeded, so the model has no guarantee.")
    stream.learner_state = learner.state()
    stream.batches_used = numbers[-1]
    stream.save(update_fields=["learner_state", "batches_used"])
    fault_point("stream_updated")
    return True


def current_learner(project: Project, stream: Stream, featurizer: Featurizer) -> StreamingLinearClassifier:
    learner = learner_of(project, featurizer)
    if stream.learner_state is not None:
        return learner.resume(stream.learner_state)
    first = starts.start_model(project) or starts.stream_start(project, learner)
    if first is None:
        return learner.start(featurizer.dimension)
    return learner.start_from(first.coef, first.intercept)


def start_release(*, project: Project, stream: Stream) -> TrainingRun:
    """Have a worker release the weights as they are; no update is made before it has."""
    last = (
        TrainingRun.objects.filter(project=project, release__isnull=False).aggregate(last=Max("version"))["last"] or 0
    )
    started = TrainingRun.objects.create(
        project=project,
        version=last + 1,
        stream_batches=stream.batches_used,
        last_consensus_id=project.labels_used_through,
        labels_used=Consensus.objects.filter(project=project, query__round_number__lte=stream.batches_used).count(),
    )
    jobs.send_on_commit()
    return started


def _withdraw_unanswered(project: Project, numbers: list[int]) -> None:
    """Take back the questions nobody agreed on in time, and fix the answers of the others."""
    left = Query.objects.filter(project=project, round_number__in=numbers).exclude(
        state__in=(QueryState.CLOSED, QueryState.WITHDRAWN)
    )
    for number in sorted({query.round_number or 0 for query in left.only("round_number")}):
        labels.withdraw_questions(project=project, round_number=number)
    agreed = Consensus.objects.filter(project=project, query__round_number__in=numbers)
    last = agreed.aggregate(last=Max("pk"))["last"]
    if last is not None:
        labels.mark_labels_used(project=project, last_consensus_id=last)
        project.refresh_from_db(fields=["labels_used_through"])


def _answers(project: Project, numbers: list[int]) -> dict[int, list[AgreedAnswer]]:
    content = "query__record__text" if project.data_kind == DataKind.TEXT else "query__record__payload"
    agreed = Consensus.objects.filter(project=project, query__round_number__in=numbers, votes__gt=0).order_by(
        "query__priority"
    )
    found: dict[int, list[AgreedAnswer]] = defaultdict(list)
    wanted = ("query__round_number", content, "choice", "query_id", "query__guess")
    for number, *answer in agreed.values_list(*wanted):
        found[number].append(AgreedAnswer(*answer))
    return found


def _learn(
    project: Project, learner: StreamingLinearClassifier, batches: list[StreamBatch], featurizer: Featurizer
) -> None:
    own = [batch.number for batch in batches]
    read = [*range(learner.first_read(own[0] - 1) + 1, own[0]), *own]
    answers = _answers(project, read)
    asked = {batch.number: project.window_denominator or batch.questions for batch in batches}
    named = [_named(project, answers.get(number, [])) for number in read]
    records = [[answer.record for answer in taught] for taught, _ in named]
    if learner.reads_again:
        rows = [_transformed(batch, featurizer) for batch in records]
    else:
        together = _transformed([record for batch in records for record in batch], featurizer)
        rows = np.split(together, np.cumsum([len(batch) for batch in records])[:-1])
    parts = zip(rows, named, read, strict=True)
    known = [AnsweredBatch(part, classes, asked.get(number, 1)) for part, (_, classes), number in parts]
    learner.learn_batches(known, new=len(own))


def _transformed(records: list[Any], featurizer: Featurizer) -> NDArray[np.float32]:
    return featurizer.transform(records) if records else np.empty((0, featurizer.dimension), dtype=np.float32)


def _named(project: Project, answers: list[AgreedAnswer]) -> tuple[list[AgreedAnswer], NDArray[np.int64]]:
    """Return the answers that name a class, and the class each names; a yes or a no names what was guessed, or not."""
    choices = np.array([answer.choice for answer in answers], dtype=np.int64)
    guessed = [answer.guess for answer in answers if answer.guess is not None]
    guesses = np.array(guessed, dtype=np.int64) if guessed else None
    named, classes = label_type(project).targets(choices, guesses, n_classes=len(project.classes))
    return [answer for answer, names in zip(answers, named, strict=True) if names], classes


logger = logging.getLogger(__name__)
RECORDS_PER_STEP = 8192
# Long backlogs are worked off by one task after the other, so that a worker can be stopped in between.
STEPS_PER_TASK = 100


def run_stream(*, project_id: int) -> None:
    """Take a stream as far as it goes now; any worker may call this at any time, any number at once."""
    project = Project.objects.select_related("pool_account").get(pk=project_id)
    if not stream_selectors.may_move(project) or not _pay(project):
        return
    for _ in range(STEPS_PER_TASK):
        if not take_step(project=project):
            return
    send_on_commit(RUN_STREAM_TASK, project_id=project_id)


def take_step(*, project: Project) -> bool:
    with transaction.atomic():
        stream = Stream.objects.select_for_update(no_key=True, of=("self",)).get(project=project)
        if stream.entry_id is None or not stream_selectors.may_move(project):
            return False
        moved = update_stream(project=project, stream=stream) or _examine(project, stream)
        fault_point("stream_step")
    return moved


def _pay(project: Project) -> bool:
    """Charge the whole stream once, before its first record is read; false where the account cannot."""
    stream, _ = Stream.objects.get_or_create(project=project)
    if stream.entry_id is not None:
        return True
    if not waiting_posts(project.pk).exists():
        return False
    event = stream_event(project)
    try:
        attempts.pay_whole(
            stream,
            account=project.pool_account,
            event=event,
            purpose="the whole stream, however long",
            subject="stream",
            of={"stream": stream.pk, "event": event.to_json()},
        )
    except BudgetExceeded:
        logger.warning("stream of project %s cannot be paid", project.pk)
        return False
    return True


def _examine(project: Project, stream: Stream) -> bool:
    """Decide about the next records, each once and never again, and store what follows from it."""
    room = project.windows_ahead - (stream.batches_closed - stream.batches_used)
    affordable = questions_left(project)
    if room < 1 or affordable == 0:
        return False
    most = records_at_once(project, batches=room, most=RECORDS_PER_STEP)
    values = records.next_records(project=project, next_slot=stream.next_slot, most=most)
    if not values:
        return False
    featurizer = featurizer_of(project)
    rows = featurizer.transform(values)
    learner = current_learner(project, stream, featurizer)
    seen = examine(
        rows,
        first_slot=stream.next_slot,
        state=BatchState(stream.next_slot, stream.batches_closed, tuple(stream.open_slots)),
        examiner=stream_screen(project),
        policy=policy_of(project),
        model=LinearModel(learner.coef_, learner.intercept_, tuple(project.classes), "softmax"),
        rng=SecureRandom(),
        most_batches=room,
        most_selected=affordable,
    )
    records.store_records(
        project=project, first_slot=stream.next_slot, records=values[: seen.examined], selected=seen.selected.tolist()
    )
    _ask(project, stream, seen, rows, learner)
    StreamBatch.objects.bulk_create(
        [
            StreamBatch(
                stream=stream,
                number=batch.number,
                end=batch.end,
                questions=len(batch.slots),
                closes_at=Now() + stream_selectors.time_to_answer(project),
            )
            for batch in seen.batches
        ]
    )
    stream.next_slot, stream.batches_closed = seen.state.next_slot, seen.state.closed
    stream.open_slots = list(seen.state.open_slots)
    stream.save(update_fields=["next_slot", "batches_closed", "open_slots"])
    records.forget_examined(project=project, next_slot=stream.next_slot)
    fault_point("stream_examined")
    return True


def _ask(
    project: Project, stream: Stream, seen: Examination, rows: NDArray[np.float32], learner: StreamingLinearClassifier
) -> None:
    if not seen.selected.size:
        return
    slots = stream.next_slot + seen.selected
    ends = np.array([batch.end for batch in seen.batches], dtype=np.int64)
    numbers = np.array([*(batch.number for batch in seen.batches), seen.state.closed + 1])
    batches = numbers[np.searchsorted(ends, slots, side="right")]
    places: list[int] | None = None
    if label_type(project).teaches == Teaching.CONFIRMATIONS:
        places = streaming.guessed_classes(learner, rows[seen.selected], rng=SecureRandom()).tolist()
    records.ask_records(project=project, slots=slots.tolist(), batches=batches.tolist(), guesses=places)
