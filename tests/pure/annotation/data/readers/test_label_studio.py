"""A Label Studio project becomes rows: what was answered, by whom, which task is bad and why."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.data.readers import checks
from annotation.data.readers.reading import Upload, detect_format
from annotation.errors import InvalidUpload
from dpal.reading import cells, label_studio, labels
from dpal.reading.formats import Format
from dpal.reading.rows import BadRow, Layout

TEXT = Layout(kind="text", text="text")
LABELLED = Layout(kind="text", text="text", label="topic", classes=("sport", "music"))


def task(text, *answers, **fields):
    """Return a task of a full export; an answer is a class, or a class and who gave it, or a whole annotation."""
    annotations = []
    for answer in answers:
        if isinstance(answer, dict):
            annotations.append(answer)
            continue
        choice, person = answer if isinstance(answer, tuple) else (answer, 1)
        annotations.append(annotation(choice, completed_by=person))
    return {"id": 1, "data": {"text": text}, "annotations": annotations, **fields}


def annotation(choice, **fields):
    item = {"from_name": "topic", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
    return {"id": 7, "was_cancelled": False, "result": [item]} | fields


def flat(number, text, topic, annotator=1, **fields):
    return {"id": number, "text": text, "topic": topic, "annotator": annotator, "annotation_id": 5} | fields


def read(tasks, layout=TEXT):
    data = tasks if isinstance(tasks, bytes) else json.dumps(tasks).encode()
    batches = list(Upload(io.BytesIO(data), "export.json", layout, maximum_bytes=10**9).batches())
    rows = []
    for batch in batches:
        cells = batch.texts if batch.texts is not None else batch.payloads
        rows += list(cells) if batch.labels is None else list(zip(cells, batch.labels, strict=True))
    return rows, [bad for batch in batches for bad in batch.bad]


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b'[{"id": 1}]', "export.json", Format.TASKS),
        (b'\xef\xbb\xbf\n [\n {"id": 1}]', "export.json", Format.TASKS),
        (b'[\n{"id": 1}]', "", Format.TASKS),
        (b"[]", "export.json", Format.TASKS),
        (b"[CLS] hello,1\n", "tokens", Format.CSV),
        (b"[1, 2]\n", "rows.csv", Format.CSV),
        (b"[1, 2]\n", "rows.json", Format.TASKS),
        (b"[1, 2]\n", "rows.jsonl", Format.JSON_LINES),
        (b'{"text": "a"}\n', "rows.json", Format.JSON_LINES),
    ],
)
def test_a_list_of_tasks_is_told_from_other_files(head, name, kind):
    assert detect_format(io.BytesIO(head), name)[0] is kind


def test_answers_become_labels_by_majority():
    tasks = [task("a", "music"), task("b", "sport", "music", "sport"), {"data": {"text": "c"}, "completions": []}]
    tasks[2]["completions"] = [annotation("sport")]
    assert read(tasks, LABELLED) == ([("a", 1), ("b", 0), ("c", 0)], [])


def test_bad_tasks_are_named_by_their_place_and_the_reason():
    two = annotation("sport")
    two["result"][0]["value"]["choices"] = ["sport", "music"]
    tasks = [
        task("good", "sport"),
        task("unanswered"),
        task("taken back", annotation("sport", was_cancelled=True)),
        task("tied", annotation("sport", completed_by=1), annotation("music", completed_by=2)),
        task("several", two),
        task("secret word", "secret class"),
        "secret text",
        task("", "sport"),
        {"data": {"body": "x"}, "annotations": [annotation("sport")]},
        task([5], "sport"),
        task("another control", annotation("sport", result=[{"from_name": "mood", "type": "choices"}])),
        task("odd", {"result": None}, {"result": [None, {}]}, annotation(None), annotation("sport", completed_by=[])),
    ]
    rows, bad = read(tasks, LABELLED)
    assert rows == [("good", 0), ("odd", 0)]
    assert bad == [
        BadRow(2, "topic", label_studio.NO_ANSWER),
        BadRow(3, "topic", label_studio.NO_ANSWER),
        BadRow(4, "topic", label_studio.TIE),
        BadRow(5, "topic", labels.SEVERAL),
        BadRow(6, "topic", labels.NOT_A_CLASS),
        BadRow(7, "", "is not a JSON object"),
        BadRow(8, "text", cells.EMPTY),
        BadRow(9, "text", "is missing"),
        BadRow(10, "text", cells.NOT_TEXT),
        BadRow(11, "topic", label_studio.NO_ANSWER),
    ]
    assert "secret" not in str(bad)


def test_a_table_is_read_from_the_data_of_the_tasks():
    layout = Layout(kind="table", declared=({"name": "age", "low": 0, "high": 9},), sources={"age": "Age (years)"})
    tasks = [{"data": {"Age (years)": 3}}, {"data": {"Age (years)": "x"}}]
    assert read(tasks, layout) == ([{"age": 3}], [BadRow(2, "Age (years)", checks.NOT_A_NUMBER)])


@pytest.mark.parametrize(
    ("data", "layout", "message"),
    [
        (b"[]", TEXT, "holds no rows"),
        (b"[1, 2]", TEXT, "holds no rows"),
        (b'[{"data": {"text": "a"}}\n', TEXT, "after task 1"),
        (b'[{"data": {"text": "a"}},]', TEXT, "after task 1"),
        (b'[{"data": {"text": "a"}} {"data"', TEXT, "after task 1"),
        (b'[{"data": {"text": "a"}}] [', TEXT, "after task 1"),
        (b'[{"data": {"text": "secret', TEXT, "after task 0"),
        (b"[" * 100_000, TEXT, "after task 0"),
        (b'[{"data": {"body": "a"}}]', TEXT, "text: the file has no column named 'text'"),
        (
            json.dumps([task("a", "sport")]).encode(),
            Layout(kind="text", text="text", label="mood", classes=("a",)),
            "label: the file has no column named 'mood'",
        ),
        (b'[{"data": {"text": "a"}}]', Layout(kind="text", text="text", label="text"), "label: names the field"),
        (b'[{"data": {"image": "/a.png"}}]', Layout(kind="image", height=1, width=1), "only name images"),
    ],
)
def test_what_cannot_be_read_is_refused_by_rule(data, layout, message):
    with pytest.raises(InvalidUpload, match=message) as refusal:
        read(data, layout)
    assert "secret" not in str(refusal.value)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=20),
    st.sampled_from([None, 1, 4]),
    st.integers(3, 64),
)
def test_tasks_split_anywhere_between_pieces_stay_whole(texts, indent, size):
    data = json.dumps([task(text, "sport") for text in texts], indent=indent, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpal.reading.sources.CHUNK_BYTES", size)
        rows, bad = read(data)
    good = [text for text in texts if text.strip() and "\0" not in text]
    assert (rows, len(bad)) == (good, len(texts) - len(good))


def test_the_newest_answer_of_a_person_counts():
    changed = [annotation("music", completed_by=1), annotation("sport", completed_by=1)]
    dated = [
        annotation("sport", completed_by=1, created_at="2024-05-02"),
        annotation("music", completed_by=1, created_at="2024-05-01"),
    ]
    rows, bad = read([task("a", *changed), task("b", *dated)], LABELLED)
    assert (rows, bad) == ([("a", 0), ("b", 0)], [])
