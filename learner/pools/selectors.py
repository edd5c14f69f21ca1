"""What may be asked and what was answered, with the row of each in the feature files; ids only, never content."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Q, QuerySet, Sum
from numpy.typing import NDArray

from annotation.choices.starts import no_start_before
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
)
from learner.configuration.classes import learned_numbers
from learner.models import Round, ScreenLooks
from learner.strategies.rows import OpenRows
from privacy.models import LedgerEntry

# What is packed, written as hex and read at once: few beside what a worker holds anyway.
TABLE_ROWS = 100_000
NO_ROWS = np.empty(0, dtype=np.int64)
# Each record is looked up by its key: statistics taken while an upload came in say that there are none, and a join
# might then go through all of them for each question.
ASKED = """
SELECT asked.id, record.dataset_id, record.row_number
FROM (
    SELECT id, record_id FROM annotation_query
    WHERE project_id = %(project)s AND record_id IS NOT NULL AND id > %(after)s
    ORDER BY id LIMIT %(most)s
) asked
CROSS JOIN LATERAL (
    SELECT found.dataset_id, found.row_number FROM annotation_record found WHERE found.id = asked.record_id OFFSET 0
) record
ORDER BY asked.id
"""
RECORDS = """
SELECT record.id
FROM unnest(%(datasets)s::bigint[], %(numbers)s::bigint[]) WITH ORDINALITY AS wanted (dataset_id, row_number, place)
CROSS JOIN LATERAL (
    SELECT found.id FROM annotation_record found
    WHERE found.dataset_id = wanted.dataset_id AND found.row_number = wanted.row_number OFFSET 0
) record
ORDER BY wanted.place
"""


@dataclass(frozen=True, slots=True)
class Examples:
    """Records of a trusted project or gate output of a crowd project.

    `ids` has shape (n,), of `Record` or `Query`; `rows` their rows in the stacked feature files of `datasets`.
    """

    ids: NDArray[np.int64]
    rows: NDArray[np.int64]
    datasets: Sequence[Dataset]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Records of a trusted pool that nobody was asked about, by their rows in the stacked feature files of `datasets`.

    A pool's records have the numbers from 0 up to the size of their upload, so nothing is kept of those not asked.
    """

    rows: OpenRows
    datasets: Sequence[Dataset]

    def ids_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the records at these rows, in their order.

        Raises
        ------
        LookupError
            If the database has lost one of them.
        """
        starts = np.cumsum([0, *(dataset.row_count for dataset in self.datasets)], dtype=np.int64)
        keys = np.array([dataset.pk for dataset in self.datasets], dtype=np.int64)
        ids = np.empty(len(rows), dtype=np.int64)
        for first in range(0, len(rows), TABLE_ROWS):
            part = rows[first : first + TABLE_ROWS]
            place = np.searchsorted(starts, part, side="right") - 1
            values = {"datasets": keys[place].tolist(), "numbers": (part - starts[place]).tolist()}
            found = _packed(RECORDS, values, columns=1)[:, 0]
            if len(found) != len(part):
                raise LookupError("records of the pool are gone")
            ids[first : first + TABLE_ROWS] = found
        return ids


def pool_datasets(project: Project) -> QuerySet[Dataset]:
    """Return the private uploads that take part, in the order in which their features are stacked."""
    ready = Dataset.objects.filter(project=project, role=DatasetRole.POOL, state=DatasetState.READY)
    if project.oracle == Oracle.CROWD:
        ready = ready.filter(gate_runs__queries__isnull=False).distinct()
    return ready.select_related("project").order_by("pk")


def start_datasets(project: Project) -> QuerySet[Dataset]:
    """Return the public uploads with labels that may start the first model, oldest first.

    Where features are found in the pool, nothing can be trained in them before they are paid for.
    """
    if no_start_before(project.settings):
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


def records_left(project: Project) -> int:
    """Count the records of a trusted project that `open_records` has, without going through the pool."""
    asked = Query.objects.filter(project=project, record__dataset__in=pool_datasets(project)).count()
    return pool_size(project) - asked


def gate_output(project: Project) -> QuerySet[Query]:
    """Return everything that passed the gate of a crowd project, in the order of its feature files."""
    return Query.objects.filter(project=project, gate_run__isnull=False).order_by("gate_run__dataset_id", "id")


def has_candidates(project: Project, *, screened: bool = False) -> bool:
    """Say whether anything is left to ask, or for a screen to look at."""
    if project.oracle == Oracle.CROWD:
        return Query.objects.filter(project=project, state=QueryState.UNASKED).exists()
    if not screened:
        return unasked_records(project).exists()
    if ScreenLooks.objects.filter(dataset__in=pool_datasets(project), left__gt=0).exists():
        return True
    return unasked_records(project).filter(dataset__screen_looks=None).exists()


def looks_at(datasets: Sequence[Dataset]) -> NDArray[np.uint8]:
    """Return how often a screen has looked at each row of the stacked uploads, shape (rows,)."""
    looks = np.zeros(sum(dataset.row_count for dataset in datasets), dtype=np.uint8)
    first = 0
    for dataset in datasets:
        parts = ScreenLooks.objects.filter(dataset=dataset)
        for start in parts.order_by("first_row").values_list("first_row", flat=True):
            # One part at a time is held beside them.
            stored = np.frombuffer(parts.values_list("looks", flat=True).get(first_row=start), dtype=np.uint8)
            looks[first + start : first + start + len(stored)] = stored
        first += dataset.row_count
    return looks


def looks_left(project: Project) -> int:
    """Count the records that a screen may still look at."""
    datasets = pool_datasets(project)
    known = ScreenLooks.objects.filter(dataset__in=datasets).aggregate(left=Sum("left", default=0))["left"]
    return int(known) + unasked_records(project).filter(dataset__screen_looks=None).count()


def open_records(project: Project) -> Candidates:
    """Return the records of a trusted project's pool that nobody was asked about; no record is read for it."""
    datasets = list(pool_datasets(project))
    first_row = _first_rows(datasets)
    taken, after = [NO_ROWS], 0
    while True:
        part = _packed(ASKED, {"project": project.pk, "after": after, "most": TABLE_ROWS}, columns=3)
        if not len(part):
            break
        after = int(part[-1, 0])
        inside = np.isin(part[:, 1], [dataset.pk for dataset in datasets])
        taken.append(first_row(part[inside, 1]) + part[inside, 2])
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
    return Examples(found[:, 0], rows, datasets), learned_numbers(project, found[:, 3])


