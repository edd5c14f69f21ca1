"""Updates of a stream: in the order of the batches, each from the answers that came in its time."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Max
from numpy.typing import NDArray

from annotation.answers.selectors import label_type
from annotation.choices.label_types.confirm import YES
from annotation.models import Consensus, DataKind, Project, Query, QueryState
from annotation.questions.services import labels
from annotation.work.services.sending import send_on_commit
from learner.configuration.pool import featurizer_of
from learner.configuration.stream import learner_of
from learner.estimators.streaming import AnsweredBatch, GuessingClassifier, StreamingLinearClassifier
from learner.features.base import Featurizer
from learner.models import Stream, StreamBatch, StreamGuess, TrainingRun
from learner.selectors import streams as stream_selectors
from learner.starts.services import labelled_examples, version_zero
from learner.work.task_names import TRAIN_MODEL_TASK
from privacy.errors import SimulationNotReleasable
from privacy.services.faults import fault_point


@dataclass(frozen=True, slots=True)
class AgreedAnswer:
    """One agreed answer and the record it is about."""

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
        raise SimulationNotReleasable("The noise came from a seed, so the weights carry no guarantee.")
    stream.learner_state = learner.state()
    stream.batches_used = numbers[-1]
    stream.save(update_fields=["learner_state", "batches_used"])
    fault_point("stream_updated")
    return True


def current_learner(project: Project, stream: Stream, featurizer: Featurizer) -> StreamingLinearClassifier:
    """Return the learner as it was after the last update, before the first as public examples or words start it."""
    learner = learner_of(project, featurizer)
    if stream.learner_state is not None:
        return learner.resume(stream.learner_state)
    first = labelled_examples.start_model(project) or version_zero.stream_start(project, learner)
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
    send_on_commit(TRAIN_MODEL_TASK, run_id=str(started.pk))
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
    """Return the agreed answers of each batch, in the order of arrival."""
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
    project: Project,
    learner: StreamingLinearClassifier,
    batches: list[StreamBatch],
    featurizer: Featurizer,
) -> None:
    """Make the updates of batches from the answers that they read: their own, and what the learner adds up again."""
    own = [batch.number for batch in batches]
    read = [*range(learner.first_read(own[0] - 1) + 1, own[0]), *own]
    answers = _answers(project, read)
    if isinstance(learner, GuessingClassifier):
        _learn_guesses(learner, [answers.get(number, []) for number in own])
        return
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


def _learn_guesses(learner: GuessingClassifier, answers: list[list[AgreedAnswer]]) -> None:
    everything = [answer for batch in answers for answer in batch]
    asked = StreamGuess.objects.filter(query__in=[answer.query_id for answer in everything])
    directions = dict(asked.values_list("query_id", "direction"))
    learner.learn_guesses(
        [directions[answer.query_id] for answer in everything],
        [answer.choice == YES for answer in everything],
        [len(batch) for batch in answers],
    )


def _named(project: Project, answers: list[AgreedAnswer]) -> tuple[list[AgreedAnswer], NDArray[np.int64]]:
    """Return the answers that name a class, and the class each names; a yes or a no names what was guessed, or not."""
    choices = np.array([answer.choice for answer in answers], dtype=np.int64)
    guessed = [answer.guess for answer in answers if answer.guess is not None]
    guesses = np.array(guessed, dtype=np.int64) if guessed else None
    named, classes = label_type(project).targets(choices, guesses, n_classes=len(project.classes))
    return [answer for answer, names in zip(answers, named, strict=True) if names], classes
