"""Files in, checked rows out: every bad line named by its line, column and reason, none guessed, nothing repeated."""

import csv
import gzip
import io
import json
import math
import struct
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from annotation.data.readers import checks
from annotation.data.readers import images as readers_images
from annotation.data.readers.reading import Upload, detect_format
from annotation.errors import InvalidUpload
from dpal.reading import cells
from dpal.reading.formats import Detected, Format
from dpal.reading.rows import BadRow, Layout

TEXT = Layout(kind="text", text="text")
SMS = Layout(kind="text", text="text", has_header=False, header=("label", "text"), delimiter="\t", quoting=False)
TABLE = Layout(
    kind="table",
    declared=(
        {"name": "age", "low": 0, "high": 100},
        {"name": "weight", "low": 0, "high": 100, "missing": 50},
        {"name": "job", "categories": ["cook", "clerk"]},
        {"name": "town", "categories": ["Ulm"], "other": True},
    ),
)
IMAGE = Layout(kind="image", height=2, width=3)


def read(data, layout=TEXT, name="rows.csv", maximum_bytes=10**9):
    batches = list(Upload(io.BytesIO(data), name, layout, maximum_bytes=maximum_bytes).batches())
    return [bad for batch in batches for bad in batch.bad], batches


def texts_of(batches):
    return [text for batch in batches for text in batch.texts]


def read_texts(data, **options):
    bad, batches = read(data, **options)
    return texts_of(batches), bad


def parquet(**columns):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def png(pixels, mode="L"):
    sink = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).convert(mode).save(sink, "PNG")
    return sink.getvalue()


def archive(**entries):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as target:
        for name, data in entries.items():
            target.writestr(zipfile.ZipInfo(name), data)  # no time in it: what is collected is named by its bytes
    return sink.getvalue()


GREY = [[0, 50, 100], [150, 200, 255]]


# --- delimited text


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'id,text\n1,hello\n2,"a, b"\n', "a.csv"),
        (b"id;text\n1;hello\n2;a, b\n", "a.csv"),
        (b"id\ttext\n1\thello\n2\ta, b\n", "a.tsv"),
        (b"id|text\r\n1|hello\r\n2|a, b\r\n", "a.txt"),
        (b'\xef\xbb\xbftext,id\nhello,1\n"a, b",2', "a.csv"),
        (b'\n\ntext\rhello\r"a, b"\r', "a.csv"),
        (gzip.compress(b'text\nhello\n"a, b"\n', mtime=0), "a.csv.gz"),
        (b'{"text": "hello"}\n\n{"text": "a, b", "id": 2}\n', "a.jsonl"),
        (b'{"text": "hello"}\n{"text": "a, b"}', "nameless"),
        (gzip.compress(b'{"text": "hello"}\n', mtime=0) + gzip.compress(b'{"text": "a, b"}', mtime=0), "a.jsonl.gz"),
        (parquet(id=[1, 2], text=["hello", "a, b"]), "a.bin"),
        (parquet(text=pa.array(["hello", "a, b"]).dictionary_encode()), "a.parquet"),
    ],
)
def test_every_format_gives_the_same_rows(data, name):
    assert read_texts(data, name=name) == (["hello", "a, b"], [])


def test_lines_count_as_in_an_editor_also_after_quoted_line_ends():
    data = b'id,text\n1,"two\nlines"\n2,   \n3,"three\r\nmore\nlines"\n4,good\n5\n6,fine\n'
    texts, bad = read_texts(data)
    assert texts == ["two\nlines", "three\r\nmore\nlines", "good", "fine"]
    assert bad == [BadRow(4, "text", cells.EMPTY), BadRow(9, "", "has 1 field where the header names 2")]


def test_sms_collection_without_header_or_quotes():
    texts, bad = read_texts(b'ham\tHe said "hi\nspam\t"Win, win"\nham\n', layout=SMS, name="SMSSpamCollection")
    assert texts == ['He said "hi', '"Win, win"']
    assert bad == [BadRow(3, "", "has 1 field where the header names 2")]


