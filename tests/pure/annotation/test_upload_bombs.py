"""Small files that want to become large, names that lead elsewhere, archives in archives: refused in bounded memory."""

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, PngImagePlugin

from annotation.errors import InvalidUpload
from annotation.parsers import image_archive
from annotation.parsers.reading import Upload
from annotation.parsers.rows import Layout

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


class TestArchives:
    def test_very_many_entries_are_refused_before_they_are_listed(self, monkeypatch):
        many = archive([(f"{number}.png", b"") for number in range(2000)], zipfile.ZIP_STORED)
        monkeypatch.setattr(image_archive, "MAXIMUM_DIRECTORY_BYTES", 50_000)
        monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("was listed"))
        with pytest.raises(InvalidUpload, match="too many entries"):
            read(many, IMAGE, "a.zip")

    @pytest.mark.parametrize("wide", [False, True])
    def test_the_length_of_the_list_is_found(self, wide, monkeypatch):
        data = archive([("a.png", png()), ("b.png", png())])
        place = data.rfind(b"PK\5\6")
        honest = int.from_bytes(data[place + 12 : place + 16], "little")
        if wide:
            record = b"PK\6\6" + bytes(36) + honest.to_bytes(8, "little") + bytes(8)
            data = data[:place] + record + data[place : place + 12] + b"\xff" * 4 + data[place + 16 :]
        assert image_archive.directory_bytes(io.BytesIO(data)) == honest

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
