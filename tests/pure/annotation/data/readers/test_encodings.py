"""Text files in other encodings than UTF-8: by their mark or by somebody's word, and never guessed."""

import gzip
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.data.readers.reading import Upload
from annotation.data.readers.shapes import shape_of
from annotation.errors import InvalidUpload
from dpal.reading import cells, sources
from dpal.reading.rows import BadRow, Layout
from tests.pure.annotation.data.readers.test_parsers import parquet
from tests.workbooks import sheet, workbook

ROWS = "id,text\n1,Grüße\n2,“naïve” – 5 €\n"


def layout(encoding=None):
    return Layout(kind="text", text="text", encoding=encoding)


def read(data, encoding=None, name="a.csv"):
    batches = list(Upload(io.BytesIO(data), name, layout(encoding), maximum_bytes=10**9).batches())
    return [text for batch in batches for text in batch.texts], [bad for batch in batches for bad in batch.bad]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (ROWS.encode("utf-8"), None),
        (ROWS.encode("utf-8-sig"), None),
        (ROWS.encode("utf-8-sig"), "utf-8"),
        (ROWS.encode("utf-16"), None),
        (ROWS.encode("utf-16"), "utf-16"),
        (b"\xff\xfe" + ROWS.encode("utf-16-le"), "utf-16-le"),
        (b"\xfe\xff" + ROWS.encode("utf-16-be"), None),
        (ROWS.encode("utf-16-le"), "utf-16-le"),
        (ROWS.encode("utf-16-be"), "utf-16-be"),
        (ROWS.encode("windows-1252"), "windows-1252"),
        (gzip.compress(ROWS.encode("utf-16"), mtime=0), None),
        (gzip.compress(ROWS.encode("windows-1252"), mtime=0), "windows-1252"),
    ],
)
def test_every_encoding_gives_the_same_rows(data, encoding):
    assert read(data, encoding) == (["Grüße", "“naïve” – 5 €"], [])
    assert shape_of(io.BytesIO(data), "a.csv", maximum_bytes=10**9, encoding=encoding).columns == ("id", "text")


def test_latin_1_and_windows_1252_differ_where_people_must_say():
    data = "text\nüber\x80\n".encode("iso-8859-1")
    assert read(data, "iso-8859-1")[0] == ["über\x80"]
    assert read(data, "windows-1252")[0] == ["über€"]


@pytest.mark.parametrize(
    ("data", "encoding", "rule"),
    [
        (ROWS.encode("utf-16-le"), None, "file: looks like UTF-16"),
        (ROWS.encode("utf-16-be"), "windows-1252", "file: looks like UTF-16"),
        (ROWS.encode("utf-16-le"), "utf-16", "encoding: the file has no byte"),
        (ROWS.encode("utf-16"), "windows-1252", "encoding: the file is utf-16"),
        (b"\xfe\xff" + ROWS.encode("utf-16-be"), "utf-16-le", "is utf-16, not utf-16-le"),
        (ROWS.encode("utf-8-sig"), "iso-8859-1", "is utf-8, not iso-8859-1"),
        (ROWS.encode("utf-32"), None, "UTF-32"),
        (b"\xff\xfe" + ROWS.encode("utf-16-le")[:-1], None, "cut off within a character"),
        (parquet(text=["a"]), "utf-8", "only for text files"),
        (workbook({"A": sheet([["text"], ["a"]])}), "windows-1252", "only for text files"),
        (b"\x89PNG\r\n\x1a\n", "windows-1252", "must be CSV"),
    ],
)
def test_what_contradicts_itself_or_was_not_said_is_refused(data, encoding, rule):
    with pytest.raises(InvalidUpload, match=rule):
        read(data, encoding)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        *[("windows-1251", "привет"), ("koi8-r", "привет"), ("koi8-u", "ґанок"), ("windows-1250", "příliš žluťoučký")],
        *[("iso-8859-2", "żółw"), ("windows-1253", "καλημέρα"), ("iso-8859-7", "καλημέρα"), ("windows-1254", "ığdır")],
        *[("windows-1255", "שלום"), ("windows-1256", "مرحبا"), ("windows-1257", "ąžuolas"), ("windows-1258", "đường")],
        *[("windows-874", "สวัสดี"), ("shift_jis", "表①です"), ("euc_jp", "こんにちは"), ("gb18030", "你好，龘")],
        *[("big5", "許功蓋"), ("euc_kr", "안녕"), ("mac-roman", "ñandú"), ("iso-8859-15", "œuvre €")],
    ],
)
def test_encodings_of_all_regions(encoding, text):
    text = unicodedata.normalize("NFD", text) if encoding == "windows-1258" else text
    codec = {"windows-874": "cp874", "shift_jis": "cp932", "windows-1258": "cp1258"}.get(encoding, encoding)
    data = f"text\n{text}\nplain\n".encode(codec, "ignore" if encoding == "windows-1258" else "strict")
    found, bad = read(data, encoding)
    assert bad == []
    assert found[1] == "plain"
    assert encoding == "windows-1258" or found[0] == text


def test_bytes_that_are_nothing_in_it_name_their_row():
    assert read(b"text\na\x81b\ngood\n", "windows-1252") == (["good"], [BadRow(2, "text", cells.NOT_UTF8)])
    assert read(b"text\n\xfcber\ngood\n") == (["good"], [BadRow(2, "text", cells.NOT_UTF8)])
    half = "text\ngood\na".encode("utf-16-le") + b"\x00\xd8" + "\n".encode("utf-16-le")
    assert read(half, "utf-16-le") == (["good"], [BadRow(3, "text", cells.HALF)])
    assert read("text\na\0b\ngood\n".encode("utf-16")) == (["good"], [BadRow(2, "text", cells.NUL)])


@given(
    texts=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"])), max_size=6),
    size=st.integers(1, 7),
    encoding=st.sampled_from(["utf-16", "utf-16-le", "utf-16-be"]),
)
def test_pieces_may_end_within_a_character(texts, size, encoding):
    kept = [text for text in texts if text.strip() and '"' not in text and "," not in text]
    data = ("text\n" + "".join(f"{text}\n" for text in kept)).encode(encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "CHUNK_BYTES", size)
        found, bad = read(data, encoding)
    assert (found, bad) == (kept, [])
