"""Spans of other tools arrive as lists of start, end and label in the column of labels."""

import io
import json

import pytest

from dpal.reading.foreign import row_of_prodigy
from dpal.reading.label_studio import NO_ANSWER, TIE, LabelStudioReader
from dpal.reading.rows import Layout
from dpal.reading.sources import TextSource
from dpal.spans.formats import SpannedText, write_label_studio, write_prodigy
from dpal.spans.text import Span

TEXT = "call Anna on monday"
ANNA, MONDAY = Span(5, 9, "person"), Span(13, 19, "date")


def task(*answers, **said):
    """Return a task that people, from 1, annotated with spans."""
    annotations = []
    for person, spans in enumerate(answers, start=1):
        (made,) = write_label_studio(SpannedText(TEXT, tuple(spans)))["annotations"]
        annotations.append({**made, "completed_by": person, **said})
    return {"data": {"text": TEXT}, "annotations": annotations}


def read(*tasks):
    """Read tasks behind one that shows which control marks spans."""
    data = json.dumps([task([ANNA]), *tasks]).encode()
    source = TextSource(io.BytesIO(data), compressed=False, maximum_bytes=10**6)
    reader = LabelStudioReader(source, Layout(kind="text", text="text", label="label"))
    (batch,) = reader.batches()
    return [sorted(json.loads(cell)) for cell in batch.columns["label"][1:]], [str(bad.reason) for bad in batch.bad]


@pytest.mark.parametrize("spans", [[], [ANNA], [ANNA, MONDAY]])
def test_spans_of_label_studio_are_read(spans):
    wanted = [[span.start, span.end, span.type] for span in spans]
    assert read(task(spans)) == ([wanted], [])


def test_several_people_must_agree_on_all_spans_and_a_task_needs_an_answer():
    assert read(task([ANNA], [ANNA], [MONDAY])) == ([[[5, 9, "person"]]], [])
    assert read(task([ANNA], [ANNA, MONDAY])) == ([], [str(TIE)])
    assert read(task()) == ([], [str(NO_ANSWER)])
    assert read(task([ANNA], was_cancelled=True)) == ([], [str(NO_ANSWER)])


def test_spans_of_prodigy_are_labels_and_rejected_tasks_have_none():
    row = write_prodigy(SpannedText(TEXT, (ANNA,))) | {"_task_hash": 1}
    assert row_of_prodigy(row)["label"] == [{"start": 5, "end": 9, "label": "person"}]
    assert row_of_prodigy(row | {"spans": []})["label"] == []
    assert row_of_prodigy(row | {"answer": "reject"})["label"] is None
