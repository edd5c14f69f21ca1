import pytest

from annotation.data.readers.stores import FolderTable
from annotation.data.services.registered import store_at
from annotation.errors import InvalidUpload
from tests.lakes import write_table


@pytest.fixture
def root(tmp_path, settings):
    place = tmp_path / "lake"
    place.mkdir()
    settings.POOL_SOURCES = [place.as_uri()]
    return place


def names(place):
    return [file.name for file in store_at(place.as_uri(), slug="a").listed()]


def test_parquet_files_of_all_folders_are_listed_and_what_writers_leave_is_not(root):
    table = write_table(root / "log")
    write_table(table / "day=2", files=1)
    write_table(table / "_temporary", files=1)
    for name in ("_SUCCESS", ".part-0.parquet.crc", "_part-9.parquet", "read.me"):
        (table / name).write_text("x")
    assert names(table) == ["day=2/part-0.parquet", "part-0.parquet", "part-1.parquet", "part-2.parquet"]


@pytest.mark.parametrize("what", ["nothing", "read.me"])
def test_what_is_no_table_is_refused(root, what):
    (root / "read.me").write_text("x")
    with pytest.raises(InvalidUpload, match="neither a folder nor a Parquet file"):
        names(root / what)


def test_a_link_in_a_table_is_refused(root, tmp_path):
    outside = write_table(tmp_path / "secret")
    table = write_table(root / "log")
    (table / "part-7.parquet").symlink_to(outside / "part-0.parquet")
    with pytest.raises(InvalidUpload, match="a link stands there"):
        names(table)
    (table / "part-7.parquet").unlink()
    (table / "more").symlink_to(outside)
    with pytest.raises(InvalidUpload, match="a link stands there"):
        names(table)


@pytest.mark.parametrize("place", ["out", "out/secret", "out/secret/part-0.parquet"])
def test_a_link_on_the_way_leads_nowhere_else(root, tmp_path, place):
    outside = write_table(tmp_path / "others" / "secret")
    (root / "out").symlink_to(outside.parent)
    with pytest.raises(InvalidUpload, match="lies outside"):
        names(root / place)


def test_a_link_that_is_put_there_later_is_not_opened(root, tmp_path):
    outside = write_table(tmp_path / "secret")
    table = write_table(root / "log")
    store = FolderTable(table, root)
    first = store.listed()[0]
    (table / first.name).unlink()
    (table / first.name).symlink_to(outside / first.name)
    with pytest.raises(InvalidUpload, match="lies outside"):
        store.opened(first)
    (table / first.name).unlink()
    (table / first.name).symlink_to(table / "part-1.parquet")
    with pytest.raises(OSError, match="symbolic link"):
        store.opened(first)


def test_names_in_a_folder_are_told_by_their_end_and_not_through_a_link(root, tmp_path):
    table = write_table(root / "log")
    store = FolderTable(table, root)
    assert store.names_in("metadata", (".json",)) == []
    (table / "metadata" / "deeper.json").mkdir(parents=True)
    for name in ("b.json", "a.json", "a.avro", "deeper.json/c.json"):
        (table / "metadata" / name).write_text("x")
    assert store.names_in("metadata", (".json",)) == ["a.json", "b.json", "deeper.json"]
    (root / "out").symlink_to(tmp_path)
    with pytest.raises(InvalidUpload, match="lies outside"):
        FolderTable(root, root).names_in("out", (".json",))
