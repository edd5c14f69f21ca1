import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.data.readers import registered as footers
from annotation.data.readers.registered import TableColumns, snapshot_of, table_files
from annotation.data.readers.stores import FolderTable
from annotation.errors import InvalidUpload
from tests.lakes import spoil_pages, write_table

COLUMNS = TableColumns("said", "who")
SECRET = bytes(32)


def files(folder, columns=COLUMNS):
    return list(table_files(FolderTable(folder, folder), columns, lambda: None))


class Counted(FolderTable):
    def __init__(self, place):
        super().__init__(place, place)
        self.ranges = []

    def read(self, file, start, length):
        self.ranges.append((file, start, length))
        return super().read(file, start, length)


def test_only_the_footer_is_read(tmp_path):
    table = write_table(tmp_path / "log")
    store = Counted(table)
    list(table_files(store, COLUMNS, lambda: None))
    for file, start, _length in store.ranges:
        content = (table / file.name).read_bytes()
        assert start >= len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert len(store.ranges) == 6


def test_a_snapshot_is_another_once_a_file_was_added_taken_or_written_again(tmp_path):
    table = write_table(tmp_path / "log")
    ids = {snapshot_of(files(table), secret=SECRET)}
    spoil_pages(table)
    ids.add(snapshot_of(files(table), secret=SECRET))
    write_table(table / "more", files=1)
    ids.add(snapshot_of(files(table), secret=SECRET))
    (table / "part-2.parquet").unlink()
    ids.add(snapshot_of(files(table), secret=SECRET))
    (table / "part-1.parquet").rename(table / "part-8.parquet")
    ids.add(snapshot_of(files(table), secret=SECRET))
    assert len(ids) == 5


def test_ids_of_two_registrations_have_nothing_in_common(tmp_path):
    found = files(write_table(tmp_path / "log"))
    assert snapshot_of(found, secret=SECRET) == snapshot_of(found, secret=SECRET)
    assert snapshot_of(found, secret=SECRET) != snapshot_of(found, secret=bytes([1] * 32))


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        (TableColumns("text", None), "text: a file of the table has no single column 'text'"),
        (TableColumns("said", "person"), "contributor: a file of the table has no single column 'person'"),
        (TableColumns("number", None), "text: the column 'number' does not hold texts"),
        (TableColumns("listed", None), "text: the column 'listed' does not hold texts"),
        (TableColumns("said", "share"), "contributor: the column 'share' does not hold texts"),
    ],
)
def test_columns_that_are_not_there_or_hold_something_else_are_refused(tmp_path, columns, rule):
    rows = {"said": ["a"], "number": [1], "share": [0.5], "listed": [["a"]]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    with pytest.raises(InvalidUpload, match=rule):
        files(tmp_path, columns)
    assert files(tmp_path, TableColumns("said", "number"))[0].row_count == 1


@pytest.mark.parametrize(
    "content", [b"", b"PAR1PAR1", b"PAR1\xff\xff\xff\x7fPAR1", b"PAR1xxxx\x04\0\0\0PAR1", b"x" * 99]
)
def test_what_is_no_parquet_file_is_refused(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InvalidUpload, match="no Parquet file, or is cut off or encrypted"):
        files(tmp_path)


def test_row_groups_that_no_reader_should_hold_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(footers, "MOST_GROUP_BYTES", 100)
    with pytest.raises(InvalidUpload, match="unpacks to more than 100 bytes"):
        files(write_table(tmp_path / "log"))
