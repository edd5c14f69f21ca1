"""Encodings of text files: by the mark or as declared, never guessed: many take any bytes."""

import codecs
from enum import Enum

from dpal.errors import Unreadable
from dpal.wording import as_message


class Encoding(str, Enum):
    """The encodings that are read; the value is what a mapping says and what Python calls it."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_16_LE = "utf-16-le"
    UTF_16_BE = "utf-16-be"
    WINDOWS_1252 = "windows-1252"
    LATIN_1 = "iso-8859-1"
    LATIN_9 = "iso-8859-15"
    MAC_ROMAN = "mac-roman"
    WINDOWS_1250 = "windows-1250"
    LATIN_2 = "iso-8859-2"
    WINDOWS_1251 = "windows-1251"
    KOI8_R = "koi8-r"
    KOI8_U = "koi8-u"
    WINDOWS_1253 = "windows-1253"
    GREEK = "iso-8859-7"
    WINDOWS_1254 = "windows-1254"
    WINDOWS_1255 = "windows-1255"
    WINDOWS_1256 = "windows-1256"
    WINDOWS_1257 = "windows-1257"
    WINDOWS_1258 = "windows-1258"
    THAI = "windows-874"
    SHIFT_JIS = "shift_jis"
    EUC_JP = "euc_jp"
    GB18030 = "gb18030"
    BIG5 = "big5"
    EUC_KR = "euc_kr"

    @property
    def codec(self) -> str:
        """Return the name by which Python reads it: what Windows calls by a standard's name is its own, wider one."""
        return CODECS.get(self.value, self.value)

    def __str__(self) -> str:
        return self.value


CODECS = {"windows-874": "cp874", "shift_jis": "cp932", "euc_kr": "cp949"}
WIDE = (Encoding.UTF_16, Encoding.UTF_16_LE, Encoding.UTF_16_BE)
# The longer ones first: two of them begin alike.
UTF_32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
MARKS = (
    (codecs.BOM_UTF8, (Encoding.UTF_8,)),
    (codecs.BOM_UTF16_LE, (Encoding.UTF_16, Encoding.UTF_16_LE)),
    (codecs.BOM_UTF16_BE, (Encoding.UTF_16, Encoding.UTF_16_BE)),
)
UNMARKED_UTF_16 = as_message("file: looks like UTF-16; choose utf-16-le or utf-16-be, or save it as UTF-8")


def settled_encoding(head: bytes, declared: str | None) -> Encoding:
    """Return the encoding of a text by its mark, else as declared, else UTF-8; refused where these contradict."""
    if head.startswith(UTF_32_MARKS):
        raise Unreadable("file: is UTF-32; save it as UTF-8")
    marked = next((meant for mark, meant in MARKS if head.startswith(mark)), None)
    if marked is not None:
        if declared and declared not in marked:
            raise Unreadable(
                as_message(
                    "encoding: the file is {marked}, not {declared}",
                    marked=marked[0].value,
                    declared=declared,
                )
            )
        return marked[0]
    if declared == Encoding.UTF_16:
        raise Unreadable("encoding: the file has no byte order mark; choose utf-16-le or utf-16-be")
    if declared not in WIDE and _seems_wide(head):
        raise Unreadable(UNMARKED_UTF_16)
    return Encoding(declared or Encoding.UTF_8)


def _seems_wide(head: bytes) -> bool:
    first = head[:64].split(b"\n", 1)[0]
    zeros = max(first[::2].count(0), first[1::2].count(0))
    return len(first) >= 4 and zeros * 2 >= len(first) - 1


def errors_of(encoding: Encoding) -> str:
    """Return the handler by which undecodable bytes become lone surrogates."""
    return "surrogatepass" if encoding in WIDE else "surrogateescape"


def head_as_utf8(head: bytes, encoding: Encoding) -> bytes:
    """Return the beginning of a text in UTF-8; it may end within a character."""
    text = codecs.getincrementaldecoder(encoding.codec)(errors_of(encoding)).decode(head)
    return text.encode("utf-8", errors_of(encoding))
