import contextlib
import hashlib
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privacy.errors import PoolDamaged
from privacy.gate import columns

ANNA, BEN = (name.ljust(16, b".") for name in (b"anna", b"ben"))


def file_of(rows):
    target = io.BytesIO()
    writer = columns.ColumnsWriter(target)
    writer.write(rows)
    writer.close()
    content = target.getvalue()
    return content, hashlib.sha256(content).hexdigest()


def read(content, *, contributors=True):
    batches = columns.read_columns(content, hashlib.sha256(content).hexdigest(), contributors=contributors)
    return pa.Table.from_batches(batches).to_pylist()


def test_rows_come_back_in_their_order_and_in_groups_of_one_size(monkeypatch):
    monkeypatch.setattr(columns, "GROUP_ROWS", 3)
    target = io.BytesIO()
    writer = columns.ColumnsWriter(target)
    texts = [f"text {number}" for number in range(8)]
    for start, stop in ((0, 2), (2, 7), (7, 8)):
        writer.write(columns.pool_rows(texts[start:stop], [ANNA] * (stop - start)))
    writer.close()
    assert writer.rows == 8
    content = target.getvalue()
    groups = pq.ParquetFile(io.BytesIO(content)).metadata
    assert [groups.row_group(place).num_rows for place in range(groups.num_row_groups)] == [3, 3, 2]
    assert [row["text"] for row in read(content)] == texts
    assert read(content, contributors=False) == [{"text": text} for text in texts]


def test_a_pool_may_name_nobody_and_a_row_may_lack_a_name():
    assert read(file_of(columns.pool_rows(["a"], None))[0]) == [{"text": "a", "contributor": None}]
    mixed = columns.pool_rows(["a", "b"], [None, BEN])
    assert [row["contributor"] for row in read(file_of(mixed)[0])] == [None, BEN]


def test_other_bytes_than_those_written_are_read_by_nobody():
    content, sha256 = file_of(columns.pool_rows(["a"], [ANNA]))
    other = content[:40] + bytes([content[40] ^ 1]) + content[41:]
    for read_it in (
        lambda: list(columns.read_columns(other, sha256, contributors=True)),
        lambda: columns.contributor_rows(other, sha256, ANNA),
        lambda: columns.emptied(other, sha256, None, io.BytesIO()),
    ):
        with pytest.raises(PoolDamaged) as refusal:
            read_it()
        assert "digest" in str(refusal.value)


def test_a_contributor_is_found_and_emptied_and_the_places_of_all_others_stay():
    content, sha256 = file_of(columns.pool_rows(["one", "two", "three", "four"], [ANNA, BEN, ANNA, None]))
    rows = columns.contributor_rows(content, sha256, ANNA)
    assert rows.tolist() == [0, 2]
    target = io.BytesIO()
    assert columns.emptied(content, sha256, rows, target) == 2
    left = read(target.getvalue())
    assert [row["text"] for row in left] == [None, "two", None, "four"]
    assert [row["contributor"] for row in left] == [columns.NOBODY, BEN, columns.NOBODY, None]


@pytest.mark.parametrize("everything", [False, True])
def test_no_byte_of_a_file_tells_what_was_emptied(everything):
    """Uncompressed pages are searched as well as the file: dictionaries, statistics and footers are made anew."""
    secret = "the text of somebody who asked to be forgotten"
    texts, people = [secret, "kept", secret + " twice"], [ANNA, BEN, ANNA]
    content, sha256 = file_of(columns.pool_rows(texts, people))
    assert any(secret.encode() in each for each in plain_bytes(content))  # else the search below proves nothing
    target = io.BytesIO()
    gone = None if everything else np.array([0, 2])
    assert columns.emptied(content, sha256, gone, target) == (3 if everything else 2)
    for each in (target.getvalue(), *plain_bytes(target.getvalue())):
        assert secret.encode() not in each
        assert ANNA not in each
        assert (BEN in each) <= (not everything)


def unpacked(content):
    """Return what one stretch holds; what follows its end is something else."""
    found = b""
    with contextlib.suppress(OSError), pa.input_stream(pa.BufferReader(content), compression="zstd") as stream:
        while more := stream.read(1):
            found += more
    return found


def plain_bytes(content):
    place = content.find(b"\x28\xb5\x2f\xfd")
    while place >= 0:
        yield unpacked(content[place:])
        place = content.find(b"\x28\xb5\x2f\xfd", place + 1)
