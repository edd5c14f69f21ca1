"""What an upload has to offer, which column is guessed for what, and the first rows as they would be read."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.data.readers.guessing import guess_columns
from annotation.data.readers.preview import PreviewCell, PreviewRow, preview_of
from annotation.data.readers.reading import Upload
from annotation.data.readers.shapes import shape_of
from annotation.errors import InvalidUpload
from dpal.reading import cells, labels
from dpal.reading.formats import Format
from dpal.reading.rows import Layout
from dpal.reading.shapes import FileShape
from tests.pure.annotation.data.readers.test_parsers import GREY, archive, png

TEXT = Layout(kind="text", text="text", label="label", classes=("ham", "spam"))
TABLE = Layout(
    kind="table",
    declared=({"name": "age", "low": 0, "high": 100}, {"name": "job", "categories": ["cook"]}),
    sources={"age": "Age"},
)


def parquet(**columns):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def shape(data, name="a.csv", **options):
    return shape_of(io.BytesIO(data), name, maximum_bytes=10**9, **options)


def preview(data, layout, name="a.csv", **options):
    return preview_of(Upload(io.BytesIO(data), name, layout, maximum_bytes=10**9), layout, **options)


TASKS = json.dumps(
    [
        {"data": {"text": "a", "who": "b"}, "annotations": []},
        {
            "data": {"text": "b", "note": 1},
            "annotations": [
                {"completed_by": 4, "result": [{"from_name": "topic", "type": "choices", "value": {"choices": ["x"]}}]}
            ],
        },
    ]
).encode()


@pytest.mark.parametrize(
    ("data", "name", "options", "expected"),
    [
        (b"id,text\n1,a\n", "a.csv", {}, FileShape(Format.CSV, ("id", "text"), ",")),
        (b"\n id ; text, long ; x\n", "a.csv", {}, FileShape(Format.CSV, ("id", "text, long", "x"), ";")),
        (b"a\tb\n", "a.tsv", {}, FileShape(Format.TSV, ("a", "b"), "\t")),
        (b"a;b|c\n", "a.csv", {"delimiter": "|"}, FileShape(Format.CSV, ("a;b", "c"), "|")),
        (b"ham\thello\n", "a", {"has_header": False}, FileShape(Format.CSV, ("1", "2"), "\t")),
        (b'a "b",c\n', "a.csv", {"quoting": False}, FileShape(Format.CSV, ('a "b"', "c"), ",")),
        (
            gzip.compress(b'{"a": 1}\n{"b": 2}\nno\n', mtime=0),
            "a.jsonl.gz",
            {},
            FileShape(Format.JSON_LINES, ("a", "b")),
        ),
        (parquet(a=[1], b=["x"]), "a", {}, FileShape(Format.PARQUET, ("a", "b"))),
        (archive(**{"a.png": png(GREY)}), "a.zip", {}, FileShape(Format.IMAGES, ("file",))),
        (TASKS, "a.json", {}, FileShape(Format.TASKS, ("text", "who", "note"), None, ("topic",), ("4",))),
    ],
)
def test_what_a_file_has_to_offer(data, name, options, expected):
    assert shape(data, name, **options) == expected


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "is empty"), (b"\n\n", "no rows"), (b"PAR1 no", "damaged"), (b"[]", "no rows")]
)
def test_what_offers_nothing_is_refused(data, message):
    with pytest.raises(InvalidUpload, match=message):
        shape(data, "a.json")


@pytest.mark.parametrize(
    ("columns", "layout", "controls", "expected"),
    [
        (("id", "text"), TEXT, (), {"text": "text"}),
        (("ID", "Message Body", "Utterance", "Class"), TEXT, (), {"text": "Utterance", "label": "Class"}),
        (("words",), TEXT, (), {"text": "words"}),
        (("id", "words"), TEXT, (), {}),
        (("text", "label"), TEXT, ("topic",), {"text": "text", "label": "topic"}),
        (("text", "label"), TEXT, ("one", "two"), {"text": "text"}),
        (("AGE", "the_job", "Job"), TABLE, (), {"features": {"age": "AGE", "job": "Job"}}),
        (("text", "user_id"), Layout(kind="text", text="text"), (), {"text": "text"}),
        (
            ("text", "User-ID"),
            Layout(kind="text", text="text", contributor="contributor"),
            (),
            {"text": "text", "contributor": "User-ID"},
        ),
        (("image", "y"), Layout(kind="image", pixels="pixels", label="label"), (), {"pixels": "image", "label": "y"}),
    ],
)
def test_columns_are_guessed_from_their_names(columns, layout, controls, expected):
    assert guess_columns(columns, layout, controls=controls) == expected


def test_the_first_rows_with_every_bad_cell():
    data = b"text,label\nhello,ham\n,opera\n\none field\n\xff,spam\n" + b"more,ham\n" * 50
    seen = preview(data, TEXT, most=5)
    assert [column.role for column in seen.columns] == ["text", "label"]
    assert seen.rows == (
        PreviewRow(2, (PreviewCell("hello"), PreviewCell("ham"))),
        PreviewRow(3, (PreviewCell("", cells.EMPTY), PreviewCell("opera", labels.NOT_A_CLASS))),
        PreviewRow(5, (), "has 1 field where the header names 2"),
        PreviewRow(6, (PreviewCell("?", cells.NOT_UTF8), PreviewCell("spam"))),
        PreviewRow(7, (PreviewCell("more"), PreviewCell("ham"))),
    )
    assert seen.bad_count == 3


def test_spans_are_shown_with_their_text_and_those_beyond_the_words_that_are_labelled_are_counted():
    layout = Layout(kind="text", text="text", label="spans", classes=("name",), spans=True)
    text = "Olga comes " + "and waits " * 20
    rows = [
        {"text": text, "spans": [[0, 4, "name"], [len(text) - 6, len(text) - 1, "name"]]},
        {"text": "Olga", "spans": [[0, 9, "name"]]},
    ]
    found = preview("".join(json.dumps(row) + "\n" for row in rows).encode(), layout, name="a.jsonl")
    assert [row.cells[1].value for row in found.rows] == ['[[0,4,"name"]]', "[[0, 9, 'name']]"]
    assert [row.is_bad for row in found.rows] == [False, True]
    assert (found.cut_spans, str(found.left_out)) == (1, "1 span beyond the first 32 words left out")
