import io
import zipfile

import pytest

from dpal.errors import Unreadable
from dpal.reading.archives import head_of_member, member_of

ROWS = b"text,label\none,a\n" * 900


def packed(entries, method=zipfile.ZIP_DEFLATED, before=b""):
    sink = io.BytesIO(before)
    sink.seek(len(before))
    with zipfile.ZipFile(sink, "w", method) as target:
        for name, content in entries.items():
            target.writestr(name, content)
    return sink.getvalue()


def member(data, chosen=None, tail=64 * 1024):
    return member_of(io.BytesIO(data), data[-tail:], chosen)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("tail", [600, 64 * 1024])
def test_the_one_file_of_data_is_found_from_the_end_of_the_archive(method, tail):
    data = packed({"__MACOSX/._rows.csv": b"x", "out/rows.csv": ROWS, "README.md": b"x", "out/.DS_Store": b"y"}, method)
    found = member(data, tail=tail)
    assert found.name == "out/rows.csv"
    assert head_of_member(io.BytesIO(data), found, 10) == ROWS[:10]


def test_several_files_are_named_and_one_can_be_chosen():
    data = packed({"a.csv": ROWS, "b.jsonl": b"{}"})
    with pytest.raises(Unreadable, match=r"several files \(a\.csv, b\.jsonl\)"):
        member(data)
    assert member(data, "b.jsonl").name == "b.jsonl"
    with pytest.raises(Unreadable, match=r"has none named 'c\.csv'"):
        member(data, "c.csv")


def test_what_is_packed_once_more_is_refused():
    with pytest.raises(Unreadable, match=r"holds a\.parquet; unpack it"):
        member(packed({"a.parquet": b"PAR1"}))


@pytest.mark.parametrize("entries", [{"a.png": b"x", "labels.csv": ROWS}, {"notes.md": b"x"}, {}])
def test_archives_of_images_and_of_nothing_are_none_of_data(entries):
    assert member(packed(entries)) is None


def test_an_entry_without_a_name_is_none_of_data():
    # The name in the list at the end, after the one that stands before the bytes.
    data = packed({"x": b"1"})
    place = data.rindex(b"PK\x01\x02")
    nameless = bytearray(data[:place] + data[place : place + 46] + data[place + 47 :])
    nameless[place + 28 : place + 30] = b"\0\0"
    end = nameless.rindex(b"PK\x05\x06")
    nameless[end + 12 : end + 16] = (end - place).to_bytes(4, "little")
    assert member(bytes(nameless)) is None


def test_damaged_archives():
    assert member(b"PK\x03\x04 no archive") is None
    data = packed({"a.csv": ROWS})
    found = member(data)
    with pytest.raises(Unreadable, match="damaged"):
        head_of_member(io.BytesIO(data[: found.start + 10]), found, 10)
    with pytest.raises(Unreadable, match="damaged"):
        head_of_member(io.BytesIO(data[:40] + b"\xff" * 100), found, 10)
