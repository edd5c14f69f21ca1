import contextlib
import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from addons.spark.iceberg import Manifest, manifests_of
from annotation.errors import InvalidUpload
from tests.fuzzing import fuzz
from tests.iceberg import MANIFEST_LIST

LISTED = {"manifest_path": "p", "manifest_length": 1, "partition_spec_id": 0, "content": 1, "added_snapshot_id": 1}


def avro(records, *, codec="deflate", schema=MANIFEST_LIST):
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(schema), records, codec=codec)
    return stream.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_list_is_read(codec):
    assert manifests_of(avro([LISTED, LISTED | {"content": 0}], codec=codec)) == [
        Manifest("p", True),
        Manifest("p", False),
    ]


def test_a_list_of_the_first_version_lists_data():
    fields = [field for field in MANIFEST_LIST["fields"] if field["name"] != "content"]
    assert manifests_of(avro([LISTED], schema=MANIFEST_LIST | {"fields": fields})) == [Manifest("p", False)]


@fuzz(30)
@given(codec=st.sampled_from(["null", "deflate"]), cut=st.integers(0, 900), changed=st.binary(min_size=1, max_size=9))
def test_whatever_stands_there_is_read_or_refused_by_its_rule(codec, cut, changed):
    content = avro([LISTED] * 9, codec=codec)
    spoiled = content[:cut] + changed + content[cut + len(changed) :]
    with contextlib.suppress(InvalidUpload):
        manifests_of(spoiled)
    with contextlib.suppress(InvalidUpload):
        manifests_of(content[:cut])


def written(number):
    """Return a number as Avro writes it: here in four bytes."""
    seven = [2 * number >> shift & 127 for shift in (0, 7, 14, 21)]
    return bytes([*(each | 128 for each in seven[:3]), seven[3]])


def test_a_manifest_of_some_bytes_that_becomes_hundreds_of_megabytes_is_refused_by_memory():
    """An array of nulls takes no byte for each; one of 261 bytes had a worker allocate 709 MB."""
    schema = MANIFEST_LIST | {
        "fields": [*MANIFEST_LIST["fields"], {"name": "nulls", "type": {"type": "array", "items": "null"}}]
    }
    few, many = 2**20, 10**8
    content = avro([LISTED | {"nulls": [None] * few}], codec="null", schema=schema)
    assert content.count(written(few)) == 1
    content = content.replace(written(few), written(many))
    assert len(content) < 2000
    with pytest.raises(InvalidUpload, match=r"address: .* needs more than 384 MiB of memory"):
        manifests_of(content)


def test_what_unpacks_to_too_much_is_refused():
    content = avro([LISTED | {"manifest_path": "x" * 410_000_000}])
    assert len(content) < 1_000_000
    with pytest.raises(InvalidUpload, match=r"address: .* needs more than 384 MiB of memory"):
        manifests_of(content)
