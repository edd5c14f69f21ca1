"""Where a project stands that labels secret samples: its blocks, what the next model costs, what may be said of it."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.functions import Now

from annotation.models import Project, Selection, WorkState
from learner.blocks import block_rates
from learner.configuration import estimator_of, featurizer_of, first_block_rate, secret_sample_of
from learner.keys import key_of
from learner.models import Round, TrainingRun
from privacy.accounting.event import event_from_json
from privacy.accounting.events import SecretSampleEvent
from privacy.models import EntryKind, LedgerEntry

# Each attempt at a block makes the next one dearer, so a block that fails this often is left aside.
MAX_FAILED_TRAININGS = 3


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """What may be said outside of the records behind a model: the questions asked or, of a secret sample, its law."""

    questions: int | None = None
    pool_size: int | None = None
    rate: float | None = None


def labels_in_secret(project: Project) -> bool:
    """Say whether nobody outside may learn what the project asks."""
    return project.selection == Selection.SECRET_SAMPLE


def blocks_of(project: Project) -> QuerySet[Round]:
    """Return the blocks that were asked about, newest first."""
    return Round.objects.filter(project=project, block__isnull=False, state=WorkState.DONE).order_by("-block")


def current_block(project: Project) -> Round | None:
    """Return the newest block while it still has to give its model."""
    block = blocks_of(project).select_related("project__pool_account").first()
    if block is None or block.training_runs.filter(state=WorkState.DONE).exists():
        return None
    failed = block.training_runs.filter(state=WorkState.FAILED).count()
    return block if failed < MAX_FAILED_TRAININGS else None


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
    return number if number <= len(block_rates(first_block_rate(project))) else None


def release_event(project: Project, *, block: int, chosen: Round | None = None) -> SecretSampleEvent:
    """Return what releasing the model of a block must be charged.

    A coin is paid as if everything reserved for it had been released: an attempt that died may have been.
    """
    featurizer = featurizer_of(project)
    sample = secret_sample_of(project, block=block)
    training = estimator_of(project, featurizer).event_for(featurizer.dimension)
    before = max((_told_by(entry) for entry in _reserved_for(chosen)), default=0.0) if chosen is not None else 0.0
    return SecretSampleEvent(training, sample.rate, before)


def _reserved_for(block: Round) -> list[LedgerEntry]:
    """Return every reservation of a training on this block; none of them is ever given back."""
    runs = TrainingRun.objects.filter(block=block)
    keys = [key_of(run, attempt) for run in runs for attempt in range(1, run.attempt + 1)]
    return list(LedgerEntry.objects.filter(kind=EntryKind.RESERVE, idempotency_key__in=keys))


def _told_by(entry: LedgerEntry) -> float:
    event = event_from_json(entry.event)
    assert isinstance(event, SecretSampleEvent)
    return event.released_before + event.inner.cost(adjacency="null").epsilon
