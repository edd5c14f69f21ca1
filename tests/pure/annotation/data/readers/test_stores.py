import os

import pytest

from annotation.data.readers import stores
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


def test_a_single_file_is_a_table(root):
    table = write_table(root / "log")
    (found,) = store_at((table / "part-1.parquet").as_uri(), slug="a").listed()
    assert found.size == (table / "part-1.parquet").stat().st_size


def test_a_file_written_again_has_another_version(root):
    table = write_table(root / "log", files=1)
    store = store_at(table.as_uri(), slug="a")
    before = store.listed()
    content = (table / "part-0.parquet").read_bytes()
    os.utime(table / "part-0.parquet", ns=(1, 1))
    assert store.listed() != before
    assert store.read(before[0], 3, 5) == content[3:8]


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


def test_too_many_files_are_refused(root, monkeypatch):
    monkeypatch.setattr(stores, "MOST_FILES", 2)
    with pytest.raises(InvalidUpload, match="more than 2 Parquet files"):
        names(write_table(root / "log"))


def test_a_bucket_needs_a_site_whose_files_lie_in_one(settings):
    settings.POOL_SOURCES = ["s3://lake"]
    with pytest.raises(InvalidUpload, match="by sites alone whose own files lie in a bucket"):
        store_at("s3://lake/log", slug="a")
