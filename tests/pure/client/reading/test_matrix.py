"""Every container with every kind of label at every door that needs no database."""

import contextlib
import csv
import gzip
import io
import json
import re
import unicodedata
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.data.readers.detection import detect_file, labels_of
from annotation.data.readers.reading import Upload
from annotation.errors import InvalidUpload
from dpal import tables
from dpal.errors import DpalError
from dpal.reading.labels import LabelNames
from dpal.reading.rows import Layout
from learner.simulation.reading import FileColumns, read_task
from tests.in_process import reading_here
from tests.workbooks import sheet, workbook

CLASSES = ("café", "1", "-1", "true")
# Of each kind of cell the labels of six records, and the classes that they mean.
CELLS = {
    "texts": (["café", "1", "-1", "true", "café", "1"], [0, 1, 2, 3, 0, 1]),
    "case": (["CAFÉ", "café", "Café", "TRUE", "True", "true"], [0, 0, 0, 3, 3, 3]),
    "unicode": ([unicodedata.normalize("NFD", "café"), "\u200bcafé", "café ", "1", "-1", "1"], [0, 0, 0, 1, 2, 1]),
    "numbers": ([1, -1, 1, -1, 1, -1], [1, 2, 1, 2, 1, 2]),
    "whole floats": ([1.0, -1.0, 1.0, -1.0, 1.0, 1.0], [1, 2, 1, 2, 1, 1]),
    "truth": ([True, True, True, True, True, True], [3] * 6),
    "lists": ([["café"], ["1"], ["-1"], ["true"], ["café"], ["1"]], [0, 1, 2, 3, 0, 1]),
}
TEXTS = [f"a message of some words {number}" for number in range(6)]


def lines(cells, delimiter=","):
    written = io.StringIO(newline="")
    rows = [json.dumps(cell) if isinstance(cell, list) else cell for cell in cells]
    csv.writer(written, delimiter=delimiter).writerows([["text", "label"], *zip(TEXTS, rows, strict=True)])
    return written.getvalue().encode()


def objects(cells):
    return [{"text": text, "label": cell} for text, cell in zip(TEXTS, cells, strict=True)]


def packed(content, name):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return sink.getvalue()


def parquet(cells):
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": TEXTS, "label": cells}), sink)
    return sink.getvalue()


def spreadsheet(cells):
    rows = [[json.dumps(cell)] if isinstance(cell, list) else [cell] for cell in cells]
    return workbook({"A": sheet([["text", "label"], *([text, *row] for text, row in zip(TEXTS, rows, strict=True))])})


def tasks(cells):
    def value(cell):
        return cell if isinstance(cell, list) else [cell]

    return json.dumps(
        [
            {
                "data": {"text": text},
                "annotations": [
                    {"result": [{"from_name": "label", "type": "choices", "value": {"choices": value(cell)}}]}
                ],
            }
            for text, cell in zip(TEXTS, cells, strict=True)
        ]
    ).encode()


def pairs(cells):
    """Return texts with labels as tools write them that only know texts."""
    named = [str(cell[0]) if isinstance(cell, list) else str(cell) for cell in cells]
    return list(zip(TEXTS, named, strict=True))


def class_label(cells):
    names = sorted({name for _, name in pairs(cells)})
    feature = {"names": names, "_type": "ClassLabel"}
    known = {b"huggingface": json.dumps({"info": {"features": {"label": feature}}}).encode()}
    numbers = [names.index(name) for _, name in pairs(cells)]
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": TEXTS, "label": numbers}).replace_schema_metadata(known), sink)
    return sink.getvalue()


def prodigy(cells):
    rows = [{"text": text, "accept": [name], "answer": "accept", "_task_hash": 1} for text, name in pairs(cells)]
    return "\n".join(map(json.dumps, [*rows, rows[0] | {"answer": "ignore"}])).encode()


CONTAINERS = {
    "rows.csv": lines,
    "rows.tsv": lambda cells: lines(cells, "\t"),
    "semicolons.csv": lambda cells: b"\xef\xbb\xbfsep=;\r\n" + lines(cells, ";"),
    "wide.csv": lambda cells: lines(cells).decode().encode("utf-16"),
    "rows.csv.gz": lambda cells: gzip.compress(lines(cells)),
    "rows.csv.zip": lambda cells: packed(lines(cells), "out/rows.csv"),
    "rows.jsonl": lambda cells: "\n".join(map(json.dumps, objects(cells))).encode(),
    "packed.zip": lambda cells: packed(json.dumps(objects(cells)), "rows.json"),
    "list.json": lambda cells: json.dumps(objects(cells)).encode(),
    "wrapped.json": lambda cells: json.dumps({"count": 6, "rows": objects(cells)}).encode(),
    "columns.json": lambda cells: json.dumps({"text": TEXTS, "label": cells}).encode(),
    "indented.jsonl": lambda cells: "\n".join(json.dumps(row, indent=2) for row in objects(cells)).encode(),
    "rows.parquet": parquet,
    "class_label.parquet": class_label,
    "fasttext.txt": lambda cells: "\n".join(f"__label__{name.strip()} {text}" for text, name in pairs(cells)).encode(),
    "spacy.json": lambda cells: json.dumps([[text, {"cats": {name: 1.0}}] for text, name in pairs(cells)]).encode(),
    "rows.xlsx": spreadsheet,
    "tasks.json": tasks,
}


