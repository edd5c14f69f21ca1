from dataclasses import asdict

import pytest

from addons.spark.iceberg import metadata_file, read_snapshot
from annotation.data.readers.pseudonyms import Pseudonyms
from annotation.data.readers.registered import TableColumns, table_rows
from annotation.data.readers.stores import FolderTable
from annotation.errors import InvalidUpload
from privacy.gate.engine import PoolFile
from tests.iceberg import SCHEMA, Lake, write_iceberg
from tests.lakes import TEXTS

COLUMNS = TableColumns("said", "who")


def read(lake, *, named=None, wanted=None, columns=COLUMNS):
    store = FolderTable(lake.folder, lake.folder)
    return read_snapshot(store, metadata_file(store, named), columns, wanted, lambda: None)


def names(lake, **given):
    return [file.name for file in read(lake, **given)[1]]


def texts_in(lake, columns=COLUMNS, **given):
    noted, files = read(lake, columns=columns, **given)
    store, held = FolderTable(lake.folder, lake.folder), columns.by_id(noted.text_id, noted.contributor_id)
    pool = [PoolFile(0, file.name, file.sha256, 0, file.row_count) for file in files]
    batches = [batch for file in pool for batch in table_rows(store, file, held, Pseudonyms(bytes(32)))]
    return [text for batch in batches for text in batch.column("text").to_pylist()]


def with_one_file(folder, **options):
    lake = Lake(folder, **options)
    return lake, lake.data_file("a.parquet", ["a", "b"], ["A", "B"])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("location", [None, "s3a://elsewhere/log", "file:/moved/log"])
def test_a_snapshot_is_read_by_its_list_wherever_it_was_written(tmp_path, version, location):
    lake = write_iceberg(tmp_path / "log", version=version, location=location)
    noted, files = read(lake)
    assert [file.name for file in files] == [f"data/part-{number}.parquet" for number in range(3)]
    assert sum(file.row_count for file in files) == len(TEXTS)
    assert asdict(noted) == {
        "table": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "snapshot": 7_000_000_000_000_000_000,
        "text_id": 1,
        "contributor_id": 2,
    }


def test_old_files_beside_it_and_files_taken_out_are_none_of_it(tmp_path):
    lake, first = with_one_file(tmp_path / "log")
    number = lake.commit([lake.manifest("1.avro", [first])])
    second = lake.data_file("b.parquet", ["c"], ["C"])
    gone, added = lake.manifest("2.avro", [first], status=2), lake.manifest("3.avro", [second])
    lake.commit([gone, added])
    lake.data_file("left by a writer that failed.parquet", ["d"], ["D"])
    assert names(lake) == ["data/b.parquet"]
    assert names(lake, wanted=number) == ["data/a.parquet"]
    assert names(lake, named="00000-5f8b14ea.metadata.json") == ["data/a.parquet"]
    with pytest.raises(InvalidUpload, match="has no snapshot 5"):
        read(lake, wanted=5)


def test_a_column_that_was_renamed_is_found_by_its_id(tmp_path):
    lake, first = with_one_file(tmp_path / "log")
    number = lake.commit([lake.manifest("1.avro", [first])])
    renamed = [field | {"name": {"said": "words", "who": "said"}.get(field["name"], field["name"])} for field in SCHEMA]
    lake.schemas.append(renamed)
    second = lake.data_file("b.parquet", ["c"], ["C"], ids={"words": 1, "said": 2})
    lake.commit([lake.manifest("2.avro", [first, second])])
    assert texts_in(lake, TableColumns("words", "said")) == ["a", "b", "c"]
    assert texts_in(lake, wanted=number) == ["a", "b"]
    with pytest.raises(InvalidUpload, match="no single column 'who'"):
        read(lake)


@pytest.mark.parametrize("ids", [{"who": 2}, {"said": 9, "who": 2}, {"said": None, "who": None}])
def test_a_file_without_the_column_is_refused(tmp_path, ids):
    lake, first = with_one_file(tmp_path / "log")
    older = lake.data_file("b.parquet", ["c"], ["C"], ids=ids)
    lake.commit([lake.manifest("1.avro", [first, older])])
    with pytest.raises(InvalidUpload, match="lacks the column 'said' by its Iceberg id"):
        read(lake)


CHANGED = {
    "is encrypted or no Parquet file": [{"file_format": "ORC"}, {"file_format": "AVRO"}, {"key_metadata": b"k"}],
    "lies outside the table's folder": [
        {"file_path": "file:///etc/passwd"},
        {"file_path": "{location}/../x.parquet"},
        {"file_path": "{location}/data//x.parquet"},
    ],
    "is not the one that the Iceberg snapshot names": [{"record_count": 3}, {"file_size_in_bytes": 7}],
}


@pytest.mark.parametrize(("rule", "changed"), [(rule, each) for rule, many in CHANGED.items() for each in many])
def test_a_data_file_that_is_none_of_ours_is_refused(tmp_path, rule, changed):
    lake, file = with_one_file(tmp_path / "log")
    given = {
        name: each.format(location=lake.location) if name == "file_path" else each for name, each in changed.items()
    }
    lake.commit([lake.manifest("1.avro", [file | given])])
    with pytest.raises(InvalidUpload, match=rule):
        read(lake)


@pytest.mark.parametrize("content", [1, 2])
def test_delete_files_are_refused_and_those_that_were_taken_out_are_not(tmp_path, content):
    lake, file = with_one_file(tmp_path / "log")
    deletes = lake.data_file("deletes.parquet", ["a"], ["A"], content=content)
    listed = lake.manifest("1.avro", [file])
    lake.commit([listed, lake.manifest("2.avro", [deletes], content=1)])
    with pytest.raises(InvalidUpload, match="has delete files"):
        read(lake)
    lake.commit([listed, lake.manifest("3.avro", [deletes], content=1, status=2)])
    assert names(lake) == ["data/a.parquet"]


def test_metadata_that_tell_no_single_snapshot_are_refused(tmp_path):
    lake, file = with_one_file(tmp_path / "log")
    lake.describe()
    with pytest.raises(InvalidUpload, match="has no snapshot yet"):
        read(lake)
    lake.commit([lake.manifest("1.avro", [file])])
    lake.describe("00001-another.metadata.json")
    with pytest.raises(InvalidUpload, match="two metadata files"):
        read(lake)
    assert names(lake, named="00001-another.metadata.json") == ["data/a.parquet"]
    lake.describe("v3.gz.metadata.json")
    with pytest.raises(InvalidUpload, match="is compressed"):
        read(lake)
    lake.describe("v4.metadata.json", **{"format-version": 3})
    with pytest.raises(InvalidUpload, match="is in version 3 of the format; 1 and 2 are read"):
        read(lake)


@pytest.mark.parametrize("changed", [{"location": None}, {"snapshots": [{}]}, {"snapshots": 5}, {"schemas": [{}]}])
def test_metadata_that_are_none_are_refused(tmp_path, changed):
    lake, file = with_one_file(tmp_path / "log")
    lake.commit([lake.manifest("1.avro", [file])], **changed)
    with pytest.raises(InvalidUpload, match="cannot be read"):
        read(lake)