def test_a_misplaced_quote_costs_the_lines_it_spans_and_no_other():
    texts, bad = read_texts(b'text,id\na,1\n"open,2\nb,3\n"c",4\nd,5\n')
    assert texts == ["a", "d"]
    assert [row.line for row in bad] == [3, 4, 5]
    assert {row.reason for row in bad} == {"a quote is closed in the middle of a field"}


def test_cells_the_database_cannot_hold():
    data = (
        b"text,n\n\xff\xfe,1\nnul\x00,2\n" + "ünïcode,3\n".encode() + b"x" * 20_001 + b",4\n" + b"y" * 20_000 + b",5\n"
    )
    texts, bad = read_texts(data)
    assert [text[:7] for text in texts] == ["ünïcode", "y" * 7]
    assert bad == [BadRow(2, "text", cells.NOT_UTF8), BadRow(3, "text", cells.NUL), BadRow(5, "text", cells.TOO_LONG)]


def test_text_split_anywhere_between_pieces_stays_whole(monkeypatch):
    rows = [f'row {i} ünï \U0001f600 "q"\nline' for i in range(200)]
    sink = io.StringIO(newline="")
    csv.writer(sink).writerows([["text"], *([row] for row in rows)])
    data = sink.getvalue().encode()
    for size in (7, 64, 1000):
        monkeypatch.setattr("dpal.reading.sources.CHUNK_BYTES", size)
        assert read_texts(data) == (rows, [])


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
            st.text("ab", min_size=1),
        ),
        max_size=30,
    )
)
def test_what_csv_writes_is_read_back(rows):
    sink = io.StringIO(newline="")
    csv.writer(sink, quoting=csv.QUOTE_ALL).writerows([["text", "id"], *rows])
    texts, bad = read_texts(sink.getvalue().encode())
    assert texts == [text for text, _ in rows if text.strip()]
    assert len(bad) == sum(not text.strip() for text, _ in rows)


# --- what is refused before a row is read


@pytest.mark.parametrize(
    ("data", "name", "layout", "message"),
    [
        (b"", "a.csv", TEXT, "file: is empty"),
        (b"\n\n", "a.csv", TEXT, "file: holds no rows"),
        (b"id,words\n1,a\n", "a.csv", TEXT, "text: the file has no column named 'text'"),
        (b"text,text\na,b\n", "a.csv", TEXT, "more than one column named 'text'"),
        (b'{"words": "a"}\n', "a.jsonl", TEXT, "text: the file has no column named 'text'"),
        (b"[1, 2]\n", "a.jsonl", TEXT, "file: line 1 is not a JSON object"),
        (parquet(words=["a"]), "a.parquet", TEXT, "text: the file has no column named 'text'"),
        (parquet(text=pa.array([], pa.string())), "a.parquet", TEXT, "holds no rows"),
        (b"PAR1 and then nothing", "a.parquet", TEXT, "Parquet file is damaged"),
        (b"PK\x03\x04 and then nothing", "a.zip", IMAGE, "zip archive is damaged"),
        (gzip.compress(b"text\n" + bytes(range(32, 127)) * 900, mtime=0)[:-40], "a.csv.gz", TEXT, "damaged or cut off"),
        (b"\x1f\x8bnonsense", "a.csv.gz", TEXT, "damaged or cut off"),
        ("text\na\n".encode("utf-16-le"), "a.csv", TEXT, "UTF-16"),
        ("text\na\n".encode("utf-16-be"), "a.csv", TEXT, "UTF-16"),
        (archive(**{"[Content_Types].xml": b"<x/>"}), "a.xlsx", TEXT, "workbook is damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.xls", TEXT, "old workbook"),
        (archive(mimetype=b"application/vnd.oasis.opendocument.spreadsheet"), "a.ods", TEXT, "OpenDocument"),
        (b"\x89PNG\r\n\x1a\n", "a.png", IMAGE, "must be CSV"),
        (b"\x7fELF\x02\x01\x01", "a", TEXT, "must be CSV"),
        (archive(**{"a.png": png(GREY)}), "a.zip", TEXT, r"does not fit this project \(text\)"),
        (archive(**{"xl/workbook.xml": b"<x/>"}), "a.xlsx", IMAGE, "workbook is damaged"),
        (archive(**{"xl/workbook.bin": b"x"}), "a.xlsb", TEXT, "binary workbook"),
        (archive(**{"xl/words.txt": b"a"}), "a.zip", IMAGE, "holds no PNG, JPEG or WebP images"),
        (b"age\n1\n", "a.csv", Layout(kind="table"), "columns: the project declares none"),
        (b"a\n1\n", "a.csv", Layout(kind="image"), "image_height"),
    ],
)
def test_unreadable_files_are_refused_by_rule(data, name, layout, message):
    with pytest.raises(InvalidUpload, match=message):
        read(data, name=name, layout=layout)


