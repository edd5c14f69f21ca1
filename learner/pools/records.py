"""Records of a pool, and those that secret blocks drew."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Now
from numpy.typing import NDArray

from annotation.choices.selections import asks_in_secret
from annotation.errors import refuse_broken
from annotation.models import (
    Consensus,
    Dataset,
    DatasetRole,
    DatasetState,
    Oracle,
    Project,
    Query,
    QueryState,
    Record,
    WorkState,
)
from annotation.models.database import integer_table
from annotation.questions.selectors import marks_spans, spans_of
from dpal.spans.text import Span
from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from learner.models import Round, TrainingRun, WarmStart
from learner.pools.configuration import (
    blocks_choice_of,
    estimator_of,
    featurizer_of,
    learned_classes,
    learned_numbers,
    release_estimator_of,
    secret_sample_of,
)
from learner.pools.keys import attempt_key
from learner.strategies.rows import OpenRows
from privacy.accounting.counts import class_counts_event
from privacy.accounting.event import Event, event_from_json
from privacy.accounting.events import SecretBlockEvent, SecretSampleEvent
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.ledger.selectors import can_pay, quota_of
from privacy.wording import as_message


def refuse_leaving_series(*, project: Project, before: Sequence[str], **_signal: Any) -> None:
    """Refuse classes under which what was released could not be gone on with; `before` are those learned so far."""
    now = learned_classes(project)
    if len(before) == len(now):
        return
    if set(before) - set(now):
        _refuse_merging_sums(project)
    if set(now) - set(before):
        _refuse_unknown_start(project, now)
    _refuse_another_price(project, before)


def _refuse_merging_sums(project: Project) -> None:
    if not labels_in_secret(project) or not TrainingRun.objects.filter(project=project).exists():
        return
    if isinstance(estimator_of(project, featurizer_of(project)), PrivateSums):
        refuse_broken({"classes": as_message("With running sums, classes cannot be merged after the first training.")})


def _refuse_unknown_start(project: Project, now: Sequence[str]) -> None:
    for stored in WarmStart.objects.filter(dataset__project=project):
        try:
            LinearModel.from_json(stored.weights).renamed(project.renamed_classes).knowing(now)
        except ValueError:
            rule = as_message("A model was trained with this merge, so it cannot be undone.")
            refuse_broken({"classes": rule})


def _refuse_another_price(project: Project, before: Sequence[str]) -> None:
    """Refuse classes with which the next block costs more than the series gives it; nothing without a series."""
    if not labels_in_secret(project) or not has_series(project):
        return
    # A series gives each of its blocks the same, so the last one speaks for those to come.
    last = n_blocks(project)
    if not isinstance(release_event(project, block=last), SecretBlockEvent):
        refuse_broken(
            {
                "classes": as_message(
                    "The secret blocks are paid for {n} classes; for another number, lower the "
                    "epsilon of a training slightly.",
                    n=len(before),
                )
            }
        )


# What is packed, written as hex and read at once: few beside what a worker holds anyway.
TABLE_ROWS = 100_000
NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Examples:
    """Records of a trusted project or gate output of a crowd project."""

    ids: NDArray[np.int64]
    rows: NDArray[np.int64]
    datasets: Sequence[Dataset]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Records of a trusted pool that nobody was asked about, by their rows in the stacked files of `datasets`."""

    rows: OpenRows
    datasets: Sequence[Dataset]

    def ids_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        starts = np.cumsum([0, *(dataset.row_count for dataset in self.datasets)], dtype=np.int64)
        ids = np.empty(len(rows), dtype=np.int64)
        for first in range(0, len(rows), TABLE_ROWS):
            part = rows[first : first + TABLE_ROWS]
            places = np.searchsorted(starts, part, side="right") - 1
            for place in np.unique(places):
                here = np.flatnonzero(places == place)
                numbers = part[here] - starts[place]
                wanted = Record.objects.filter(dataset=self.datasets[place], row_number__in=numbers.tolist())
                found = integer_table(wanted.order_by("row_number").values_list("row_number", "pk"), columns=2)
                at = np.searchsorted(found[:, 0], numbers)
                if len(found) != len(np.unique(numbers)):
                    raise LookupError("records of the pool are gone")
                ids[first + here] = found[at, 1]
        return ids


