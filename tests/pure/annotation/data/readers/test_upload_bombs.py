"""Small files that want to become large, names that lead elsewhere, archives in archives: refused in bounded memory."""

import gzip
import io
import json
import subprocess
import sys
import time
import tracemalloc
import zipfile
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, PngImagePlugin

from annotation.data.readers import images
from annotation.data.readers.images import TOO_MANY_SCANS, jpeg_scans, read_image
from annotation.data.readers.preview import preview_of
from annotation.data.readers.reading import Upload
from annotation.data.readers.shapes import shape_of
from annotation.errors import InvalidUpload
from annotation.work.limits import Limits
from dpal.reading.cells import BadCell
from dpal.reading.rows import FirstRows, Layout
from dpal_site.embedded.servers import REPOSITORY
from tests.bombs import jpeg_of_scans

TEXT = Layout(kind="text", text="text")
IMAGE = Layout(kind="image", height=2, width=3)
LIMIT = 2_000_000


def read(data, layout, name, maximum_bytes=LIMIT):
    upload = Upload(io.BytesIO(data), name, layout, maximum_bytes=maximum_bytes)
    return sum(batch.count for batch in upload.batches())


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def png(**options):
    sink = io.BytesIO()
    Image.fromarray(np.zeros((2, 3), dtype=np.uint8)).save(sink, "PNG", **options)
    return sink.getvalue()


def archive(entries, compression=zipfile.ZIP_DEFLATED):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", compression) as target:
        for name, data in entries:
            target.writestr(name, data)
    return sink.getvalue()


class TestParquet:
    def test_a_long_word_repeated_by_reference_counts_each_time(self):
        words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, dtype=np.int32)), pa.array(["a" * 10_000]))
        bomb = parquet(pa.table({"text": words}))
        assert len(bomb) < 50_000
        with pytest.raises(InvalidUpload, match="more than 2,000,000 bytes once unpacked"):
            read(bomb, TEXT, "a.parquet")

    @pytest.mark.slow
    def test_rows_of_nothing_count_too(self):
        bomb = parquet(pa.table({"text": pa.array([None] * 3_000_000, pa.string())}))
        assert len(bomb) < 50_000
        with pytest.raises(InvalidUpload, match="once unpacked"):
            read(bomb, TEXT, "a.parquet")

    def test_a_compressed_page_counts_in_full(self):
        bomb = parquet(pa.table({"text": ["a" * 10_000_000]}), compression="zstd", use_dictionary=False)
        assert len(bomb) < 50_000
        with pytest.raises(InvalidUpload, match="once unpacked"):
            read(bomb, TEXT, "a.parquet")

    def test_columns_nobody_reads_are_never_unpacked(self):
        table = pa.table({"text": ["a", "b"], "other": [b"\0" * 400_000] * 2})
        data = parquet(table, compression="zstd", use_dictionary=False)
        tracemalloc.start()
        assert read(data, TEXT, "a.parquet") == 2
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
        tracemalloc.stop()

    def test_what_fits_is_read(self):
        assert read(parquet(pa.table({"text": ["a few words"] * 1000})), TEXT, "a.parquet") == 1000