def test_format_is_told_by_content_before_name():
    assert detect_format(io.BytesIO(parquet(text=["a"])), "a.csv") == Detected(Format.PARQUET)
    assert detect_format(io.BytesIO(gzip.compress(b"a\tb\n", mtime=0)), "a.tsv.gz") == Detected(
        Format.TSV, compressed=True
    )
    assert detect_format(io.BytesIO(b'{"a": 1}'), "a.csv") == Detected(Format.CSV)


# --- JSON lines


def test_json_lines_name_each_bad_line():
    lines = [
        '{"text": "a"}',
        '{"text": true}',
        "{nonsense",
        '["text"]',
        '{"id": 1}',
        '{"text": null}',
        '{"text": "\\ud800"}',
    ]
    texts, bad = read_texts("\n".join([*lines, '{"text": "' + "[" * 10 + '"}', "[" * 100_000]).encode(), name="a.jsonl")
    assert texts == ["a", "[" * 10]
    assert [(row.line, row.column, row.reason) for row in bad] == [
        (2, "text", cells.NOT_TEXT),
        (3, "", "is not valid JSON"),
        (4, "", "is not a JSON object"),
        (5, "text", "is missing"),
        (6, "text", cells.EMPTY),
        (7, "text", cells.HALF),
        (9, "", "is not valid JSON"),
    ]


# --- Parquet


def test_parquet_with_bytes_that_are_no_utf8_names_the_row():
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(struct.pack("<3i", 0, 2, 4)), pa.py_buffer(b"ok\xff\xfe")]
    )
    assert read_texts(parquet(text=broken)) == (["ok"], [BadRow(2, "text", cells.NOT_UTF8)])


# --- contributors and labels


# --- tables


def test_table_cells_follow_their_declaration():
    data = (
        b"job,age,weight,town,secret\n"
        b"cook,1e2,,Ulm,x\n"  # an empty weight has a declared stand-in
        b"clerk,-5.5,3,Rome,x\n"  # out of bounds is clipped later, not bad
        b"cook,nan,3,Ulm,x\n"
        b"cook,1_0,3,Ulm,x\n"
        b"cook,,3,Ulm,x\n"
        b"king,1,3,Ulm,x\n"
        b"cook,1,inf,Ulm,x\n"
        b"cook,1,3,,x\n"
    )
    bad, (*_, last) = read(data, layout=TABLE)
    assert last.payloads == [
        {"age": 100, "weight": None, "job": "cook", "town": "Ulm"},
        {"age": -5.5, "weight": 3, "job": "clerk", "town": "Rome"},
    ]
    assert [(row.line, row.column, row.reason) for row in bad] == [
        (4, "age", checks.NOT_A_NUMBER),
        (5, "age", checks.NOT_A_NUMBER),
        (6, "age", cells.EMPTY),
        (7, "job", checks.NOT_DECLARED),
        (8, "weight", checks.NOT_A_NUMBER),
        (9, "town", cells.EMPTY),
    ]


