"""What may be asked and what was answered, with the row of each in the feature files; ids only, never content."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Q, QuerySet, Sum
from numpy.typing import NDArray

from annotation.models import (
    Consensus,
    Dataset,
    DatasetRole,
    DatasetState,
    Features,
    Oracle,
    Project,
    Query,
    QueryState,
    Record,
)
from learner.models import Round, ScreenLooks
from privacy.models import LedgerEntry

# A small part of what the arrays of a large pool take: three numbers of a row are packed, written as hex and read.
TABLE_ROWS = 500_000
NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Examples:
    """Records of a trusted project or gate output of a crowd project.

    `ids` has shape (n,), of `Record` or `Query`; `rows` their rows in the stacked feature files of `datasets`.
    """

    ids: NDArray[np.int64]
    rows: NDArray[np.int64]
    datasets: Sequence[Dataset]


def pool_datasets(project: Project) -> QuerySet[Dataset]:
    """Return the private uploads that take part, in the order in which their features are stacked."""
    ready = Dataset.objects.filter(project=project, role=DatasetRole.POOL, state=DatasetState.READY)
    if project.oracle == Oracle.CROWD:
        ready = ready.filter(gate_runs__queries__isnull=False).distinct()
    return ready.select_related("project").order_by("pk")


def start_datasets(project: Project) -> QuerySet[Dataset]:
    """Return the public uploads with labels that may start the first model, oldest first.

    Principal directions are found in the pool, so nothing can be trained in them before they are paid for.
    """
    if project.features == Features.PRINCIPAL:
        return Dataset.objects.none()
    ready = Dataset.objects.filter(project=project, role=DatasetRole.PUBLIC_START, state=DatasetState.READY)
    return ready.filter(records__label__isnull=False).distinct().select_related("project").order_by("pk")


def charged_start(project: Project) -> Dataset | None:
    """Return the private labelled upload that may start the first model, if there is one."""
    ready = Dataset.objects.filter(project=project, role=DatasetRole.CHARGED_START, state=DatasetState.READY)
    # Emptied before it was learned from, it is nothing to start from.
    ready = ready.filter(Q(records__label__isnull=False) | Q(warm_start__isnull=False)).distinct()
    return ready.select_related("project", "account").first()


def unasked_records(project: Project) -> QuerySet[Record]:
    """Return the records of a trusted project that no question was ever asked about."""
    return Record.objects.filter(dataset__in=pool_datasets(project), query=None)


def gate_output(project: Project) -> QuerySet[Query]:
    """Return everything that passed the gate of a crowd project, in the order of its feature files."""
    return Query.objects.filter(project=project, gate_run__isnull=False).order_by("gate_run__dataset_id", "id")


def has_candidates(project: Project, *, screened: bool = False) -> bool:
    """Say whether anything is left to ask, or for a screen to look at."""
    if project.oracle == Oracle.CROWD:
        return Query.objects.filter(project=project, state=QueryState.CANDIDATE).exists()
    if not screened:
        return unasked_records(project).exists()
    if ScreenLooks.objects.filter(dataset__in=pool_datasets(project), left__gt=0).exists():
        return True
    return unasked_records(project).filter(dataset__screen_looks=None).exists()


def looks_at(datasets: Sequence[Dataset]) -> NDArray[np.int64]:
    """Return how often a screen has looked at each row of the stacked uploads, shape (rows,)."""
    stored = dict(ScreenLooks.objects.filter(dataset__in=datasets).values_list("dataset_id", "looks"))
    parts = [
        np.frombuffer(stored[dataset.pk], dtype=np.uint8)
        if dataset.pk in stored
        else np.zeros(dataset.row_count, dtype=np.uint8)
        for dataset in datasets
    ]
    return np.concatenate([np.zeros(0, dtype=np.uint8), *parts]).astype(np.int64)


def looks_left(project: Project) -> int:
    """Count the records that a screen may still look at."""
    datasets = pool_datasets(project)
    known = ScreenLooks.objects.filter(dataset__in=datasets).aggregate(left=Sum("left", default=0))["left"]
    return int(known) + unasked_records(project).filter(dataset__screen_looks=None).count()


def candidates_of(project: Project) -> Examples:
    """Return everything that may be asked."""
    datasets = list(pool_datasets(project))
    if project.oracle == Oracle.CROWD:
        passed = _table(gate_output(project).values_list("id", "round_number"), columns=2)
        waiting = np.flatnonzero(passed[:, 1] < 0)
        return Examples(passed[waiting, 0], waiting, datasets)
    first_row = _first_rows(datasets)
    parts = []
    for records in _ranges(datasets):
        table = _table(records.values_list("id", "dataset_id", "row_number"), columns=3)
        parts.append((table[:, 0].copy(), first_row(table[:, 1]) + table[:, 2]))
    # Taken out here and not by a join, whose plan would hang on statistics that a fresh upload does not have yet; and
    # after the records, so that no question asked meanwhile is missed.
    asked = np.sort(
        _table(Query.objects.filter(project=project, record__isnull=False).values_list("record_id"), columns=1)[:, 0]
    )
    for place, (ids, rows) in enumerate(parts):
        known = _among(ids, asked)
        if known.any():
            parts[place] = ids[~known], rows[~known]
    return Examples(
        np.concatenate([NO_ROWS, *(ids for ids, _ in parts)]),
        np.concatenate([NO_ROWS, *(rows for _, rows in parts)]),
        datasets,
    )


def _ranges(datasets: Sequence[Dataset]) -> Iterator[QuerySet[Record]]:
    """Yield the records of all uploads in their order: small uploads together, large ones in ranges."""
    if sum(dataset.row_count for dataset in datasets) <= TABLE_ROWS:
        yield Record.objects.filter(dataset__in=datasets).order_by("dataset_id", "row_number")
        return
    for dataset in datasets:
        for start in range(0, dataset.row_count, TABLE_ROWS):
            inside = Record.objects.filter(dataset=dataset, row_number__gte=start, row_number__lt=start + TABLE_ROWS)
            yield inside.order_by("row_number")


def _among(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of each id whether it is among known ones in increasing order, without sorting the ids."""
    places = np.searchsorted(known, ids)
    found: NDArray[np.bool_] = np.append(known, -1)[places] == ids
    return found


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
        table = _table(agreed.values_list("query_id", "choice"), columns=2)
        return _passed_examples(project, table[:, 0], datasets), table[:, 1]
    record = "query__record"
    asked = agreed.values_list(f"{record}_id", f"{record}__dataset_id", f"{record}__row_number", "choice")
    table = _table(asked, columns=4)
    return Examples(table[:, 0], _first_rows(datasets)(table[:, 1]) + table[:, 2], datasets), table[:, 3]


