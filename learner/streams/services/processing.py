"""A stream in motion: paid for once, examined in the order of arrival, learned from batch by batch.

Every step is one transaction under the lock of the stream's row. It stores the coins' outcome, the questions, the
weights and the place reached together, so a step that dies has told nobody anything and is simply taken anew; two
workers take turns, and updates keep their order.
"""

import logging

import numpy as np
from django.db import transaction
from django.db.models.functions import Now
from numpy.typing import NDArray

from annotation.answers.selectors import label_type
from annotation.choices.policies.updates import BatchState
from annotation.data.selectors import waiting_posts
from annotation.data.services import streams as records
from annotation.models import Project
from annotation.statement.label_budget import questions_left
from annotation.work.services.sending import send_on_commit
from learner import online
from learner.configuration.pool import featurizer_of
from learner.configuration.stream import policy_of, records_at_once, stream_event, stream_screen
from learner.estimators.streaming import Guess, GuessingClassifier, StreamingLinearClassifier
from learner.linear_model import LinearModel
from learner.models import Stream, StreamBatch, StreamGuess
from learner.selectors import streams as stream_selectors
from learner.streaming import Examination, examine
from learner.streams.services import updates
from learner.work.services import attempts
from learner.work.task_names import RUN_STREAM_TASK
from privacy.errors import BudgetExceeded
from privacy.mechanisms.randomness import SecureRandom
from privacy.services.faults import fault_point
from privacy.wording import as_message

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
    """Make the updates that are due, else examine the next records; return whether there was anything to do."""
    with transaction.atomic():
        stream = Stream.objects.select_for_update(no_key=True, of=("self",)).get(project=project)
        if stream.entry_id is None or not stream_selectors.may_move(project):
            return False
        moved = updates.update_stream(project=project, stream=stream) or _examine(project, stream)
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
            purpose=as_message("the whole stream, however long"),
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
    learner = updates.current_learner(project, stream, featurizer)
    seen = examine(
        rows,
        first_slot=stream.next_slot,
        state=BatchState(stream.next_slot, stream.batches_closed, tuple(stream.open_slots)),
        examiner=stream_screen(project, updates=stream.batches_used),
        policy=policy_of(project),
        model=LinearModel(learner.coef_, learner.intercept_, tuple(project.classes), "softmax"),
        rng=SecureRandom(),
        most_batches=room,
        most_selected=affordable,
    )
    records.store_records(
        project=project,
        first_slot=stream.next_slot,
        records=values[: seen.examined],
        selected=seen.selected.tolist(),
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
    project: Project,
    stream: Stream,
    seen: Examination,
    rows: NDArray[np.float32],
    learner: StreamingLinearClassifier,
) -> None:
    """Open the questions of the selected records, each under the number of its batch."""
    if not seen.selected.size:
        return
    slots = stream.next_slot + seen.selected
    ends = np.array([batch.end for batch in seen.batches], dtype=np.int64)
    numbers = np.array([*(batch.number for batch in seen.batches), seen.state.closed + 1])
    batches = numbers[np.searchsorted(ends, slots, side="right")]
    guesses: list[Guess] = []
    places: list[int] | None = None
    if isinstance(learner, GuessingClassifier):
        guesses = learner.guess_all(rows[seen.selected])
        places = [guess.place for guess in guesses]
    elif label_type(project).about_guess:
        places = online.guessed_classes(learner, rows[seen.selected], rng=SecureRandom()).tolist()
    asked = records.ask_records(
        project=project,
        slots=slots.tolist(),
        batches=batches.tolist(),
        guesses=places,
    )
    StreamGuess.objects.bulk_create(
        [
            StreamGuess(query_id=asked[slot], direction=list(guess.direction))
            for slot, guess in zip(slots.tolist(), guesses, strict=False)
        ]
    )