def test_table_from_parquet_and_json_keeps_types():
    row = {"age": 3, "weight": 2.5, "job": "cook", "town": "Bonn"}
    for data, name in (
        (parquet(**{key: [value] for key, value in row.items()}), "a"),
        (json.dumps(row).encode(), "a.jsonl"),
    ):
        bad, (*_, last) = read(data, layout=TABLE, name=name)
        assert (last.payloads, bad) == ([row], [])


# --- images


def test_images_from_zip_pixel_columns_and_lists_agree():
    flat = np.ravel(GREY).tolist()
    names = [f"pixel_{i}" for i in range(6)]
    as_csv = ",".join(names) + "\n" + ",".join(map(str, flat)) + "\n"
    listed = Layout(kind="image", height=2, width=3, pixels="image")
    for data, name, layout in (
        (archive(**{"a.png": png(GREY)}), "a.zip", IMAGE),
        (archive(**{"a.png": png(GREY, "RGB"), "__MACOSX/._a.png": b"x", "d/": b""}), "a.zip", IMAGE),
        (as_csv.encode(), "a.csv", IMAGE),
        (parquet(**{name: [value] for name, value in zip(names, flat, strict=True)}), "a.parquet", IMAGE),
        (parquet(image=[flat]), "a.parquet", listed),
        (parquet(image=[GREY]), "a.parquet", listed),
        (json.dumps({"image": flat}).encode(), "a.jsonl", listed),
    ):
        bad, batches = read(data, layout=layout, name=name)
        pixels = np.concatenate([batch.pixels for batch in batches])
        assert (bad, pixels.tolist(), pixels.dtype) == ([], [GREY], np.uint8)


def test_bad_pixels_name_their_row():
    listed = Layout(kind="image", height=2, width=3, pixels="image")
    rows = [[0] * 6, [0] * 5, [256] * 6, [-1] * 6, [0.5] * 6, None, [1] * 6]
    bad, (batch,) = read(parquet(image=rows), layout=listed)
    assert [row.line for row in bad] == [2, 3, 4, 5, 6]
    assert batch.pixels.tolist() == [[[0] * 3] * 2, [[1] * 3] * 2]


