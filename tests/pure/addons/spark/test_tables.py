import pytest

from addons.spark.stores import Bucket
from addons.spark.tables import Objects, bucket_reader, folder_reader
from annotation.data.readers.pseudonyms import Pseudonyms
from annotation.data.readers.registered import TableColumns, table_files, table_rows
from annotation.data.readers.stores import BucketTable, FolderTable
from annotation.errors import TableChanged
from privacy.gate.engine import PoolFile
from tests import memory_store
from tests.lakes import spoil_pages, write_table

COLUMNS, KEY = TableColumns("said", "who"), bytes(range(32))


def noted(store):
    return [
        PoolFile(number, file.name, file.sha256, 0, file.row_count)
        for number, file in enumerate(table_files(store, COLUMNS, lambda: None))
    ]


def rows_of(read, files, *, named=True):
    return [row for file in files for batch in read(file, named) for row in batch.to_pylist()]


def test_a_folder_is_read_as_here_and_looked_at_without_a_row(tmp_path):
    table = write_table(tmp_path / "log")
    store = FolderTable(table, tmp_path)
    files, reader = noted(store), folder_reader(table, tmp_path, COLUMNS, key=KEY)
    here = rows_of(lambda file, named: table_rows(store, file, COLUMNS, Pseudonyms(KEY)), files)
    assert rows_of(reader.ready(), files) == here
    assert rows_of(reader.ready(), files, named=False) == [{"text": row["text"]} for row in here]
    spoil_pages(table)
    files = noted(store)
    reader.see(files[0])
    write_table(table)
    with pytest.raises(TableChanged):
        reader.see(files[0])


def test_a_bucket_is_read_by_the_key_of_whoever_reads(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "executor")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "its own")
    table = write_table(tmp_path / "log")
    with memory_store.running() as started:
        bucket = Bucket("lake", "log/part-1.parquet", started.endpoint, "eu-central-1", "path")
        reader = bucket_reader(bucket, COLUMNS, key=KEY)
        for path in table.iterdir():
            started.objects[f"/lake/log/{path.name}"] = path.read_bytes()
        files = noted(BucketTable(Objects(bucket), bucket.name, bucket.prefix))
        reader.see(files[0])
        assert len(rows_of(reader.ready(), files)) == files[0].row_count
        started.objects["/lake/log/part-1.parquet"] += b"x"
        for look in (reader.see, lambda file: rows_of(reader.ready(), [file])):
            with pytest.raises(TableChanged):
                look(files[0])
        del started.objects["/lake/log/part-1.parquet"]
        with pytest.raises(TableChanged):
            reader.see(files[0])
