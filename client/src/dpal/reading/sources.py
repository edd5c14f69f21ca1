"""Text files line by line in bounded memory, compressed or not, whatever their encoding."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, cast

from dpal.errors import Unreadable
from dpal.reading.encodings import Encoding, errors_of
from dpal.wording import as_message

CHUNK_BYTES = 1024 * 1024
MAXIMUM_LINE_BYTES = 8 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class FileRange:
    def __init__(self, file: BinaryIO, start: int, stop: int) -> None:
        self._file = file
        self._left = stop - start
        file.seek(start)

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(piece)
        return piece


class _Counted(io.RawIOBase):
    """Bytes of a stream, counted once they are unpacked and refused beyond a number."""

    def __init__(self, stream: "BinaryIO | FileRange | gzip.GzipFile", maximum_bytes: int, chunk_bytes: int) -> None:
        self._stream, self._maximum_bytes, self._chunk_bytes = stream, maximum_bytes, chunk_bytes
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self._stream.read(min(len(buffer), self._chunk_bytes))
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise Unreadable("file: the gzip archive is damaged or cut off") from None
        except zipfile.BadZipFile:
            raise Unreadable("file: the zip archive is damaged or cut off") from None
        self.count += len(piece)
        if self.count > self._maximum_bytes:
            raise Unreadable(as_message("file: holds more than {most:,} bytes once unpacked", most=self._maximum_bytes))
        buffer[: len(piece)] = piece
        return len(piece)


def opened_member(file: BinaryIO, member: str) -> IO[bytes]:
    try:
        return zipfile.ZipFile(file).open(member)
    except (zipfile.BadZipFile, KeyError, RuntimeError, OSError, ValueError, NotImplementedError, EOFError):
        raise Unreadable("file: the zip archive is damaged or cut off") from None


class TextSource:
    """Lines of an upload; bytes that are no text in its encoding become lone surrogates, which the checks find."""

    def __init__(
        self,
        file: "BinaryIO | FileRange",
        *,
        compressed: bool,
        member: str | None = None,
        maximum_bytes: int,
        from_start: bool = True,
        encoding: Encoding = Encoding.UTF_8,
        chunk_bytes: int = CHUNK_BYTES,
        line_bytes: int = MAXIMUM_LINE_BYTES,
    ) -> None:
        self._chunk_bytes, self._line_bytes = chunk_bytes, line_bytes
        stream: Any = file
        if member is not None:
            stream = opened_member(cast(BinaryIO, file), member)
        elif compressed:
            stream = gzip.GzipFile(fileobj=cast(BinaryIO, file))
        self._bytes = _Counted(stream, maximum_bytes, chunk_bytes)
        marked = from_start and encoding == Encoding.UTF_8
        self._text = io.TextIOWrapper(
            io.BufferedReader(self._bytes, chunk_bytes),
            "utf-8-sig" if marked else encoding.codec,
            errors_of(encoding),
            newline="",
        )

    @property
    def chunks(self) -> int:
        """Pieces of `chunk_bytes` read so far, by which a reader knows when to hand over a batch."""
        return self._bytes.count // self._chunk_bytes

    def lines(self) -> Iterator[str]:
        """Yield every line with its ending; a line ends at LF, CR or CRLF, as in an editor."""
        read = self._text.readline
        with _whole_characters():
            while line := read(self._line_bytes + 1):
                if len(line) > self._line_bytes:
                    raise Unreadable(as_message("file: has a line longer than {most:,} bytes", most=self._line_bytes))
                yield line

    def text(self) -> Iterator[str]:
        """Yield the file in pieces that end anywhere, but never within a character."""
        with _whole_characters():
            while piece := self._text.read(self._chunk_bytes):
                yield piece


@contextmanager
def _whole_characters() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError:
        raise Unreadable("file: is cut off within a character of UTF-16") from None
