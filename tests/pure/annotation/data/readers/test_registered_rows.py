import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.data.readers import registered as rows
from annotation.data.readers.pseudonyms import Pseudonyms
from annotation.data.readers.registered import (
    TableColumns,
    contributors_of,
    parts_of,
    table_files,
    table_rows,
    texts_of,
)
from annotation.data.readers.stores import FolderTable
from annotation.errors import TableChanged
from dpal.reading.cells import MAXIMUM_TEXT_LENGTH, BadCell, read_contributor, read_text
from privacy.gate.columns import NOBODY
from privacy.gate.engine import PoolFile
from tests.lakes import spoil_pages, write_table

COLUMNS = TableColumns("said", "who")
PEOPLE = Pseudonyms(bytes(32))
LONG = "x" * (MAXIMUM_TEXT_LENGTH + 1)


def rows_of(folder, *, contributors=True, meanwhile=lambda: None):
    store = FolderTable(folder, folder)
    found = list(table_files(store, COLUMNS, lambda: None))
    meanwhile()
    read, first = [], 0
    for number, file in enumerate(found):
        pool = PoolFile(number, file.name, file.sha256, first, file.row_count)
        for batch in table_rows(store, pool, COLUMNS, PEOPLE if contributors else None):
            read += batch.to_pylist()
        first += file.row_count
    return read


def test_rows_come_in_the_order_of_the_files_with_pseudonyms(tmp_path):
    table = write_table(tmp_path / "log", texts=["b", "a", "c"], people=["Ann ", "Bo", "Ann"])
    assert rows_of(table) == [
        {"text": "b", "contributor": PEOPLE.of("Ann")},
        {"text": "a", "contributor": PEOPLE.of("Bo")},
        {"text": "c", "contributor": PEOPLE.of("Ann")},
    ]
    assert rows_of(table, contributors=False) == [{"text": "b"}, {"text": "a"}, {"text": "c"}]


def test_what_an_upload_would_call_bad_is_an_empty_slot_and_changes_no_other(tmp_path):
    texts = ["good", None, "", "  ", "nul\0", LONG, "Stop!", "good", "good", "good"]
    people = ["A", "A", "A", "A", "A", "A", "B", None, "", " "]
    slot = {"text": None, "contributor": NOBODY}
    found = rows_of(write_table(tmp_path / "log", files=1, texts=texts, people=people))
    assert found == [
        {"text": "good", "contributor": PEOPLE.of("A")},
        *[slot] * 5,
        {"text": "Stop!", "contributor": PEOPLE.of("B")},
        *[slot] * 3,
    ]


CELLS = st.lists(st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6), max_size=30)


@given(cells=CELLS)
def test_the_rules_are_those_of_an_upload(cells):
    column = pa.array(cells, pa.string())
    for kept in (column, column.dictionary_encode()):
        assert texts_of(kept).to_pylist() == [or_none(read_text, cell) for cell in cells]
        named = [or_none(lambda cell: read_contributor(cell, required=True), cell) for cell in cells]
        assert contributors_of(kept, PEOPLE).to_pylist() == [PEOPLE.of(name) for name in named]


def or_none(rule, cell):
    try:
        return rule(cell)
    except BadCell:
        return None


def test_a_file_that_changes_while_it_is_read_ends_the_run(tmp_path):
    table = write_table(tmp_path / "log", files=1)
    store = FolderTable(table, table)
    (file,) = table_files(store, COLUMNS, lambda: None)
    reading = table_rows(store, PoolFile(0, file.name, file.sha256, 0, file.row_count), COLUMNS, PEOPLE)
    next(reading)
    (table / "new").write_bytes((table / "part-0.parquet").read_bytes())
    (table / "new").rename(table / "part-0.parquet")
    with pytest.raises(TableChanged, match="The table has changed"):
        list(reading)


@pytest.mark.parametrize(("most", "expected"), [(1, [4, 4, 2]), (7, [4, 6]), (8, [8, 2]), (10, [10]), (10**6, [10])])
def test_a_file_is_cut_between_row_groups_and_its_parts_hold_its_rows_in_their_order(
    monkeypatch, tmp_path, most, expected
):
    monkeypatch.setattr(rows, "TASK_ROWS", most)
    texts, people = [f"text {number}" for number in range(10)], [f"P{number % 3}" for number in range(10)]
    table = write_table(tmp_path / "log", files=1, texts=texts, people=people, row_group_size=4)
    store = FolderTable(table, table)
    (file,) = table_files(store, COLUMNS, lambda: None)
    assert file.group_rows == (4, 4, 2)
    whole = PoolFile(0, file.name, file.sha256, 90, file.row_count)
    parts = list(parts_of(whole, file.group_rows))
    assert [part.row_count for part in parts] == expected
    assert [part.first_row for part in parts] == [90 + sum(expected[:place]) for place in range(len(expected))]
    found = [row for part in parts for batch in table_rows(store, part, COLUMNS, PEOPLE) for row in batch.to_pylist()]
    assert found == rows_of(table)
    assert [row["text"] for row in found] == texts


def test_spoiled_pages_quote_nothing(tmp_path):
    table = write_table(tmp_path / "log", files=1)
    spoil_pages(table)
    with pytest.raises(TableChanged) as refused:
        rows_of(table)
    assert str(refused.value) == "address: a file of the table is no Parquet file, or is cut off or encrypted"


def test_a_footer_that_lies_about_its_rows_is_refused(tmp_path):
    table = write_table(tmp_path / "log", files=1)
    store = FolderTable(table, table)
    (file,) = table_files(store, COLUMNS, lambda: None)
    short = PoolFile(0, file.name, file.sha256, 0, file.row_count - 1)
    with pytest.raises(TableChanged, match="cut off or encrypted"):
        list(table_rows(store, short, COLUMNS, None))
