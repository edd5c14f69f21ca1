import io
import json

import pyarrow.parquet as pq
import pytest

from annotation.data.services.label_files import SPANS_ALONE, export_labels
from annotation.errors import InvalidChoice
from annotation.questions.services import labels, queue
from annotation.questions.services.spans import span_set_number
from dpal.spans.formats import SpannedText, read_conll, read_row
from dpal.spans.text import Span
from tests.factories import make_annotators, make_project, make_records

pytestmark = pytest.mark.django_db
TEXTS = ["Ada flew to São Paulo", "nobody 😀 “here”"]
MARKED = [(Span(0, 3, "name"), Span(12, 21, "place")), ()]
ROWS = [SpannedText(*both) for both in zip(TEXTS, MARKED, strict=True)]


@pytest.fixture
def project(db):
    project = make_project(question_kind="spans", classes=["name", "place"])
    records = make_records(project, TEXTS)
    queue.open_queries(project=project, round_number=1, record_ids=[one.pk for one in records])
    (person,) = make_annotators(project, 1)
    for _text in TEXTS:
        held = queue.claim_next(project=project, user=person)
        text = held.query.record.text
        number = span_set_number(project, MARKED[TEXTS.index(text)], text)
        labels.submit_label(assignment=held, choice=number)
    return project


def written(project, name):
    return b"".join(export_labels(project=project, format=name)).decode()


@pytest.mark.parametrize("name", [*SPANS_ALONE, "jsonl", "label_studio"])
def test_what_is_written_is_read_without_loss(project, name):
    content = written(project, name)
    if name == "conll":
        found = list(read_conll(content.splitlines()))
    elif name == "label_studio":
        found = [read_row(row) for row in json.loads(content)]
    else:
        rows = [json.loads(line) for line in content.splitlines()]
        found = [read_row({"text": row["text"], "spans": row["answer"]} if name == "jsonl" else row) for row in rows]
    assert sorted(found) == sorted(ROWS)


def test_tables_have_them_as_json(project):
    table = pq.read_table(io.BytesIO(b"".join(export_labels(project=project, format="parquet")))).to_pylist()
    plain = [{"start": 0, "end": 3, "label": "name"}, {"start": 12, "end": 21, "label": "place"}]
    said = [(json.loads(row["answer"]), json.loads(row["consensus"])) for row in table]
    assert sorted(said) == [([], []), (plain, plain)]
    assert '""label"": ""place""' in written(project, "csv")


def test_other_projects_have_no_such_file():
    with pytest.raises(InvalidChoice):
        export_labels(project=make_project(), format="conll")
