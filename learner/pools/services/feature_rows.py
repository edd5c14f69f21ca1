"""What a featuriser is given of an upload, in the order of its rows."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from annotation.models import DataKind, Dataset, DatasetRole, Oracle, Project, Query, Record
from learner.errors import ArtifactCorrupt
from learner.pools.services.pixels import pixel_batches
from privacy.wording import say

BATCH_ROWS = 8192


def batches(dataset: Dataset, *, first: int = 0, stop: int | None = None) -> Iterator[Any]:
    """Yield what the featuriser takes, in row order, at constant memory; of texts and tables perhaps some rows only."""
    project = dataset.project
    if project.data_kind == DataKind.IMAGE:
        yield from pixel_batches(dataset)
    elif holds_gate_output(dataset):
        passed = Query.objects.filter(gate_run__dataset=dataset).order_by("id").values_list("text", flat=True)
        yield from _chunks(passed.iterator(chunk_size=BATCH_ROWS))
    else:
        field = "text" if project.data_kind == DataKind.TEXT else "payload"
        yield from _chunks(_in_row_order(dataset, field, first, stop))


def holds_gate_output(dataset: Dataset) -> bool:
    """Say whether what the features are made of passed a gate."""
    return dataset.project.oracle == Oracle.CROWD and dataset.role == DatasetRole.POOL


def _in_row_order(dataset: Dataset, field: str, first: int, stop: int | None) -> Iterator[Any]:
    blank = _blank(dataset.project) if field == "payload" else ""
    wanted = Record.objects.filter(dataset=dataset, row_number__gte=first)
    if stop is not None:
        wanted = wanted.filter(row_number__lt=stop)
    rows = wanted.order_by("row_number").values_list("row_number", field, "emptied")
    for expected, (row_number, value, emptied) in enumerate(rows.iterator(chunk_size=BATCH_ROWS), start=first):
        if row_number != expected:
            raise ArtifactCorrupt(
                say("dataset {pk} has no record for row {expected}", pk=dataset.pk, expected=expected)
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