def gate_examples(project: Project, questions: QuerySet[Query]) -> Examples:
    """Return questions of a crowd project's gate output with their rows, the oldest first."""
    ids = _table(questions.order_by("pk").values_list("id"), columns=1)[:, 0]
    return _passed_examples(project, ids, list(pool_datasets(project)))


def _passed_examples(project: Project, ids: NDArray[np.int64], datasets: Sequence[Dataset]) -> Examples:
    passed = _table(gate_output(project).values_list("id"), columns=1)[:, 0]
    order = np.argsort(passed)
    return Examples(ids, order[np.searchsorted(passed, ids, sorter=order)], datasets)


def question_slots(project: Project, examples: Examples) -> tuple[NDArray[np.int64], int]:
    """Return the place of each example among all questions asked so far, shape (n,), and how many those are."""
    asked = Query.objects.filter(project=project).exclude(state=QueryState.CANDIDATE).order_by("priority", "id")
    source = "id" if project.oracle == Oracle.CROWD else "record_id"
    ids = _table(asked.values_list(source), columns=1)[:, 0]
    order = np.argsort(ids)
    return order[np.searchsorted(ids, examples.ids, sorter=order)], len(ids)


def pool_size(project: Project) -> int:
    """Count the records of the pool, asked or not; the number of slots is public."""
    return int(pool_datasets(project).aggregate(rows=Sum("row_count", default=0))["rows"])


def gate_entries(datasets: Sequence[Dataset]) -> list[LedgerEntry]:
    """Return the committed ledger entries of the gates that let the output of these uploads through."""
    return list(_entries(_committed_gates(datasets)))


def round_entries(project: Project) -> list[LedgerEntry]:
    """Return the committed ledger entries of the rounds that chose what was asked."""
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


def _table(found: "QuerySet[Any, Any]", *, columns: int) -> NDArray[np.int64]:
    """Read integer columns into one array, shape (n, columns), as a single value of packed numbers; null is -1.

    A million rows handed over one by one take seconds in Python, whichever way they come.
    """
    query, values = found.query.sql_with_params()
    names = [f"c{place}" for place in range(columns)]
    packed = " || ".join(f"int8send(coalesce({name}::bigint, -1))" for name in names)
    # The aggregate takes rows in the order of the subquery.
    statement = f"SELECT string_agg({packed}, ''::bytea) FROM ({query}) AS found ({', '.join(names)})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        body = cursor.fetchone()[0] or b""
    return np.frombuffer(body, dtype=">i8").astype(np.int64).reshape(-1, columns)
