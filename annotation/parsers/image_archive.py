"""PNG, JPEG and WebP images in a zip archive, decoded in a limited process; nothing is ever unpacked to disk."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import PurePosixPath, PureWindowsPath
from time import process_time
from typing import Any, BinaryIO

import numpy as np

from annotation.choices.label_types.base import LabelType
from annotation.errors import InvalidUpload
from annotation.parsers.checks import owners_columns, read_owner_cell, stored_label
from annotation.parsers.pictures import NOT_AN_IMAGE, read_image
from annotation.parsers.rows import BadRow, FirstRows, KeptPicture, Layout, RowBatch
from annotation.tables.cells import BadCell
from annotation.work.limits import Answer, LimitReached, Limits, run
from privacy.wording import as_message, message_from, message_of

BATCH_IMAGES = 512
# Images are handed on after so many bytes, however few they are.
BATCH_BYTES = 8 * 1024 * 1024
# Images of one archive that may reach a limit of their process.
MOST_REACHED = 10
MEMORY = 384
# A message gives the process more time, as many images take.
TELL_SECONDS = 0.5
# What the names of images are called, as if they were a column.
FILE_NAME = "file"
ENDINGS = (".png", ".jpg", ".jpeg", ".webp")
MAXIMUM_IMAGE_BYTES = 32 * 1024 * 1024
ENCRYPTED = as_message("is encrypted")
BAD_NAME = as_message("has a file name that leads out of the archive")
NO_FOLDER = as_message("lies in no folder named after a class")


class ImageArchiveReader:
    """Read images in the order of the archive; the "line" of an image is its place among them, from 1.

    In a test set the folder that holds an image is its label. A look reads no more than its rows, and keeps no picture.
    An image whose reading reaches a limit is bad, and those after it are read by another process.
    """

    def __init__(self, file: BinaryIO, layout: Layout, *, maximum_bytes: int, look: FirstRows | None = None) -> None:
        self._file = file
        self._layout = layout
        self._keeps = layout.pictures and look is None
        if layout.contributor:
            raise InvalidUpload("contributor: a zip of images names no contributors; use a Parquet file")
        if layout.owner_id not in (None, FILE_NAME) or layout.metadata:
            raise InvalidUpload(
                as_message("id: a zip of images has no columns but {name}, the name of each", name=FILE_NAME)
            )
        self._arguments: dict[str, Any] = {
            "height": layout.height,
            "width": layout.width,
            "colour": layout.colour,
            "keeps": self._keeps,
            "most": BATCH_IMAGES if look is None else min(look.rows, BATCH_IMAGES),
            "batch_bytes": BATCH_BYTES,
            "maximum_bytes": maximum_bytes,
        }
        self._answers = self._begin(0, {})
        next(self._answers)

    def _begin(self, after: int, skipped: dict[int, str], *, careful: bool = False) -> Iterator[Answer]:
        limits = Limits(memory=MEMORY, time=120, size=2**40)
        asked = {"after": after, "skipped": list(skipped), "careful": careful}
        return run(read_images, self._file, limits, **asked, **self._arguments)

    def batches(self) -> Iterator[RowBatch]:
        """Yield the images, already checked."""
        places = {name: place for place, name in enumerate(self._layout.classes)}
        skipped: dict[int, str] = {}
        whole = line = reached = 0
        careful = False
        while True:
            try:
                for found, content in self._answers:
                    line = found["line"]
                    if "images" in found:
                        yield self._batch(found, content, places, skipped)
                        whole, skipped = line, {}
                return
            except LimitReached as limit:
                # Which image it was is known where each was named before it was read.
                if careful:
                    reached += 1
                    skipped[line] = limit.reason
                if reached > MOST_REACHED:
                    raise
                careful = True
                self._answers = self._begin(whole, skipped, careful=True)

    def _batch(
        self, found: dict[str, Any], content: bytes, places: dict[str, int], skipped: dict[int, str]
    ) -> RowBatch:
        bad = [BadRow(line, "", message_from(reason)) for line, reason in found["bad"]]
        bad += [BadRow(line, "", reason) for line, reason in skipped.items()]
        labels: list[int] = []
        kept: list[dict[str, Any]] = []
        good: list[int] = []
        for place, (line, name, *_) in enumerate(found["images"]):
            try:
                label = read_folder_label(name, places, self._layout.sets) if self._layout.label else 0
                owner = read_owner_cell(owner_name(name, self._layout)) or "" if self._layout.owner_id else ""
            except BadCell as error:
                bad.append(BadRow(line, "", str(error)))
                continue
            good.append(place)
            labels.append(label)
            kept.append(owners_columns({FILE_NAME: owner}, self._layout) if self._layout.owner_id else {})
        shape = self._layout.image_shape
        end = len(found["images"]) * prod(shape)
        pixels = np.frombuffer(content[:end], dtype=np.uint8).reshape(-1, *shape)
        pictures: list[KeptPicture | None] = []
        for _line, _name, width, height, size in found["images"]:
            pictures.append(KeptPicture(width, height, content[end : end + size]) if size else None)
            end += size
        return RowBatch(
            len(good),
            labels=labels if self._layout.label else None,
            pixels=pixels[good],
            pictures=[pictures[place] for place in good] if self._keeps else None,
            metadata=kept if self._layout.owner_id else None,
            bad=sorted(bad, key=lambda row: row.line),
        )


def read_images(
    file: BinaryIO,
    *,
    after: int,
    skipped: Sequence[int],
    careful: bool,
    height: int,
    width: int,
    colour: bool,
    keeps: bool,
    most: int,
    batch_bytes: int,
    maximum_bytes: int,
) -> Iterator[Answer]:
    """Yield batches of images, and often, or if `careful` always, the line of the next; a job of a limited process."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise InvalidUpload("file: the zip archive is damaged or cut off") from None
    entries = [entry for entry in archive.infolist() if is_image_entry(entry)]
    if not any(entry.filename.lower().endswith(ENDINGS) for entry in entries):
        raise InvalidUpload("file: the zip archive holds no PNG, JPEG or WebP images")
    if sum(entry.file_size for entry in entries) > maximum_bytes:
        raise InvalidUpload(as_message("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))
    images: list[tuple[int, str, int, int, int]] = []
    bad: list[tuple[int, dict[str, Any]]] = []
    pixels, pictures = bytearray(), bytearray()
    yield {"line": after}, b""
    told = process_time()
    for line, entry in enumerate(entries[after:], start=after + 1):
        if careful or process_time() - told > TELL_SECONDS:
            told = process_time()
            yield {"line": line}, b""
        if line in skipped:
            continue
        try:
            values, picture = read_image(
                _content(archive, entry), height=height, width=width, colour=colour, keep_picture=keeps
            )
        except BadCell as error:
            bad.append((line, message_of(str(error)).as_json()))
        else:
            pixels += values.tobytes()
            sizes = (picture.width, picture.height, len(picture.content)) if picture else (0, 0, 0)
            images.append((line, entry.filename, *sizes))
            pictures += picture.content if picture else b""
        if len(images) + len(bad) >= most or len(pixels) + len(pictures) >= batch_bytes:
            yield {"line": line, "images": images, "bad": bad}, bytes(pixels + pictures)
            images, bad = [], []
            pixels, pictures = bytearray(), bytearray()
    yield {"line": len(entries), "images": images, "bad": bad}, bytes(pixels + pictures)


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    name = PureWindowsPath(entry.filename)  # reads both kinds of slash
    if name.anchor or ".." in name.parts:
        raise BadCell(BAD_NAME)
    if entry.flag_bits & 1:
        raise BadCell(ENCRYPTED)
    try:
        with archive.open(entry) as stream:
            data = stream.read(MAXIMUM_IMAGE_BYTES + 1)  # the size in the directory may lie
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError):
        raise BadCell(NOT_AN_IMAGE) from None
    if len(data) > MAXIMUM_IMAGE_BYTES:
        raise BadCell(as_message("is larger than {most:,} bytes", most=MAXIMUM_IMAGE_BYTES))
    return data


def owner_name(name: str, layout: Layout) -> str:
    """Return what an image is called; without its folders where they name its class, which is not shown beside it."""
    return PureWindowsPath(name).name if layout.label else name


def is_image_entry(entry: zipfile.ZipInfo) -> bool:
    """Say whether an entry is meant to be an image: no folder, and nothing an operating system leaves behind."""
    name = PurePosixPath(entry.filename)
    return not entry.is_dir() and "__MACOSX" not in name.parts and name.name not in (".DS_Store", "Thumbs.db")


def read_folder_label(filename: str, places: dict[str, int], sets: LabelType | None = None) -> int:
    """Return the class whose name is the image's folder; of sets the names may stand beside one another."""
    try:
        return stored_label(PurePosixPath(filename).parent.name, places, sets)
    except BadCell:
        raise BadCell(NO_FOLDER) from None
