import io
import json

import pytest

from dpal.errors import Unreadable
from dpal.reading.json_values import json_rows
from dpal.reading.sources import TextSource

ROWS = [{"text": "one", "label": "a"}, {"text": "two, [x]", "label": 1}, {"text": "", "label": None}]
FORMS = {
    "list": json.dumps(ROWS),
    "indented list": json.dumps(ROWS, indent=2),
    "objects": "\n".join(json.dumps(row, indent=1) for row in ROWS),
    "wrapped": json.dumps({"version": 1, "data": ROWS}),
    "columns": json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}),
    "columns by row": json.dumps({name: {str(at): row[name] for at, row in enumerate(ROWS)} for name in ROWS[0]}),
}


def rows(text, chunk_bytes=1024):
    source = TextSource(io.BytesIO(text.encode()), compressed=False, maximum_bytes=10**6, chunk_bytes=chunk_bytes)
    return list(json_rows(source))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk", [1, 7, 1024])
def test_every_form_of_rows_is_read(form, chunk):
    assert rows(FORMS[form], chunk) == ROWS


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[1,]",
        "[1 2]",
        '[{"a": 1}',
        '[{"a": 1}] x',
        '{"a": 1',
        '{"a": 1} {',
        "[1}",
        '{"a": 1}, {"a": 2}',
        "[" * 9999,
    ],
)
def test_broken_json_is_refused(text):
    with pytest.raises(Unreadable, match="not valid JSON"):
        rows(text)


def test_an_object_with_several_lists_names_them_and_the_form_that_is_read():
    with pytest.raises(Unreadable, match=r'lists \(train, test\).*\{"text": "first", "label": "a"\}'):
        rows(json.dumps({"train": [["one", "a"]], "test": [["two", "b"]]}))


def test_lists_of_lists_are_refused_by_an_example():
    with pytest.raises(Unreadable, match=r'list of lists.*"label": "a"'):
        rows('[["one", "a"], ["two", "b"]]')


def test_categories_of_spacy_are_labels():
    assert rows('[["one", {"cats": {"a": 1.0, "b": 0.2, "c": 0.5}}]]') == [{"text": "one", "label": ["a", "c"]}]


def test_entities_of_spacy_are_spans():
    assert rows('[["one", {"entities": [[0, 3, "X"]]}]]') == [{"text": "one", "label": [[0, 3, "X"]]}]


def test_a_single_object_without_rows_is_a_row():
    assert rows('{"text": "one", "tags": ["x", "y"]}') == [{"text": "one", "tags": ["x", "y"]}]
    assert rows('{"data": {"text": "one"}, "annotations": [{"result": []}]}') == [
        {"data": {"text": "one"}, "annotations": [{"result": []}]}
    ]
