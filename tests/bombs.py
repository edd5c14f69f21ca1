"""Small files that want to become large, or slow."""

import gzip
import io
import zipfile
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.iceberg import MANIFEST_LIST, write_iceberg
from tests.workbooks import sheet, workbook

FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


def jpeg_of_scans(number, side=4000):
    """Return a white progressive JPEG whose first refining scan is there so often."""
    sink = io.BytesIO()
    Image.new("L", (side, side), 255).save(sink, "JPEG", progressive=True)
    data = sink.getvalue()
    starts = [place for place in range(len(data)) if data[place : place + 2] == b"\xff\xda"]
    last = data[starts[-1] : -2]
    return data[:-2] + last * number + data[-2:]


def archive(*entries):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in entries:
            target.writestr(name, data)
    return sink.getvalue()


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(pa.table(table), sink, write_statistics=False, **options)
    return sink.getvalue()


def uploads():
    """Return files by what is wrong with them: name and content."""
    word = pa.DictionaryArray.from_arrays(pa.array(np.zeros(30, dtype=np.int32)), pa.array(["a" * 200_000_000]))
    deep = b'{"text": ' + b"[" * 480 + b"]" * 480 + b"}\n"
    scans = jpeg_of_scans(8)
    far = workbook({"A": sheet([["text"]]).replace("</sheetData>", FAR + "</sheetData>")})
    return {
        "zip of JPEG scans": ("scans.zip", archive(*[(f"{n}.jpg", scans) for n in range(20)])),
        "workbook of one far cell": ("far.xlsx", far),
        "Parquet of one long word": ("word.parquet", parquet({"text": word}, compression="zstd")),
        "Parquet of 20,000 columns": ("wide.parquet", parquet({f"c{n}": ["a"] for n in range(20_000)})),
        "CSV of 200,000 columns": ("wide.csv", ",".join(f"c{n}" for n in range(200_000)).encode() + b"\n"),
        "packed line without an end": ("long.csv.gz", gzip.compress(b"x" * 200_000_000)),
        "JSON lines that nest": ("deep.jsonl", deep * 2000 + b'{"text": ' + b"[" * 4_000_000 + b"\n"),
        "tasks that nest": ("deep.json", b"[" + b'{"data": {"text": "a"}, "b": [' * 400_000),
    }


def avro_table(folder: Path) -> None:
    """Write an Iceberg table whose list of manifests has some bytes and reads as hundreds of megabytes."""
    lake = write_iceberg(folder)
    schema = MANIFEST_LIST | {
        "fields": [*MANIFEST_LIST["fields"], {"name": "nulls", "type": {"type": "array", "items": "null"}}]
    }
    (found,) = (folder / "metadata").glob("snap-*.avro")
    listed = lake.manifest("again.avro", []) | {"nulls": [None] * 100_000_000}
    with found.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), [listed], codec="null")
