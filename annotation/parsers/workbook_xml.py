"""The parts of a workbook, unpacked and read piece by piece, in memory that no content of theirs changes.

A part is XML in a zip archive that whoever made it may have bent: a tag of a gigabyte, a million nested ones, entities
that name each other. Each is refused before it is held.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO
from xml.parsers import expat  # every entity is refused below

from annotation.errors import InvalidUpload
from annotation.parsers.image_archive import MAXIMUM_DIRECTORY_BYTES, directory_bytes
from privacy.wording import as_message

PIECE_BYTES = 64 * 1024
# The longest tag, comment or name; a sheet's are a few hundred bytes.
MOST_TOKEN_BYTES = 1024 * 1024
MOST_DEPTH = 64
# Different names of elements and attributes; the format knows a few hundred, and the parser keeps each it has met.
MOST_NAMES = 10_000
MOST_CELL_CHARACTERS = 32_767
DAMAGED = as_message("file: the workbook is damaged or cut off")
BENT = as_message(
    "file: the workbook is not written as workbooks are; save it anew in a spreadsheet, or as CSV in UTF-8"
)
LONG_CELL = as_message("file: has a cell longer than {most:,} characters", most=MOST_CELL_CHARACTERS)


class XmlPartReader:
    """Reads one part: learns of each element by its name without a prefix, and the text of those it asks for."""

    def __init__(self) -> None:
        self._depth = 0
        self._keeps = False
        self._text: list[str] = []
        self._length = 0

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def closed(self, name: str) -> None:
        """An element ends."""

    def keep_text(self, keeps: bool) -> None:
        """Keep the text from here on, or no longer."""
        self._keeps = keeps

    def take_text(self) -> str:
        """Return all that was kept since the last time."""
        text = "".join(self._text)
        self._text, self._length, self._keeps = [], 0, False
        return text

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """What the parser calls."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise InvalidUpload(BENT)
        self.opened(name if ":" not in name else name.rpartition(":")[2], attributes)

    def end_element(self, name: str) -> None:
        """What the parser calls."""
        self._depth -= 1
        self.closed(name if ":" not in name else name.rpartition(":")[2])

    def characters(self, text: str) -> None:
        """What the parser calls."""
        if not self._keeps:
            return
        self._length += len(text)
        if self._length > MOST_CELL_CHARACTERS:
            raise InvalidUpload(LONG_CELL)
        self._text.append(text)

    def steps(self, pieces: Iterator[bytes]) -> Iterator[int]:
        """Read the pieces of a part; yields the bytes fed after each, so that what was found can be handed over."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self.start_element
        parser.EndElementHandler = self.end_element
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = _refuse_definitions
        fed = 0
        try:
            for piece in pieces:
                parser.Parse(piece, False)
                fed += len(piece)
                if fed - max(parser.CurrentByteIndex, 0) > MOST_TOKEN_BYTES or len(parser.intern) > MOST_NAMES:
                    raise InvalidUpload(BENT)
                yield fed
            parser.Parse(b"", True)
            yield fed
        except expat.ExpatError:
            raise InvalidUpload(DAMAGED) from None
        finally:
            # They hold the reader and it holds them, and an import collects no cycles.
            parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None

    def read(self, pieces: Iterator[bytes]) -> None:
        """Read a part to its end."""
        for _ in self.steps(pieces):
            pass


def _refuse_definitions(*_: object) -> None:
    raise InvalidUpload(BENT)


class WorkbookParts:
    """The archive of a workbook; with `most_bytes` no more than that is unpacked, from all parts together."""

    def __init__(self, file: BinaryIO, *, maximum_bytes: int, most_bytes: int | None = None) -> None:
        if directory_bytes(file) > MAXIMUM_DIRECTORY_BYTES:
            raise InvalidUpload(BENT)
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise InvalidUpload(DAMAGED) from None
        self._maximum_bytes = maximum_bytes if most_bytes is None else min(maximum_bytes, most_bytes)
        self._left = self._maximum_bytes

    def size_of(self, name: str) -> int:
        """Return what the archive says a part takes unpacked, 0 where there is none; no more is ever read of it."""
        try:
            return self._archive.getinfo(name).file_size
        except KeyError:
            return 0

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a part piece by piece."""
        try:
            entry = self._archive.getinfo(name)
            if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InvalidUpload(BENT)
            with self._archive.open(entry) as stream:
                while piece := stream.read(PIECE_BYTES):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise InvalidUpload(
                            as_message("file: holds more than {most:,} bytes once unpacked", most=self._maximum_bytes)
                        )
                    yield piece
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
            raise InvalidUpload(DAMAGED) from None

    def mentions(self, name: str, word: bytes) -> bool:
        """Say whether a word stands anywhere in a part, which costs far less than reading it."""
        before = b""
        for piece in self.pieces(name):
            if word in before + piece:
                return True
            before = piece[-len(word) :]
        return False

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Return what a part refers to: kind and name of each other part, by the id it has there."""
        folder, _, file = name.rpartition("/")
        described = posixpath.join(folder, "_rels", f"{file}.rels")
        if not self.size_of(described):
            return {}
        found = _Relations(folder)
        found.read(self.pieces(described))
        return found.targets


class _Relations(XmlPartReader):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self.targets: dict[str, tuple[str, str]] = {}

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        if name != "Relationship" or attributes.get("TargetMode") == "External":
            return
        if len(self.targets) >= MOST_NAMES:
            raise InvalidUpload(BENT)
        target = attributes.get("Target", "")
        path = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(self._folder, target))
        kind = attributes.get("Type", "").rpartition("/")[2]
        self.targets[attributes.get("Id", "")] = (kind, path)