def pool_datasets(project: Project) -> QuerySet[Dataset]:
    """Return the private uploads that take part, in the order in which their features are stacked."""
    ready = Dataset.objects.filter(project=project, role=DatasetRole.POOL, state=DatasetState.READY)
    if project.oracle == Oracle.CROWD:
        ready = ready.filter(gate_runs__queries__isnull=False).distinct()
    return ready.select_related("project").order_by("pk")


def start_datasets(project: Project) -> QuerySet[Dataset]:
    """Return the public uploads with labels that may start the first model, oldest first."""
    ready = Dataset.objects.filter(project=project, role=DatasetRole.PUBLIC_START, state=DatasetState.READY)
    return ready.filter(records__label__isnull=False).distinct().select_related("project").order_by("pk")


def charged_start(project: Project) -> Dataset | None:
    """Return the private labelled upload that may start the first model, if there is one."""
    ready = Dataset.objects.filter(project=project, role=DatasetRole.CHARGED_START, state=DatasetState.READY)
    # Emptied before it was learned from, it is nothing to start from.
    ready = ready.filter(Q(records__label__isnull=False) | Q(warm_start__isnull=False)).distinct()
    return ready.select_related("project", "account").first()


def unasked_records(project: Project) -> QuerySet[Record]:
    return Record.objects.filter(dataset__in=pool_datasets(project), query=None)


def records_left(project: Project) -> int:
    """Count the records of a trusted project that `open_records` has, without going through the pool."""
    asked = Query.objects.filter(project=project, record__dataset__in=pool_datasets(project)).count()
    return max(0, pool_size(project) - asked)


def gate_output(project: Project) -> QuerySet[Query]:
    """Return everything that passed the gate of a crowd project, in the order of its feature files."""
    return Query.objects.filter(project=project, gate_run__isnull=False).order_by("gate_run__dataset_id", "id")


def has_candidates(project: Project) -> bool:
    if project.oracle == Oracle.CROWD:
        return Query.objects.filter(project=project, state=QueryState.UNASKED).exists()
    return unasked_records(project).exists()


def open_records(project: Project) -> Candidates:
    """Return the records of a trusted project's pool that nobody was asked about; no record is read for it."""
    datasets = list(pool_datasets(project))
    first_row = _first_rows(datasets)
    taken, after = [NO_ROWS], 0
    asked = Query.objects.filter(project=project, record__isnull=False).order_by("pk").values_list("pk", "record_id")
    while len(part := integer_table(asked.filter(pk__gt=after)[:TABLE_ROWS], columns=2)):
        after = int(part[-1, 0])
        # Looked up by their keys alone: statistics taken while an upload came in say that there are no records, and a
        # join might then go through all of them for each question.
        records = Record.objects.filter(pk__in=part[:, 1].tolist(), dataset__in=[each.pk for each in datasets])
        found = integer_table(records.values_list("dataset_id", "row_number"), columns=2)
        taken.append(first_row(found[:, 0]) + found[:, 1])
    total = sum(dataset.row_count for dataset in datasets)
    return Candidates(OpenRows(total, np.concatenate(taken)), datasets)


def waiting_texts(project: Project) -> Examples:
    """Return what passed the gate of a crowd project and was not asked yet."""
    datasets = list(pool_datasets(project))
    ids, rows = [NO_ROWS], [NO_ROWS]
    first = 0
    for dataset in datasets:
        passed = Query.objects.filter(project=project, gate_run__dataset=dataset).order_by("id")
        after = 0
        while True:
            part = integer_table(passed.filter(id__gt=after).values_list("id", "round_number")[:TABLE_ROWS], columns=2)
            if not len(part):
                break
            waiting = np.flatnonzero(part[:, 1] < 0)
            ids.append(part[waiting, 0])
            rows.append(first + waiting)
            after, first = int(part[-1, 0]), first + len(part)
    return Examples(np.concatenate(ids), np.concatenate(rows), datasets)


