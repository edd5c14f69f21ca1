"""One file for several readers: where it may be cut, and how what lies between two cuts is read."""

# A cut is a guess: whoever reads up to a cut that lies within a quoted field says so, and then the file
# is read in one piece. So the rows, their numbers and what is wrong with them depend on no cut.

import csv
import io
import math
from collections.abc import Iterator
from typing import BinaryIO

from annotation.data.readers.checks import check_rows
from annotation.data.readers.parquet import ParquetReader
from annotation.data.readers.reading import Upload
from annotation.data.readers.texts import TextReader
from dpal.reading.delimited import AT_THE_END
from dpal.reading.encodings import Encoding
from dpal.reading.rows import RowBatch

# Nearly every quoted field that began before the cut ends, or breaks a rule, within it.
WINDOW_BYTES = 1024 * 1024
# Line ends of one window that are looked at before it is given up.
MOST_TRIES = 64


class PartReader:
    """Checked rows between two cuts; afterwards `lines` counts them, and `is_whole` says if the last ended there."""

    def __init__(self, upload: Upload, file: BinaryIO, *, first: int, stop: int) -> None:
        self._upload = upload
        self._reader: ParquetReader | TextReader
        if isinstance(upload.reader, ParquetReader):
            self._reader = ParquetReader(file, upload.layout, maximum_bytes=upload.maximum_bytes, groups=(first, stop))
            return
        if not is_of_lines(upload):
            raise TypeError(f"a {upload.format.name} file is read in one piece")
        assert isinstance(upload.reader, TextReader)
        self._reader = TextReader(
            file,
            upload.layout,
            upload.reader.kind,
            delimiter=upload.reader.delimiter,
            maximum_bytes=upload.maximum_bytes,
            part=(first, stop),
            follows=upload.reader if first else None,
        )

    def batches(self) -> Iterator[RowBatch]:
        """Yield checked rows in file order, their lines counted from the cut; once."""
        for raw in self._reader.batches():
            yield check_rows(raw, self._upload.layout)

    @property
    def lines(self) -> int:
        return self._reader.lines_read

    @property
    def is_whole(self) -> bool:
        return not (isinstance(self._reader, TextReader) and self._reader.ends_within)

    @property
    def unpacked_bytes(self) -> int:
        """Size of a Parquet file's rows when written out; 0 for files that are no larger than they seem."""
        return self._reader.unpacked_bytes if isinstance(self._reader, ParquetReader) else 0


def is_of_lines(upload: Upload) -> bool:
    return isinstance(upload.reader, TextReader) and upload.reader.kind in ("delimited", "lines")


def find_cuts(upload: Upload, file: BinaryIO, *, size: int, part_bytes: int) -> list[int]:
    """Return offsets, or row groups of Parquet, between parts of about `part_bytes`; only two for one piece."""
    if isinstance(upload.reader, ParquetReader):
        return _cuts_between_groups(upload.reader.group_bytes, part_bytes)
    if not is_of_lines(upload) or upload.compressed or upload.encoding != Encoding.UTF_8 or size > upload.maximum_bytes:
        return [0, size]
    # Up to here the header was looked for; it stays in one part with what names it.
    head = file.tell()
    parts = size // part_bytes
    cuts = [0]
    for number in range(1, parts):
        wanted = max(size * number // parts, head)
        found = _break_after(upload, file, wanted) if wanted > cuts[-1] else None
        if found is not None and found < size:
            cuts.append(found)
    return [*cuts, size]


def _cuts_between_groups(sizes: list[int], part_bytes: int) -> list[int]:
    cuts, held = [0], 0
    for group, size in enumerate(sizes, start=1):
        held += size
        if held >= part_bytes:
            cuts.append(group)
            held = 0
    return cuts if cuts[-1] == len(sizes) else [*cuts, len(sizes)]


def _break_after(upload: Upload, file: BinaryIO, place: int) -> int | None:
    """Return the first offset after `place` at which a row surely seems to begin; None where none is near."""
    file.seek(place)
    window = file.read(2 * WINDOW_BYTES)
    end = 0
    for _ in range(MOST_TRIES):
        end = window.find(b"\n", end) + 1
        if not end or end > WINDOW_BYTES:
            return None
        assert isinstance(upload.reader, TextReader)
        if upload.reader.kind == "lines" or not upload.layout.quoting:
            return place + end
        following = window[end : end + WINDOW_BYTES].decode("utf-8", "surrogateescape")
        # What follows makes sense as rows for longer than as the rest of a quoted field.
        if _lines_read('"' + following, upload.reader.delimiter) < _lines_read(following, upload.reader.delimiter):
            return place + end
    return None


def _lines_read(text: str, delimiter: str) -> float:
    """Return how many lines of a text break no rule of quoting; no number ends it where all of them do not."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for _ in reader:
            pass
    except csv.Error as error:
        # Where the window is cut off says nothing.
        return math.inf if AT_THE_END in str(error) else reader.line_num
    return math.inf
