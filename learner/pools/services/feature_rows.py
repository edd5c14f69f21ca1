"""What a featuriser is given of an upload, in the order of its rows."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from annotation.models import DataKind, Dataset, DatasetRole, Oracle, Project, Query, Record
from learner.errors import ArtifactCorrupt
from learner.features.batches import values_batch
from learner.pools.services.pixels import pixel_batches
from privacy.wording import as_message

BATCH_ROWS = 8192


def batches(dataset: Dataset) -> Iterator[Any]:
    """Yield what the featuriser takes, in row order, at constant memory."""
    project = dataset.project
    if project.data_kind == DataKind.IMAGE:
        yield from pixel_batches(dataset)
    elif holds_gate_output(dataset):
        yield from _chunks(_passed(dataset).iterator(chunk_size=BATCH_ROWS))
    elif project.data_kind == DataKind.TEXT:
        yield from _chunks(_in_row_order(dataset, "text", blank=""))
    else:
        yield from _chunks(_in_row_order(dataset, "payload", blank=_blank(project)))


def sent_batches(dataset: Dataset, *, first: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Yield texts, or rows of a table as JSON, of some rows of an upload, as an engine takes them."""
    project, some = dataset.project, range(first, stop)
    values: Iterator[Any]
    if holds_gate_output(dataset):
        values = _passed(dataset)[first:stop].iterator(chunk_size=BATCH_ROWS)
    elif project.data_kind == DataKind.TEXT:
        values = _in_row_order(dataset, "text", blank="", some=some)
    else:
        as_json = Cast("payload", TextField())
        values = _in_row_order(dataset, as_json, blank=json.dumps(_blank(project)), some=some)
    yield from map(values_batch, _chunks(values))


def row_count(dataset: Dataset) -> int:
    """Return how many rows the feature file of an upload has."""
    return _passed(dataset).count() if holds_gate_output(dataset) else dataset.row_count


def holds_gate_output(dataset: Dataset) -> bool:
    """Say whether what the features are made of passed a gate."""
    return dataset.project.oracle == Oracle.CROWD and dataset.role == DatasetRole.POOL


def _passed(dataset: Dataset) -> QuerySet[Query, str | None]:
    return Query.objects.filter(gate_run__dataset=dataset).order_by("id").values_list("text", flat=True)


def _in_row_order(dataset: Dataset, field: str | Cast, *, blank: Any, some: range | None = None) -> Iterator[Any]:
    wanted, first = Record.objects.filter(dataset=dataset), 0
    if some is not None:
        wanted, first = wanted.filter(row_number__gte=some.start, row_number__lt=some.stop), some.start
    rows = wanted.order_by("row_number").values_list("row_number", field, "emptied")
    for expected, (row_number, value, emptied) in enumerate(rows.iterator(chunk_size=BATCH_ROWS), start=first):
        if row_number != expected:
            raise ArtifactCorrupt(
                as_message("dataset {pk} has no record for row {expected}", pk=dataset.pk, expected=expected)
            )
        yield blank if emptied else value


def _blank(project: Project) -> dict[str, Any]:
    """Return a row that any featuriser of the project's columns can read; what it makes of it is not kept."""
    return {
        column["name"]: column["categories"][0] if "categories" in column else column.get("low", 0)
        for column in project.columns
    }


def _chunks(values: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(values, BATCH_ROWS)):
        yield chunk