def labelled_examples(
    project: Project, *, last_consensus_id: int, block: Round | None = None
) -> tuple[Examples, NDArray[np.int64]]:
    """Return the questions with a consensus up to this one, and the classes agreed on, shape (n,).

    With a secret block only its own: what earlier blocks were told has been paid for by their releases. What was
    emptied since is left out, which is what an empty slot adds to any training.
    """
    datasets = list(pool_datasets(project))
    agreed = Consensus.objects.filter(project=project, pk__lte=last_consensus_id, votes__gt=0).order_by("pk")
    if block is not None:
        agreed = agreed.filter(query__round_number=block.number)
    if project.oracle == Oracle.CROWD:
        found = integer_table(agreed.values_list("query_id", "choice"), columns=2)
        return _passed_examples(project, found[:, 0], datasets), found[:, 1]
    record = "query__record"
    asked = agreed.values_list(f"{record}_id", f"{record}__dataset_id", f"{record}__row_number", "choice")
    found = integer_table(asked, columns=4)
    rows = _first_rows(datasets)(found[:, 1]) + found[:, 2]
    # Spans are numbered sets, and types are never merged.
    numbers = found[:, 3] if marks_spans(project) else learned_numbers(project, found[:, 3])
    return Examples(found[:, 0], rows, datasets), numbers