def by_upload(path):
    layout = Layout(kind="text", text="text", label="label", classes=CLASSES)
    with path.open("rb") as file:
        batches = list(Upload(file, path.name, layout, maximum_bytes=10**6).batches())
    assert [row for batch in batches for row in batch.bad] == []
    return [(text, label) for batch in batches for text, label in zip(batch.texts, batch.labels, strict=True)]


def by_opening(path):
    with path.open("rb") as file:
        found = detect_file(file, path.name, maximum_bytes=10**6, labelled=True)
        labels = labels_of(
            file, path.name, columns=["label"], reading=found.reading, shape=found.shape, maximum_bytes=10**6
        )
    return {LabelNames(CLASSES).place(value) for value in labels.counts}


def by_simulation(path):
    task = read_task(path, test=path, columns=FileColumns(), settings={}, label_counts=[1], seeds=1)
    return [LabelNames(CLASSES).place(task.classes[label]) for label in task.labels]


def by_prediction(path):
    with tables.opened(str(path), tables.format_of(str(path), None), 4) as (_, batches):
        return [row["text"] for batch in batches for row in batch]


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("name", CONTAINERS)
def test_a_label_means_the_same_in_every_file_at_every_door(tmp_path, name, kind):
    cells, meant = CELLS[kind]
    path = tmp_path / name
    path.write_bytes(CONTAINERS[name](cells))
    # How a cell of each kind comes back from another process, two containers tell.
    with contextlib.nullcontext() if name in ("rows.jsonl", "rows.parquet") else reading_here():
        assert by_upload(path) == list(zip(TEXTS, meant, strict=True))
        assert by_opening(path) == set(meant)
        if len(set(meant)) > 1:
            assert by_simulation(path) == meant
    if name != "wide.csv":
        assert by_prediction(path) == TEXTS


TITLED = [
    ["Export of May"],
    ["text", "label"],
    *([text, name] for text, name in zip(TEXTS, [*"1111", "true", "true"], strict=True)),
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("titled.xlsx", workbook({"A": sheet(TITLED)})),
        ("titled.csv", "\n".join(",".join(row) for row in TITLED).encode()),
    ],
)
def test_rows_before_the_header_are_skipped_at_every_door(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    columns = FileColumns(skip_rows=1)
    task = read_task(path, test=path, columns=columns, settings={}, label_counts=[1], seeds=1)
    with tables.opened(str(path), tables.format_of(str(path), None), 9, skip_rows=1) as (_, batches):
        read = [row["text"] for batch in batches for row in batch]
    layout = Layout(kind="text", text="text", label="label", classes=CLASSES, skip_rows=1)
    with path.open("rb") as file:
        uploaded = [text for batch in Upload(file, name, layout, maximum_bytes=10**6).batches() for text in batch.texts]
    assert list(task.texts) == read == uploaded == TEXTS


def test_ignored_tasks_of_prodigy_have_no_label(tmp_path):
    cells, meant = CELLS["texts"]
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(prodigy(cells))
    layout = Layout(kind="text", text="text", label="label", classes=CLASSES)
    with path.open("rb") as file:
        (batch,) = Upload(file, path.name, layout, maximum_bytes=10**6).batches()
    assert (batch.labels, [(row.line, row.column) for row in batch.bad]) == (meant, [(7, "label")])
    assert (by_opening(path), by_simulation(path)) == (set(meant), meant)


# Of each file that no door can read, the sentence that every door gives.
REFUSED = {
    "split.json": (json.dumps({"train": [["a", "b"]], "test": [["c", "d"]]}).encode(), "several lists (train, test)"),
    "pairs.json": (json.dumps([["a message", "café"]] * 2).encode(), "is a list of lists; write an object a line"),
    "cut.jsonl": (b'{"text": "a \\ud83d", "label": "1"}\n' * 2, "half of a character"),
    "cyrillic.csv": ("text,label\nэто,1\nдругое,true\n".encode("windows-1251"), "not valid in the file's encoding"),
    "twice.csv": (b"text,text,label\na,b,1\nc,d,true\n", "more than one column named 'text'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_alike_at_every_door(tmp_path, name):
    content, reason = REFUSED[name]
    path = tmp_path / name
    path.write_bytes(content)
    layout = Layout(kind="text", text="text", label="label", classes=CLASSES)

    def uploaded():
        with path.open("rb") as file:
            batches = list(Upload(file, path.name, layout, maximum_bytes=10**6).batches())
        assert sum(batch.count for batch in batches) == 0
        raise ValueError(batches[0].bad[0].reason)

    for door in (uploaded, lambda: by_simulation(path), lambda: by_prediction(path)):
        with pytest.raises((ValueError, DpalError, InvalidUpload), match=re.escape(reason)):
            door()


def test_a_test_file_of_a_simulation_needs_no_contributor(tmp_path):
    pool, rest = tmp_path / "pool.csv", tmp_path / "test.csv"
    pool.write_text("text,label,who\none,a,p1\ntwo,b,p2\n")
    rest.write_text("text,label\nthree,A\nfour,b\n")
    columns = FileColumns(contributor="who")
    task = read_task(pool, test=rest, columns=columns, settings={}, label_counts=[1], seeds=1)
    assert task.contributors == ("p1", "p2")
    np.testing.assert_array_equal(task.labels, task.test_labels)