def gate_examples(project: Project, questions: QuerySet[Query]) -> Examples:
    """Return questions of a crowd project's gate output with their rows, the oldest first."""
    ids = integer_table(questions.order_by("pk").values_list("id"), columns=1)[:, 0]
    return _passed_examples(project, ids, list(pool_datasets(project)))


def _passed_examples(project: Project, ids: NDArray[np.int64], datasets: Sequence[Dataset]) -> Examples:
    passed = integer_table(gate_output(project).values_list("id"), columns=1)[:, 0]
    order = np.argsort(passed)
    return Examples(ids, order[np.searchsorted(passed, ids, sorter=order)], datasets)


def question_slots(project: Project, examples: Examples) -> tuple[NDArray[np.int64], int]:
    """Return the place of each example among all questions asked so far, shape (n,), and how many those are."""
    asked = Query.objects.filter(project=project).exclude(state=QueryState.UNASKED).order_by("priority", "id")
    source = "id" if project.oracle == Oracle.CROWD else "record_id"
    ids = integer_table(asked.values_list(source), columns=1)[:, 0]
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


def integer_table(found: "QuerySet[Any, Any]", *, columns: int) -> NDArray[np.int64]:
    """Read integer columns into one array, shape (n, columns); null is -1."""
    query, values = found.query.sql_with_params()
    return _packed(query, values, columns=columns)


def _packed(query: str, values: Any, *, columns: int) -> NDArray[np.int64]:
    """Read the rows of a statement as a single value of packed numbers.

    A million rows handed over one by one take seconds in Python, whichever way they come.
    """
    names = [f"c{place}" for place in range(columns)]
    packed = " || ".join(f"int8send(coalesce({name}::bigint, -1))" for name in names)
    # The aggregate takes rows in the order of the subquery.
    statement = f"SELECT string_agg({packed}, ''::bytea) FROM ({query}) AS found ({', '.join(names)})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        body = cursor.fetchone()[0] or b""
    return np.frombuffer(body, dtype=">i8").astype(np.int64).reshape(-1, columns)
