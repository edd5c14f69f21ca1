import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from annotation.data.services import label_files
from annotation.data.services.label_files import CHUNK, SPANS_ALONE, TABLE_COLUMNS, export_labels
from annotation.errors import InvalidChoice
from annotation.models import Assignment, Label, Query, Record
from annotation.questions.services import labels, queue
from annotation.questions.services.spans import span_set_number
from dpal.spans.formats import SpannedText, read_conll, read_row
from dpal.spans.text import Span
from tests.factories import asked_project, make_annotators, make_project, make_records, open_records

pytestmark = pytest.mark.django_db


def answered(**fields):
    project, _, people = asked_project(2, 2, overlap=2, **fields)
    for person, choices in zip(people, ((0, 1), (0,)), strict=True):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    return project


def whole(project, name, **options):
    return b"".join(export_labels(project=project, format=name, **options))


def test_every_format_says_the_same():
    project = answered()
    rows = list(csv.DictReader(io.StringIO(whole(project, "csv").decode())))
    objects = [json.loads(line) for line in whole(project, "jsonl").decode().splitlines()]
    table = pq.read_table(io.BytesIO(whole(project, "parquet"))).to_pylist()
    assert tuple(rows[0]) == tuple(table[0]) == TABLE_COLUMNS
    assert [name for name in objects[0] if name != "metadata"] == list(TABLE_COLUMNS)
    for name in ("question", "text", "answer", "annotator", "consensus"):
        assert [row[name] or None for row in rows] == [
            None if cell[name] is None else str(cell[name]) for cell in objects
        ]
        assert [row[name] for row in objects] == [row[name] for row in table]
    assert [row["answer"] for row in objects] == ["sport", "sport", "music"]
    assert [row["consensus"] for row in objects] == ["sport", "sport", None]


def test_label_studio_gets_a_task_for_each_question():
    tasks = json.loads(whole(answered(), "label_studio"))
    assert [task["data"] for task in tasks] == [{"text": "record 0"}, {"text": "record 1"}]
    assert [len(task["annotations"]) for task in tasks] == [2, 1]
    result = tasks[0]["annotations"][0]["result"][0]
    assert (result["type"], result["value"]) == ("choices", {"choices": ["sport"]})


def test_an_empty_project_gives_files_that_can_be_read():
    project = make_project()
    assert whole(project, "csv").decode().strip() == ",".join(TABLE_COLUMNS)
    assert whole(project, "jsonl") == b""
    assert pq.read_table(io.BytesIO(whole(project, "parquet"))).num_rows == 0
    assert json.loads(whole(project, "label_studio")) == []


def test_no_cell_is_a_formula():
    project, (query,), (person,) = asked_project(classes=["=1+1", "other", "more"])
    type(query.record).objects.filter(pk=query.record_id).update(text='=HYPERLINK("x")')
    labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    (row,) = csv.DictReader(io.StringIO(whole(project, "csv").decode()))
    assert (row["text"], row["answer"], row["consensus"]) == ('\'=HYPERLINK("x")', "'=1+1", "'=1+1")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", " =", '",=', "\u00a0+"])
def test_whatever_a_cell_begins_with_no_text_of_a_file_is_run(start):
    """The text, the fields, the class and the annotator's name are what somebody else may have chosen."""
    hostile = f"{start}HYPERLINK(0)"
    columns = [{"name": hostile, "categories": [hostile]}]
    project = make_project(classes=[hostile, "other", "more"], data_kind="table", columns=columns)
    (person,) = make_annotators(project, 1)
    type(person).objects.filter(pk=person.pk).update(username=hostile)
    (query,) = open_records(project, 1)
    Record.objects.filter(pk=query.record_id).update(text=hostile, payload={hostile: hostile})
    labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    lines = list(csv.reader(io.StringIO(whole(project, "csv").decode(), newline="")))
    assert len(lines) == 2
    begins = [cell.lstrip()[:1] for line in lines for cell in line]
    assert set(begins).isdisjoint({"=", "+", "-", "@", "\uff1d"})
    assert [cell for line in lines for cell in line if hostile == cell and not hostile.startswith('"')] == []
    (line,) = whole(project, "jsonl").decode().splitlines()
    assert json.loads(line)["text"] == hostile  # only spreadsheets run cells


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet", "label_studio"])
def test_pieces_leave_before_later_rows_are_fetched(name, monkeypatch):
    monkeypatch.setattr(label_files, "CHUNK", 2)
    monkeypatch.setattr(label_files, "PIECE_CHARACTERS", 100)
    fetched = []
    chunks = label_files._chunks

    def counted(project, *, history, count):
        for rows in chunks(project, history=history, count=count):
            fetched.append(len(rows))
            yield rows

    monkeypatch.setattr(label_files, "_chunks", counted)
    project, _, (person,) = asked_project(9)
    for _ in range(9):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    pieces = export_labels(project=project, format=name)
    next(pieces)
    next(pieces)
    assert sum(fetched) <= 6
    assert len(list(pieces)) >= 2
    assert fetched == [2, 2, 2, 2, 1]


def test_checks_stay_out():
    project = answered()
    Query.objects.filter(project=project, consensus=None).update(state="gold")
    assert len(whole(project, "jsonl").splitlines()) == 2


def test_a_changed_answer_is_in_the_history_only():
    project = answered()
    old = Label.objects.get(query__consensus=None)
    Label.objects.filter(pk=old.pk).update(superseded_at=old.created_at)
    Label.objects.create(assignment=old.assignment, query=old.query, annotator=old.annotator, choice=2, supersedes=old)
    assert [json.loads(line)["answer"] for line in whole(project, "jsonl").splitlines()] == ["sport", "sport", "other"]
    history = [json.loads(line) for line in whole(project, "jsonl", history=True).splitlines()]
    assert [(line["answer"], line["current"]) for line in history[2:]] == [("music", False), ("other", True)]


def test_other_projects_stay_out():
    project, other = answered(), answered()
    questions = {json.loads(line)["question"] for line in whole(project, "jsonl").splitlines()}
    assert questions == set(Query.objects.filter(project=project).values_list("pk", flat=True))
    assert questions.isdisjoint(Query.objects.filter(project=other).values_list("pk", flat=True))


@pytest.mark.slow
def test_more_rows_than_one_piece_holds():
    project = make_project()
    (person,) = make_annotators(project, 1)
    queries = open_records(project, CHUNK + 1)
    leases = Assignment.objects.bulk_create(
        Assignment(project=project, query=query, annotator=person, state="labelled", leased_until="2030-01-01T00:00Z")
        for query in queries
    )
    Label.objects.bulk_create(
        Label(assignment=lease, query=lease.query, annotator=person, choice=1) for lease in leases
    )
    assert pq.read_table(io.BytesIO(whole(project, "parquet"))).num_rows == CHUNK + 1
    assert len(json.loads(whole(project, "label_studio"))) == CHUNK + 1


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