PEAK = """
import resource, sys
from annotation.errors import InvalidUpload
from annotation.work.limits import Limits
from annotation.data.readers.preview import preview_of
from annotation.data.readers.reading import Upload
from dpal.reading.rows import Layout, FirstRows
layout = Layout(**eval(sys.argv[2]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    with open(sys.argv[1], "rb") as file:
        print(len(preview_of(Upload(file, sys.argv[1], layout, maximum_bytes=2**31, look=FirstRows(20)), layout).rows))
except InvalidUpload as refusal:
    print(refusal)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def looked_at(data, name, tmp_path, **layout):
    """Look at the first rows in a process of its own; return what came of it and the MiB that took at most."""
    file = tmp_path / name
    file.write_bytes(data)
    arguments = [sys.executable, "-c", PEAK, str(file), repr(layout)]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=REPOSITORY).stdout.splitlines()
    return "\n".join(said[:-1]), int(said[-1])


class TestALook:
    """Pages show first rows in a process that serves others, too; the memory of that is bounded whatever the file."""

    TEXT = MappingProxyType({"kind": "text", "text": "text"})
    TOO_MUCH = "file: needs more than 384 MiB of memory to be read"

    @pytest.mark.slow
    @pytest.mark.one_in(3)
    @pytest.mark.parametrize(
        ("table", "options"),
        [
            (lambda: {"text": ["a" * 600_000_000]}, {"use_dictionary": False}),
            (lambda: {"text": ["a" * 30_000_000] * 20}, {"use_dictionary": False, "data_page_size": 1000}),
            (
                lambda: {
                    "text": pa.DictionaryArray.from_arrays(
                        pa.array(np.zeros(30, dtype=np.int32)), pa.array(["a" * 200_000_000])
                    )
                },
                {},
            ),
        ],
        ids=["one cell", "twenty cells", "one word of a dictionary"],
    )
    def test_cells_that_unpack_to_hundreds_of_megabytes(self, table, options, tmp_path):
        """The first of them, of 19 kB, took the web process to 4.3 GB."""
        bomb = parquet(pa.table(table()), compression="zstd", write_statistics=False, **options)
        assert len(bomb) < 30_000
        said, peak = looked_at(bomb, "a.parquet", tmp_path, **self.TEXT)
        assert said == self.TOO_MUCH
        assert peak < 150

    @pytest.mark.slow
    def test_a_list_of_two_hundred_million_pixels(self, tmp_path):
        pixels = pa.ListArray.from_arrays([0, 200_000_000, 200_000_000], pa.array(np.zeros(200_000_000, np.uint8)))
        bomb = parquet(pa.table({"pixels": pixels}), compression="zstd")
        said, peak = looked_at(bomb, "a.parquet", tmp_path, kind="image", pixels="pixels", height=28, width=28)
        assert said == self.TOO_MUCH
        assert peak < 150

    @pytest.mark.slow
    def test_a_footer_that_lies_about_its_sizes(self, tmp_path):
        """The footer promises a few bytes; what counts is what the page takes once it is read."""
        honest = parquet(pa.table({"text": ["a" * 100_000_000]}), compression="zstd", use_dictionary=False)
        size = pq.read_metadata(io.BytesIO(honest)).row_group(0).column(0).total_uncompressed_size
        lie = honest[:200] + honest[200:].replace(varint(size), varint(10, length=len(varint(size))))
        assert lie != honest
        said, peak = looked_at(lie, "a.parquet", tmp_path, **self.TEXT)
        assert said == "file: has a cell longer than 8,388,608 bytes"
        assert peak < 150

    @pytest.mark.slow
    def test_lines_of_eight_megabytes(self, tmp_path):
        line = json.dumps({"text": "a" * 7_000_000}) + "\n"
        said, peak = looked_at(gzip.compress((line * 60).encode()), "a.jsonl.gz", tmp_path, **self.TEXT)
        assert said == "file: holds more than 67,108,864 bytes once unpacked"
        assert peak < 500

    def test_a_cell_longer_than_a_line_may_be_is_refused_by_whoever_reads_it(self):
        with pytest.raises(InvalidUpload, match="a cell longer than 8,388,608 bytes"):
            read(parquet(pa.table({"text": ["a", "b" * 9_000_000]})), TEXT, "a.parquet", maximum_bytes=10**9)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"compression": "zstd", "use_dictionary": False},
            {"data_page_version": "2.0", "compression": "gzip"},
            {"data_page_size": 2**26, "compression": "NONE"},
            {"data_page_size": 64},
            {"write_page_index": True, "write_page_checksum": True},
            {"row_group_size": 100},
        ],
    )
    def test_honest_files_are_shown_however_they_are_written(self, options):
        table = pa.table(
            {"text": [f"text {n}" for n in range(50_000)], "age": list(range(50_000)), "empty": [None] * 50_000}
        )
        layout = Layout(kind="text", text="text", contributor="age")
        upload = Upload(
            io.BytesIO(parquet(table, **options)), "a.parquet", layout, maximum_bytes=10**9, look=FirstRows(20)
        )
        rows = preview_of(upload, layout).rows
        assert [row.cells[0].value for row in rows] == [f"text {n}" for n in range(20)]
        assert [row.cells[1].value for row in rows] == [str(n) for n in range(20)]

    @pytest.mark.parametrize("version", ["1.0", "2.0"])
    def test_honest_images_are_looked_at(self, version):
        pixels = [[n % 256] * 6 for n in range(30_000)]
        data = parquet(pa.table({"pixels": pixels}), data_page_version=version)
        layout = Layout(kind="image", pixels="pixels", height=2, width=3)
        rows = preview_of(
            Upload(io.BytesIO(data), "a.parquet", layout, maximum_bytes=10**9, look=FirstRows(20)), layout
        ).rows
        assert [row.reason for row in rows] == [""] * 20


@pytest.mark.parametrize(
    ("name", "line"),
    [("deep.jsonl", b'{"text": ' + b"[" * 480 + b"]" * 480 + b"}\n"), ("long.csv", b'"' + b"a" * 900 + b'"\n')],
)
def test_a_page_that_shows_first_rows_is_sent_no_more(name, line):
    """What thousands of cells hold is unpacked by the process of the page, whose other threads wait meanwhile."""
    data = (b"text\n" if name.endswith(".csv") else b"") + line * 2_000
    upload = Upload(io.BytesIO(data), name, TEXT, maximum_bytes=10**9, look=FirstRows(20))
    assert {len(batch.lines) for batch in upload.cells() if batch.lines} == {20}


def varint(number, length=1):
    """Return a number as the compact Thrift protocol writes it, of at least this length."""
    number, parts = number << 1, []
    while number or len(parts) < length:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts[:-1], parts[-1] & 127])


class TestArchives:
    @pytest.mark.slow
    def test_very_many_entries_are_refused(self):
        many = archive([(f"{number}.png", b"") for number in range(1_000_000)], zipfile.ZIP_STORED)
        with pytest.raises(InvalidUpload, match="needs more than 384 MiB of memory"):
            read(many, IMAGE, "a.zip")

    def test_an_archive_in_an_archive_stays_closed(self):
        inner = archive([("a.png", bytes(1_000_000))])
        assert read(archive([("inner.zip", inner), ("inner.png", inner), ("good.png", png())]), IMAGE, "a.zip") == 1

    def test_an_entry_that_lies_about_its_size_is_read_no_further(self):
        data = bytearray(archive([("a.png", bytes(1_500_000)), ("good.png", png())]))
        # In both places an entry's size is written, that of the first one becomes 100.
        for mark, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
            place = data.find(mark) + offset
            data[place : place + 4] = (100).to_bytes(4, "little")
        assert read(bytes(data), IMAGE, "a.zip", maximum_bytes=10_000) == 1

    def test_entries_that_share_their_bytes_count_each(self):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as target:
            target.writestr("0.png", bytes(1000))
            first = target.infolist()[0]
            for number in range(1, 3000):
                entry = zipfile.ZipInfo(f"{number}.png")
                for name in ("header_offset", "CRC", "compress_size", "file_size", "compress_type"):
                    setattr(entry, name, getattr(first, name))
                target.filelist.append(entry)
        assert len(sink.getvalue()) < 400_000
        with pytest.raises(InvalidUpload, match="once unpacked"):
            read(sink.getvalue(), IMAGE, "a.zip")

    def test_words_packed_into_an_image_are_not_unpacked(self):
        words = PngImagePlugin.PngInfo()
        words.add_text("Comment", "a" * 80_000_000, zip=True)
        data = archive([("a.png", png(pnginfo=words)), ("good.png", png())])
        assert read(data, IMAGE, "a.zip", maximum_bytes=10_000_000) <= 2

    @pytest.mark.parametrize("name", ["../a.png", "/a.png", "a/../../b.png", "..\\a.png", "C:a.png", "\\\\host\\a.png"])
    def test_a_name_that_leads_out_of_the_archive(self, name):
        assert read(archive([(name, png()), ("good.png", png())]), IMAGE, "a.zip") == 1


class TestManyColumns:
    """A page that offered each of them as a choice took minutes."""

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.csv", lambda: (",".join(f"c{n}" for n in range(200_000)) + "\n").encode() * 2),
            ("a.jsonl", lambda: json.dumps({f"c{n}": n for n in range(20_000)}).encode()),
            ("a.parquet", lambda: parquet(pa.table({f"c{n}": [1] for n in range(20_000)}))),
        ],
    )
    def test_are_refused_by_number(self, name, data):
        content = data()
        began = time.process_time()
        with pytest.raises(InvalidUpload, match="columns, and at most 2,000 are read"):
            shape_of(io.BytesIO(content), name, maximum_bytes=LIMIT * 10)
        with pytest.raises(InvalidUpload, match="columns, and at most 2,000 are read"):
            Upload(io.BytesIO(content), name, TEXT, maximum_bytes=LIMIT * 10)
        assert time.process_time() - began < 5


class TestPictures:
    def test_a_progressive_jpeg_of_hundreds_of_scans_is_refused_before_it_is_drawn(self):
        bomb = jpeg_of_scans(600)
        assert len(bomb) < 120_000
        began = time.process_time()
        with pytest.raises(BadCell, match="JPEG of more than 32 scans"):
            read_image(bomb, height=2, width=3)
        assert time.process_time() - began < 0.5

    def test_and_the_images_beside_it_are_read(self):
        upload = Upload(
            io.BytesIO(archive([("a.png", png()), ("bomb.jpg", jpeg_of_scans(40)), ("b.png", png())])),
            "a.zip",
            IMAGE,
            maximum_bytes=LIMIT,
        )
        batches = list(upload.batches())
        assert sum(batch.count for batch in batches) == 2
        assert [(row.line, row.reason) for batch in batches for row in batch.bad] == [(2, TOO_MANY_SCANS)]

    def test_an_image_that_reaches_a_limit_is_bad_and_no_other(self, monkeypatch):
        large = io.BytesIO()
        Image.new("RGB", (4096, 4096)).save(large, "PNG")
        entries = [("a.png", png()), ("large.png", large.getvalue()), ("b.png", png())]
        monkeypatch.setattr(images, "WHOLE", Limits(memory=64))
        batches = list(Upload(io.BytesIO(archive(entries)), "a.zip", IMAGE, maximum_bytes=LIMIT).batches())
        assert sum(batch.count for batch in batches) == 2
        assert [(row.line, row.reason) for batch in batches for row in batch.bad] == [
            (2, "needs more than 64 MiB of memory to be read")
        ]

    @pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
    def test_what_libraries_write_is_no_bomb(self, mode):
        sink = io.BytesIO()
        noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)
        thumbnail = io.BytesIO()
        Image.fromarray(noise).save(thumbnail, "JPEG", progressive=True)
        Image.fromarray(noise).convert(mode).save(sink, "JPEG", progressive=True, comment=thumbnail.getvalue() * 5)
        assert 1 < jpeg_scans(sink.getvalue()) <= 18
        read_image(sink.getvalue(), height=2, width=3)


class TestText:
    def test_an_archive_packed_twice_is_no_text(self):
        twice = gzip.compress(gzip.compress(b"text\nhello\n"))
        with pytest.raises(InvalidUpload):
            read(twice, TEXT, "a.csv.gz")

    @pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
    def test_brackets_in_brackets(self, name):
        deep = b'[{"text": ' + b"[" * 200_000 + b"]" * 200_000 + b"}]"
        try:
            assert read(deep, TEXT, name) == 0
        except InvalidUpload:
            return

    def test_a_number_of_a_million_digits(self):
        data = b'{"text": "a"}\n{"text": ' + b"9" * 1_000_000 + b"}\n"
        assert read(data, TEXT, "a.jsonl") == 1

    @pytest.mark.parametrize(
        ("content", "name"),
        [
            (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "a.png"),
            (b"\x89PNG\r\n\x1a\n", "a.csv"),
            (b"%PDF-1.7", "a.csv"),
            (b"MZ\x90\x00" + bytes(100), "a.zip"),
        ],
    )
    def test_the_content_says_what_a_file_is(self, content, name):
        with pytest.raises(InvalidUpload):
            read(content, IMAGE if name.endswith(("zip", "png")) else TEXT, name)
