"""Storing the spans of public files under the numbers of answers."""

from collections.abc import Sequence
from typing import Any

from annotation.models import Dataset, Record
from annotation.questions.services.spans import span_set_number
from dpal.spans.text import read


def number_spans(*, dataset: Dataset, found: Sequence[tuple[str, str]], **_signal: Any) -> None:
    """Label a dataset's records with their spans, as they are written, in the order of its rows."""
    texts = {stored: text for text, stored in found}
    numbers = {stored: span_set_number(dataset.project, read(stored), text) for stored, text in texts.items()}
    rows = list(Record.objects.filter(dataset=dataset).order_by("row_number").only("pk")) if found else []
    for record, (_text, stored) in zip(rows, found, strict=True):
        record.label = numbers[stored]
    Record.objects.bulk_update(rows, ["label"], batch_size=1000)
