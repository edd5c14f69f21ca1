"""Zip archives that hold one file of data: found by the list at their end, of which only so much is read."""

import io
import struct
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import BinaryIO, NamedTuple

from dpal.errors import Unreadable
from dpal.wording import as_message

DATA = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
PACKED = (".parquet", ".xlsx", ".xls", ".gz", ".zip")
IMAGES = (".png", ".jpg", ".jpeg", ".webp")
LITTER = (".DS_Store", "Thumbs.db")
LOCAL = struct.Struct("<26xHH")
# Bytes of a member that are unpacked to look at its beginning.
PIECE_BYTES = 64 * 1024
SHOWN = 10


class Member(NamedTuple):
    name: str
    start: int
    stored: bool


def member_of(file: BinaryIO, tail: bytes, chosen: str | None = None) -> Member | None:
    """Return the one file of data in an archive; None where there are images, or no data.

    Raises
    ------
    Unreadable
        If there are several and none is `chosen`, or the one is locked or packed once more.
    """
    try:
        entries = zipfile.ZipFile(io.BytesIO(tail)).infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        return None
    # Python asks for the last sign of a name to tell a folder, and a name may be empty.
    entries = [entry for entry in entries if entry.filename and not entry.is_dir() and not is_litter(entry.filename)]
    endings = {entry.filename: PurePosixPath(entry.filename).suffix.lower() for entry in entries}
    if any(ending in IMAGES for ending in endings.values()):
        return None
    data = [entry for entry in entries if endings[entry.filename] in DATA + PACKED]
    if chosen is not None:
        data = [entry for entry in data if entry.filename == chosen]
        if not data:
            raise Unreadable(as_message("sheet: the file has none named {name!r}", name=chosen))
    if not data:
        return None
    names = ", ".join(entry.filename[:100] for entry in data[:SHOWN])
    if len(data) > 1:
        raise Unreadable(as_message("file: the zip holds several files ({names}); name one as sheet", names=names))
    (entry,) = data
    if endings[entry.filename] in PACKED:
        raise Unreadable(as_message("file: the zip holds {names}; unpack it and upload that", names=names))
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unreadable("file: the zip is locked or packed in an unknown way; unpack it and upload the file")
    size = file.seek(0, io.SEEK_END)
    # Places in the list count from where the file would begin if the tail were all of it.
    return Member(entry.filename, entry.header_offset + size - len(tail), entry.compress_type == zipfile.ZIP_STORED)


def is_litter(name: str) -> bool:
    path = PurePosixPath(name)
    return "__MACOSX" in path.parts or path.name in LITTER or path.name.startswith("._")


def head_of_member(file: BinaryIO, member: Member, size: int) -> bytes:
    """Return the first bytes of a member.

    Raises
    ------
    Unreadable
        If the archive is damaged.
    """
    try:
        file.seek(member.start)
        name, extra = LOCAL.unpack(file.read(LOCAL.size))
        file.seek(name + extra, io.SEEK_CUR)
        piece = file.read(PIECE_BYTES)
        return piece[:size] if member.stored else zlib.decompressobj(wbits=-15).decompress(piece, size)
    except (struct.error, zlib.error, ValueError, OSError):
        raise Unreadable("file: the zip archive is damaged or cut off") from None
