"""How the letters of a text file are written: by its mark, or as declared, and never guessed.

Bytes 80 to 9F tell Windows-1252 from Latin-1, and both take any bytes at all, so that only people can say which it is.
"""

import codecs
from enum import StrEnum
from typing import Protocol

from annotation.errors import InvalidUpload
from privacy.wording import as_message


class Encoding(StrEnum):
    """The encodings that are read; the value is what a mapping says and what Python calls it."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_16_LE = "utf-16-le"
    UTF_16_BE = "utf-16-be"
    WINDOWS_1252 = "windows-1252"
    LATIN_1 = "iso-8859-1"


WIDE = (Encoding.UTF_16, Encoding.UTF_16_LE, Encoding.UTF_16_BE)
# The longer ones first: two of them begin alike.
UTF_32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
MARKS = (
    (codecs.BOM_UTF8, (Encoding.UTF_8,)),
    (codecs.BOM_UTF16_LE, (Encoding.UTF_16, Encoding.UTF_16_LE)),
    (codecs.BOM_UTF16_BE, (Encoding.UTF_16, Encoding.UTF_16_BE)),
)
UNMARKED_UTF_16 = as_message(
    "file: seems to be UTF-16 without the mark that says so; choose utf-16-le or utf-16-be as its encoding, or save it "
    "as UTF-8, in Excel as “CSV UTF-8”"
)


class Bytes(Protocol):
    """Whatever gives bytes."""

    def read(self, size: int = ..., /) -> bytes: ...


def settled_encoding(head: bytes, declared: str | None) -> Encoding:
    """Return the encoding of a text that begins with `head`: what its mark says, else what was declared, else UTF-8.

    Raises
    ------
    InvalidUpload
        If the two contradict each other, or nobody said what the bytes need said.
    """
    if head.startswith(UTF_32_MARKS):
        raise InvalidUpload("file: is encoded as UTF-32; save it as UTF-8 and upload that")
    marked = next((meant for mark, meant in MARKS if head.startswith(mark)), None)
    if marked is not None:
        if declared and declared not in marked:
            raise InvalidUpload(
                as_message(
                    "encoding: the file begins with the mark of {marked}, so it is not {declared}",
                    marked=marked[0].value,
                    declared=declared,
                )
            )
        return marked[0]
    if declared == Encoding.UTF_16:
        raise InvalidUpload(
            "encoding: the file has no mark that says in which order its bytes stand; choose utf-16-le or utf-16-be"
        )
    if declared not in WIDE and _seems_wide(head):
        raise InvalidUpload(UNMARKED_UTF_16)
    return Encoding(declared or Encoding.UTF_8)


def _seems_wide(head: bytes) -> bool:
    """Say whether every other byte of the first line is zero, as of plain letters in UTF-16."""
    first = head[:64].split(b"\n", 1)[0]
    zeros = max(first[::2].count(0), first[1::2].count(0))
    return len(first) >= 4 and zeros * 2 >= len(first) - 1


def head_as_utf8(head: bytes, encoding: Encoding) -> bytes:
    """Return the beginning of a text in UTF-8; it may end within a character."""
    if encoding == Encoding.UTF_8:
        return head
    return _decoder(encoding).decode(head).encode("utf-8", "surrogatepass")


class InUtf8:
    """A stream of text in UTF-8, whatever it is stored in; what cannot be decoded is no UTF-8 afterwards either.

    So the checks find it in the very row that holds it, as they do in any other file.
    """

    def __init__(self, stream: Bytes, encoding: Encoding) -> None:
        self._stream = stream
        self._decoder = _decoder(encoding)

    def read(self, size: int = -1, /) -> bytes:
        """Return the text of the next `size` bytes; none at the end."""
        while True:
            piece = self._stream.read(size)
            try:
                text = self._decoder.decode(piece, final=not piece)
            except UnicodeDecodeError:
                raise InvalidUpload("file: is cut off within a character of UTF-16") from None
            if text or not piece:
                return text.encode("utf-8", "surrogatepass")


def _decoder(encoding: Encoding) -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder(encoding)("surrogatepass" if encoding in WIDE else "surrogateescape")
