"""The rows of an upload as they are stored, in the database or as columns in storage."""

from annotation.data.services import pool_files
from annotation.models import Dataset, PoolPart
from privacy.gate.columns import NOBODY
from tests.factories import Record


def stored_rows(dataset: Dataset) -> list[tuple[int, str | None, bytes | None]]:
    """Return row number, text and pseudonym of every row; an empty slot has neither."""
    if not dataset.in_columns:
        found = Record.objects.filter(dataset=dataset).order_by("row_number")
        rows = found.values_list("row_number", "text", "contributor", "emptied")
        return [(row, None if gone else text, who and bytes(who)) for row, text, who, gone in rows]
    batches = pool_files.records(dataset)
    texts = [(row["text"], row["contributor"]) for batch in batches for row in batch.to_pylist()]
    return [(number, text, None if who == NOBODY else who) for number, (text, who) in enumerate(texts)]


def emptied_slots(dataset: Dataset) -> list[int]:
    return [number for number, text, _who in stored_rows(dataset) if text is None]


def digests(dataset: Dataset) -> list[str]:
    return list(PoolPart.objects.filter(dataset=dataset).order_by("number").values_list("sha256", flat=True))