def bomb_png(width, height):
    """A PNG header that promises `width` x `height` pixels."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_bad_images_in_an_archive_are_named_by_their_place():
    sixteen_bit = io.BytesIO()
    Image.fromarray(np.full((2, 3), 40_000, dtype=np.uint16)).save(sixteen_bit, "PNG")
    jpeg = io.BytesIO()
    Image.fromarray(np.asarray(GREY, dtype=np.uint8)).save(jpeg, "JPEG")
    data = archive(
        **{
            "good.png": png(GREY),
            "../up.png": png(GREY),
            "/root.png": png(GREY),
            "C:\\a.png": png(GREY),
            "size.png": png([[1, 2]]),
            "jpeg.png": jpeg.getvalue(),
            "words.txt": b"my secret",
            "cut.png": png(GREY)[:-30],
            "bomb.png": bomb_png(2**31 - 1, 2**31 - 1),
            "noise.png": bytes(1_000_000),
            "deep.png": sixteen_bit.getvalue(),
            "fine.png": png(GREY, "P"),
            "long.png": bytes(readers_images.MAXIMUM_IMAGE_BYTES + 1),
        }
    )
    bad, (batch,) = read(data, layout=IMAGE, name="a.zip")
    assert batch.count == 4
    assert [(row.line, row.reason) for row in bad] == [
        (2, "has a file name that leads out of the archive"),
        (3, "has a file name that leads out of the archive"),
        (4, "has a file name that leads out of the archive"),
        (7, "is not a readable PNG, JPEG or WebP image"),
        (8, "is not a readable PNG, JPEG or WebP image"),
        (9, "has more than 16,777,216 pixels"),
        (10, "is not a readable PNG, JPEG or WebP image"),
        (11, "has more than eight bits a colour"),
        (13, "is larger than 33,554,432 bytes"),
    ]


def test_images_of_any_size_and_colour_become_grey_ones_of_the_declared_size():
    colour = np.zeros((4, 6, 3), dtype=np.uint8)
    colour[:, :2] = (255, 0, 0)
    colour[:2, 2:4] = 200
    large = io.BytesIO()
    Image.fromarray(colour).save(large, "PNG")
    plain = io.BytesIO()
    Image.fromarray(np.full((40, 60, 3), 90, dtype=np.uint8)).save(plain, "JPEG", quality=95)
    turned = io.BytesIO()
    shot = Image.fromarray(np.repeat(np.array([[0, 100, 200]], dtype=np.uint8), 2, axis=0))
    exif = shot.getexif()
    exif[0x0112] = 3
    shot.save(turned, "PNG", exif=exif)
    images = {"a.png": large.getvalue(), "b.jpg": plain.getvalue(), "c.JPEG": plain.getvalue(), "d.png": png([[7]])}
    bad, (batch,) = read(archive(**images, **{"e.png": turned.getvalue()}), layout=IMAGE, name="a.zip")
    assert bad == []
    red = round(255 * 0.299)
    assert batch.pixels[0].tolist() == [[red, 200, 0], [red, 0, 0]]
    assert np.abs(batch.pixels[1].astype(int) - 90).max() <= 2
    assert (batch.pixels[1] == batch.pixels[2]).all()
    assert (batch.pixels[3] == 7).all()
    assert batch.pixels[4].tolist() == [[200, 100, 0]] * 2


def test_folders_label_the_images_of_a_test_set():
    layout = Layout(kind="image", height=2, width=3, label="label", classes=("cat", "dog"))
    data = archive(
        **{"set/dog/1.png": png(GREY), "set/cat/1.png": png(GREY), "set/cow/1.png": png(GREY), "1.png": png(GREY)}
    )
    bad, (batch,) = read(data, layout=layout, name="a.zip")
    assert batch.labels == [1, 0]
    assert [row.line for row in bad] == [3, 4]


@pytest.mark.parametrize(
    ("cell", "number"),
    [("10,5", 10.5), ("1.234,5", 1234.5), ("-7", -7), ("12.345", 12345), ("1,5e3", 1500), (3.5, 3.5)],
)
def test_numbers_with_a_decimal_comma(cell, number):
    assert checks.read_number(cell, may_be_empty=False, decimal=",") == number


@pytest.mark.parametrize("cell", ["10.5", "1,2,3", "1.2345", ",", "", "a"])
def test_texts_that_are_no_number_with_a_decimal_comma(cell):
    with pytest.raises(cells.BadCell):
        checks.read_number(cell, may_be_empty=False, decimal=",")


def test_a_decimal_comma_is_suggested_and_never_guessed():
    with pytest.raises(cells.BadCell) as refused:
        checks.read_number("10,05", may_be_empty=False)
    assert str(refused.value) == checks.COMMA


def test_texts_that_say_a_value_is_missing():
    declared = (
        {"name": "age", "low": 0, "high": 99, "missing": 50},
        {"name": "job", "categories": ["cook"], "missing": "none"},
        {"name": "size", "low": 0, "high": 9},
    )
    layout = Layout(kind="table", declared=declared, missing=("NA", "-99"))
    rows = [
        {"age": math.nan, "job": None, "size": 1},
        {"age": "NA", "job": " NA ", "size": 2},
        {"age": 5, "job": "cook", "size": "NA"},
    ]
    file = io.BytesIO("\n".join(map(json.dumps, rows)).encode())
    (batch,) = Upload(file, "a.jsonl", layout, maximum_bytes=1000).batches()
    assert batch.payloads == [{"age": None, "job": None, "size": 1}, {"age": None, "job": None, "size": 2}]
    assert [(row.line, row.column, row.reason) for row in batch.bad] == [(3, "size", cells.EMPTY)]
