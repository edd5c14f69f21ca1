"""Where a project stands that labels secret samples: its blocks, what the next model costs, what may be said of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.functions import Now

from annotation.choices.selections import asks_in_secret
from annotation.models import Project, WorkState
from learner.configuration.pool import blocks_choice_of, estimator_of, featurizer_of, secret_sample_of
from learner.models import Round, TrainingRun
from learner.work.keys import attempt_key
from privacy.accounting.event import Event, event_from_json
from privacy.accounting.events import SecretBlockEvent, SecretSampleEvent
from privacy.models import EntryKind, LedgerEntry, Quota
from privacy.selectors import can_pay

# Each attempt that reserved is charged: a block that fails this often is left aside, and else a person is waited for.
MAX_FAILED_TRAININGS = 3


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """What may be said outside of the records behind a model: the questions asked or, of a secret sample, its law."""

    questions: int | None = None
    pool_size: int | None = None
    rate: float | None = None


def labels_in_secret(project: Project) -> bool:
    """Say whether nobody outside may learn what the project asks."""
    return asks_in_secret(project.settings)


def blocks_of(project: Project) -> QuerySet[Round]:
    """Return the blocks that were asked about, newest first."""
    return Round.objects.filter(project=project, block__isnull=False, state=WorkState.DONE).order_by("-block")


def current_block(project: Project) -> Round | None:
    """Return the newest block while it still has to give its model.

    A training that failed is charged like one that released, and another one for the same block costs more than that.
    Where the account cannot pay it the block is left aside: its release is lost, and the next block's is not.
    """
    block = blocks_of(project).select_related("project__pool_account").first()
    if block is None or block.training_runs.filter(state=WorkState.DONE).exists():
        return None
    failed = block.training_runs.filter(state=WorkState.FAILED).count()
    if failed >= MAX_FAILED_TRAININGS:
        return None
    if failed and not can_pay(project.pool_account, [release_event(project, block=block.block or 0)]):
        return None
    return block


def open_block(project: Project) -> Round | None:
    """Return the block whose questions are being answered, if there is one."""
    block = current_block(project) if labels_in_secret(project) else None
    return None if block is None or is_closed(block) else block


def is_closed(block: Round) -> bool:
    """Say whether the block's public time has come, by the database's clock."""
    return Round.objects.filter(pk=block.pk, closes_at__lte=Now()).exists()


def next_block(project: Project) -> int | None:
    """Return the number of the block that comes next, or None where all are used."""
    newest = blocks_of(project).first()
    number = (newest.block or 0) + 1 if newest else 1
    return number if number <= n_blocks(project) else None


def release_event(project: Project, *, block: int) -> Event:
    """Return what releasing the model of a block must be charged, whatever its series has paid already."""
    return coming_events(project, [block])[0]


def coming_events(project: Project, blocks: Sequence[int], *, anew: bool = False) -> list[Event]:
    """Return what the models of these blocks will be charged, one after the other.

    The first of all opens a series that gives every block the training as it is set then. A training that was made
    dearer since does not belong to the series and is charged as if nobody had kept its block secret. `anew` leaves out
    what the series has paid already. Where people of several projects pay one account together, nothing is proved for
    a series of theirs, and each block is charged as a sample of its own.
    """
    featurizer = featurizer_of(project)
    training = estimator_of(project, featurizer).event_for(featurizer.dimension)
    rates = tuple(secret_sample_of(project, block=number).rate for number in range(1, n_blocks(project) + 1))
    before = None if anew else _standing(project)
    events: list[Event] = []
    alone = before is None and Quota.objects.filter(account=project.pool_account).exists()
    for block in blocks:
        if alone:
            released_before = 0.0 if anew else _released_before(project, block)
            events.append(SecretSampleEvent(training, rates[block - 1], released_before))
            continue
        event = SecretBlockEvent.next_of(before, training, block=block, rates=rates)
        if event is None:
            events.append(SecretSampleEvent(training, 1.0))
            continue
        events.append(event)
        before = event
    return events


def has_series(project: Project) -> bool:
    """Say whether a series of secret blocks was opened and goes on."""
    return _standing(project) is not None


def n_blocks(project: Project) -> int:
    """Return how many blocks a pool is divided into; its last part belongs to none."""
    return len(blocks_choice_of(project).block_rates)


def _released_before(project: Project, block: int) -> float:
    """Return what a block's coins have told already, counting every reservation as if it had been released."""
    runs = TrainingRun.objects.filter(project=project, block__block=block)
    keys = [attempt_key(run, attempt) for run in runs for attempt in range(1, run.attempt + 1)]
    entries = LedgerEntry.objects.filter(kind=EntryKind.RESERVE, idempotency_key__in=keys)
    events = [event_from_json(entry.event) for entry in entries]
    samples = [event for event in events if isinstance(event, SecretSampleEvent)]
    return max((event.released_before + event.inner.cost(adjacency="null").epsilon for event in samples), default=0.0)


def _standing(project: Project) -> SecretBlockEvent | None:
    """Return the newest reservation of the project's series; none is ever given back, so it counts all before it."""
    entries = LedgerEntry.objects.filter(
        account=project.pool_account, kind=EntryKind.RESERVE, mechanism=SecretBlockEvent.kind
    )
    newest = entries.order_by("-sequence").first()
    if newest is None:
        return None
    event = event_from_json(newest.event)
    assert isinstance(event, SecretBlockEvent)
    return event