def texts_with_spans(
    project: Project, records: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[list[str], list[tuple[Span, ...]]]:
    """Return the texts of records and the spans of their answers; what was emptied since is an empty text."""
    stored = dict(Record.objects.filter(pk__in=records.tolist(), emptied=False).values_list("pk", "text"))
    known = spans_of(project, numbers.tolist())
    texts = [stored.get(record) or "" for record in records.tolist()]
    return texts, [known[number] if text else () for text, number in zip(texts, numbers.tolist(), strict=True)]


def gate_examples(project: Project, questions: QuerySet[Query]) -> Examples:
    """Return questions of a crowd project's gate output with their rows, the oldest first."""
    ids = integer_table(questions.order_by("pk").values_list("id"), columns=1)[:, 0]
    return _passed_examples(project, ids, list(pool_datasets(project)))


def _passed_examples(project: Project, ids: NDArray[np.int64], datasets: Sequence[Dataset]) -> Examples:
    passed = integer_table(gate_output(project).values_list("id"), columns=1)[:, 0]
    order = np.argsort(passed)
    return Examples(ids, order[np.searchsorted(passed, ids, sorter=order)], datasets)


def pool_size(project: Project) -> int:
    return int(pool_datasets(project).aggregate(rows=Sum("row_count", default=0))["rows"])


def gate_entries(datasets: Sequence[Dataset]) -> list[LedgerEntry]:
    """Return the committed ledger entries of the gates that let the output of these uploads through."""
    return list(_entries(_committed_gates(datasets)))


def round_entries(project: Project) -> list[LedgerEntry]:
    chosen = Round.objects.filter(project=project, committed_entry__isnull=False).values_list(
        "committed_entry_id", flat=True
    )
    return list(_entries(chosen))


def _committed_gates(datasets: Sequence[Dataset]) -> QuerySet[Dataset, int]:
    uploads = Dataset.objects.filter(pk__in=[dataset.pk for dataset in datasets])
    return uploads.filter(gate_runs__committed_entry__isnull=False).values_list(
        "gate_runs__committed_entry_id", flat=True
    )


def _entries(ids: "QuerySet[Any, int]") -> QuerySet[LedgerEntry]:
    return LedgerEntry.objects.filter(pk__in=ids).select_related("account", "parent").order_by("sequence")


def _first_rows(datasets: Sequence[Dataset]) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
    """Return a function from dataset ids, which must be among `datasets`, to the first stacked row of each."""
    keys = np.array([dataset.pk for dataset in datasets], dtype=np.int64)
    starts = np.cumsum([0, *(dataset.row_count for dataset in datasets)], dtype=np.int64)
    return lambda wanted: starts[np.searchsorted(keys, wanted)]


# Each attempt that reserved is charged: a block that fails this often is left aside, and else a person is waited for.
MAX_FAILED_TRAININGS = 3


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """Public facts about the records behind a model: the questions asked or, of a secret sample, its law."""

    questions: int | None = None
    pool_size: int | None = None
    rate: float | None = None


def labels_in_secret(project: Project) -> bool:
    return asks_in_secret(project.settings)


def blocks_of(project: Project) -> QuerySet[Round]:
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
    block = current_block(project) if labels_in_secret(project) else None
    return None if block is None or is_closed(block) else block


def is_closed(block: Round) -> bool:
    """Say whether the block's public time has come, by the database's clock."""
    return Round.objects.filter(pk=block.pk, closes_at__lte=Now()).exists()


def next_block(project: Project) -> int | None:
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
    first, further = (
        release_estimator_of(project, featurizer, later=later).event_for(featurizer.dimension)
        for later in (False, True)
    )
    rates = tuple(secret_sample_of(project, block=number).rate for number in range(1, n_blocks(project) + 1))
    before = None if anew else _standing(project)
    events: list[Event] = []
    alone = before is None and quota_of(project.pool_account) is not None
    for block in blocks:
        training = first if block == 1 else further
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


def further_reading(project: Project, *, block: int, cells: int, counted: int) -> SecretBlockEvent | None:
    """Return noisy counts on a block as one more release of the project's series; None where it has no series.

    Whatever the counts cost by themselves, the block is charged for one more release, so they may as well have its
    whole epsilon.
    """
    before = _standing(project)
    if before is None:
        return None
    counts = class_counts_event(before.series.epsilons[block - 1], cells=cells, counted=counted)
    return SecretBlockEvent(before.series, counts, block, before.counted)


def price_of_readings(project: Project, blocks: Sequence[int], *, trained: Collection[int | None]) -> float | None:
    """Return the epsilon of one further reading of each block, and of the trainings of those not trained yet."""
    before = _standing(project)
    if before is None:
        return None
    paid = before.total_epsilon
    for block in blocks:
        for _ in range(1 if block in trained else 2):
            counts = class_counts_event(before.series.epsilons[block - 1], cells=1, counted=1)
            before = SecretBlockEvent(before.series, counts, block, before.counted)
    return before.total_epsilon - paid


def datasets_of_block(project: Project, block: Round) -> list[Dataset]:
    """Return the uploads whose coins had fallen when the block was drawn: its sample is one of their records."""
    drawn = pool_datasets(project).filter(secret_draws__isnull=False)
    later = Round.objects.filter(project=project, block__gt=block.block or 0, started_at__isnull=False)
    next_start = later.order_by("block").values_list("started_at", flat=True).first()
    if next_start is not None:
        drawn = drawn.filter(secret_draws__created_at__lt=next_start)
    return list(drawn.distinct())


@dataclass(frozen=True, slots=True)
class SampledRecords:
    """Records of a secret block that are not emptied, by their rows in the stacked files of `datasets`.

    `choices` holds the class agreed on, -1 where there is none.
    """

    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    choices: NDArray[np.int64]


def sampled_records(project: Project, block: Round, datasets: Sequence[Dataset]) -> SampledRecords:
    """Return all records that a block asked about, with the places of their uploads."""
    asked = Query.objects.filter(
        project=project, round_number=block.number, record__dataset__in=datasets, record__emptied=False
    ).order_by("pk")
    found = integer_table(asked.values_list("pk", "record__dataset_id", "record__row_number"), columns=3)
    agreed = Consensus.objects.filter(project=project, query__round_number=block.number, votes__gt=0)
    known = dict(agreed.values_list("query_id", "choice"))
    keys = np.array([dataset.pk for dataset in datasets], dtype=np.int64)
    rows = _first_rows(datasets)(found[:, 1]) + found[:, 2]
    choices = np.array([known.get(query, -1) for query in found[:, 0].tolist()], dtype=np.int64)
    return SampledRecords(rows, np.searchsorted(keys, found[:, 1]), choices)


def has_series(project: Project) -> bool:
    return _standing(project) is not None


def n_blocks(project: Project) -> int:
    """Return how many blocks a pool is divided into; its last part belongs to none."""
    return len(blocks_choice_of(project).block_rates)


def _released_before(project: Project, block: int) -> float:
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
