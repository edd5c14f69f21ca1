"""Text files in bounded pieces: whole lines, never more than a few MiB at once, compressed or not."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from annotation.data.readers.encodings import Encoding, InUtf8
from annotation.errors import InvalidUpload
from privacy.wording import as_message

CHUNK_BYTES = 1024 * 1024
MAXIMUM_LINE_BYTES = 8 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class FileRange:
    """The bytes of a file from `start` to `stop`, read as if they were a file of their own."""

    def __init__(self, file: BinaryIO, start: int, stop: int) -> None:
        self._file = file
        self._left = stop - start
        file.seek(start)

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, all that are left without one; none at the end of the range."""
        piece = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(piece)
        return piece


class TextSource:
    """The lines of an upload; `chunks` counts the pieces read, so that a reader knows when to hand over a batch.

    Bytes that are no text in the encoding become lone surrogates, which the checks find in the very row that has them.
    """

    def __init__(
        self,
        file: "BinaryIO | FileRange",
        *,
        compressed: bool,
        maximum_bytes: int,
        from_start: bool = True,
        encoding: Encoding = Encoding.UTF_8,
    ) -> None:
        self._stream: BinaryIO | FileRange | gzip.GzipFile | InUtf8 = (
            gzip.GzipFile(fileobj=cast(BinaryIO, file)) if compressed else file
        )
        if encoding != Encoding.UTF_8:
            self._stream = InUtf8(self._stream, encoding)
        self._maximum_bytes = maximum_bytes
        self._from_start = from_start
        self.chunks = 0

    def lines(self) -> Iterator[str]:
        """Yield every line with its ending; a line ends at LF, CR or CRLF, as in an editor."""
        for chunk in self._whole_lines():
            self.chunks += 1
            yield from io.StringIO(chunk.decode("utf-8", "surrogateescape"), newline="")

    def text(self) -> Iterator[str]:
        """Yield the file in pieces that end anywhere, but never within a character."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        for piece in self._pieces():
            self.chunks += 1
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)

    def _whole_lines(self) -> Iterator[bytes]:
        """Yield pieces that end with a line; the last one ends with the file."""
        rest = b""
        for piece in self._pieces():
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield rest + piece[:cut]
                rest = piece[cut:]
            else:
                rest += piece
            if len(rest) > MAXIMUM_LINE_BYTES:
                raise InvalidUpload(
                    as_message(
                        "file: has a line longer than {most:,} bytes",
                        most=MAXIMUM_LINE_BYTES,
                    )
                )
        if rest:
            yield rest

    def _pieces(self) -> Iterator[bytes]:
        total = 0
        while piece := self._read():
            total += len(piece)
            if total > self._maximum_bytes:
                raise InvalidUpload(
                    as_message("file: holds more than {most:,} bytes once unpacked", most=self._maximum_bytes)
                )
            opens = self._from_start and total == len(piece)
            yield piece.removeprefix(BYTE_ORDER_MARK) if opens else piece

    def _read(self) -> bytes:
        try:
            return self._stream.read(CHUNK_BYTES)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise InvalidUpload("file: the gzip archive is damaged or cut off") from None
