"""The first pages of a Parquet file, as far as they unpack into bounded memory: a look at it reads no others.

The footer's sizes may lie, and a page of some kilobytes may hold one cell of a gigabyte. What a page unpacks to stands
in its own header, before it, and readers give it that much memory and no more.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from annotation.errors import InvalidUpload
from privacy.wording import as_message

# Of a list's elements, each of which takes some bytes however few its page takes.
MOST_ELEMENTS = 16_000_000
DAMAGED = "file: the Parquet file is damaged or cut off"
# Types of the compact Thrift protocol in which page headers are written.
STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
NUMBERS = {I16, I32, I64}
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class PageHeader:
    """What the header of a page says: where it ends, and what it unpacks to."""

    end: int
    unpacked_bytes: int
    values: int


class FirstPages(io.RawIOBase):
    """A Parquet file whose later pages read as zeros, which no reader takes for a page.

    Parameters
    ----------
    file : BinaryIO
        The whole file.
    metadata : pyarrow.parquet.FileMetaData
        Its footer.
    columns : sequence of str
        Names of the columns that are read; all pages of others are hidden.
    rows : int
        How many rows are to be read.
    most_bytes : int
        What the pages that are left may unpack to, all columns together.

    Raises
    ------
    InvalidUpload
        If not even the first pages fit, or a header cannot be read.
    """

    def __init__(self, file: BinaryIO, metadata: Any, columns: Sequence[str], *, rows: int, most_bytes: int) -> None:
        self._file = file
        self._size = file.seek(0, io.SEEK_END)
        self._at = 0
        self._left = most_bytes
        self._elements_left = MOST_ELEMENTS
        chunks: list[tuple[int, int, bool]] = []
        self._shown: list[tuple[int, int]] = []
        for group in _groups_of(metadata, rows):
            for chunk in map(group.column, range(group.num_columns)):
                name, _, inside = chunk.path_in_schema.partition(".")
                if name in columns:
                    start, stop = _extent(chunk, self._size)
                    first = self._first_kept(chunk, start, stop, nested=bool(inside))
                    self._shown.append((start, first))
                    chunks.append((first, stop, bool(inside)))
        if self._left < 0 or self._elements_left < 0:
            raise InvalidUpload(
                as_message("file: its first rows take more than {most:,} bytes once unpacked", most=most_bytes)
            )
        # Each further page holds a row at least, in a file of good will.
        self._shown += [(chunk[0], self._more_kept(*chunk, most_pages=rows)) for chunk in chunks]

    def _first_kept(self, chunk: Any, start: int, stop: int, *, nested: bool) -> int:
        """Return where the first page of data ends, behind a dictionary perhaps, and count what both take."""
        end = start
        for page in islice(pages(self._file, start, stop), 2 if chunk.has_dictionary_page else 1):
            self._count(page, nested=nested)
            end = page.end
        return end

    def _more_kept(self, start: int, stop: int, nested: bool, *, most_pages: int) -> int:
        """Return where those of the next pages end for which there is room."""
        for page in islice(pages(self._file, start, stop), most_pages):
            if page.unpacked_bytes > self._left or (nested and page.values > self._elements_left):
                break
            self._count(page, nested=nested)
            start = page.end
        return start

    def _count(self, page: PageHeader, *, nested: bool) -> None:
        self._left -= page.unpacked_bytes
        self._elements_left -= page.values if nested else 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read anywhere."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return bytes, those of hidden pages as zeros."""
        self._file.seek(self._at)
        found = self._file.read(size)
        piece, first, after = bytearray(len(found)), self._at, self._at + len(found)
        for start, stop in self._shown:
            low, high = max(start, first), min(stop, after)
            if low < high:
                piece[low - first : high - first] = found[low - first : high - first]
        self._at = after
        return bytes(piece)


def pages(file: BinaryIO, start: int, stop: int) -> Iterator[PageHeader]:
    """Yield the pages of a column chunk, which lies between two places of the file, by their headers alone."""
    while start < stop:
        file.seek(start)
        header = _Header(file, stop - start)
        try:
            found = header.struct(wanted={2, 3, 5, 7, 8})
            unpacked, packed = int(found[2]), int(found[3])
            counted: dict[int, int] = next((found[place] for place in (5, 8, 7) if place in found), {})
            values = int(counted.get(1, 0))
        except (KeyError, TypeError, ValueError, IndexError):
            raise InvalidUpload(DAMAGED) from None
        if unpacked < 0 or packed < 0 or values < 0:
            raise InvalidUpload(DAMAGED)
        start += header.length + packed
        yield PageHeader(start, unpacked, values)


def _groups_of(metadata: Any, rows: int) -> Iterator[Any]:
    """Yield the row groups that hold the first rows; an empty one has no pages."""
    seen = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        if group.num_rows:
            yield group
        seen += group.num_rows
        if seen >= rows:
            return


def _extent(chunk: Any, size: int) -> tuple[int, int]:
    """Return where a column chunk begins and ends."""
    starts = [chunk.data_page_offset, *([chunk.dictionary_page_offset] if chunk.has_dictionary_page else [])]
    start = min(starts)
    stop = start + chunk.total_compressed_size
    if not 0 <= start <= stop <= size:
        raise InvalidUpload(DAMAGED)
    return start, stop


class _Header:
    """The compact Thrift protocol, as far as page headers use it; fields nobody asked for are passed over."""

    def __init__(self, file: BinaryIO, room: int) -> None:
        self._file = file
        self._room = room
        self.length = 0

    def struct(self, *, wanted: set[int] | None = None, depth: int = 0) -> dict[int, Any]:
        """Return the numbers, and structs of numbers, among the wanted fields; of an inner struct its first number."""
        if depth > DEEPEST:
            raise ValueError
        found: dict[int, Any] = {}
        field = 0
        while (mark := self._byte()) & 15 != STOP:
            kind = mark & 15
            field = field + (mark >> 4) if mark >> 4 else self._number()
            if kind in NUMBERS:
                value = self._number()
                if wanted is None or field in wanted:
                    found[field] = value
            elif kind == STRUCT and wanted is not None and field in wanted:
                found[field] = self.struct(depth=depth + 1)
            else:
                self._skip(kind, depth + 1)
        return found

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (TRUE, FALSE):
            return
        if kind == BYTE:
            self._byte()
        elif kind in NUMBERS:
            self._varint()
        elif kind == DOUBLE:
            self._pass(8)
        elif kind == BINARY:
            self._pass(self._varint())
        elif kind == STRUCT:
            self.struct(depth=depth)
        else:
            # No header of a page holds a list, a set or a map.
            raise ValueError

    def _byte(self) -> int:
        self._pass(0, ahead=1)
        self.length += 1
        return self._file.read(1)[0]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError

    def _number(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _pass(self, count: int, *, ahead: int = 0) -> None:
        if self.length + count + ahead > self._room:
            raise ValueError
        if count:
            self._file.seek(count, io.SEEK_CUR)
            self.length += count
