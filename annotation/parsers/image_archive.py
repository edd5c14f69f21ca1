"""PNG, JPEG and WebP images in a zip archive; nothing is ever unpacked to disk."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from annotation.choices.label_types.base import LabelType
from annotation.errors import InvalidUpload
from annotation.parsers.checks import owners_columns, read_owner_cell, stored_label
from annotation.parsers.pictures import NOT_AN_IMAGE, read_image
from annotation.parsers.rows import BadRow, FirstRows, KeptPicture, Layout, RowBatch
from annotation.tables.cells import BadCell
from privacy.wording import as_message

BATCH_IMAGES = 512
# Pictures to show are handed on after so many bytes, however few they are.
BATCH_PICTURE_BYTES = 8 * 1024 * 1024
# Half a million entries or so. All of them are read into memory before the first image is.
MAXIMUM_DIRECTORY_BYTES = 32 * 1024 * 1024
END_OF_DIRECTORY, END_OF_WIDE_DIRECTORY = b"PK\5\6", b"PK\6\6"
# The record at the end, the longest comment after it, and the two records of a large archive before it.
LAST_BYTES = 22 + 65_535 + 20 + 56
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
    """

    def __init__(self, file: BinaryIO, layout: Layout, *, maximum_bytes: int, look: FirstRows | None = None) -> None:
        self._layout = layout
        self._most = BATCH_IMAGES if look is None else min(look.rows, BATCH_IMAGES)
        self._keeps = layout.pictures and look is None
        if layout.contributor:
            raise InvalidUpload("contributor: a zip of images names no contributors; use a Parquet file")
        if layout.owner_id not in (None, FILE_NAME) or layout.metadata:
            raise InvalidUpload(
                as_message("id: a zip of images has no columns but {name}, the name of each", name=FILE_NAME)
            )
        if directory_bytes(file) > MAXIMUM_DIRECTORY_BYTES:
            raise InvalidUpload("file: the zip archive has too many entries; split it into several uploads")
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise InvalidUpload("file: the zip archive is damaged or cut off") from None
        self._entries = [entry for entry in self._archive.infolist() if is_image_entry(entry)]
        if not any(entry.filename.lower().endswith(ENDINGS) for entry in self._entries):
            raise InvalidUpload("file: the zip archive holds no PNG, JPEG or WebP images")
        if sum(entry.file_size for entry in self._entries) > maximum_bytes:
            raise InvalidUpload(as_message("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))

    def batches(self) -> Iterator[RowBatch]:
        """Yield the images, already checked."""
        places = {name: place for place, name in enumerate(self._layout.classes)}
        images: list[NDArray[np.uint8]] = []
        pictures: list[KeptPicture | None] = []
        bytes_held = 0
        labels: list[int] = []
        names: list[str] = []
        bad: list[BadRow] = []
        for line, entry in enumerate(self._entries, start=1):
            try:
                image, picture = self._read_image(entry)
                if self._layout.label:
                    labels.append(read_folder_label(entry.filename, places, self._layout.sets))
                if self._layout.owner_id:
                    names.append(read_owner_cell(owner_name(entry.filename, self._layout)) or "")
                images.append(image)
                pictures.append(picture)
                bytes_held += len(picture.content) if picture else 0
            except BadCell as error:
                bad.append(BadRow(line, "", str(error)))
            if len(images) + len(bad) >= self._most or bytes_held >= BATCH_PICTURE_BYTES:
                yield self._batch(images, pictures, labels, names, bad)
                images, pictures, labels, names, bad = [], [], [], [], []
                bytes_held = 0
        yield self._batch(images, pictures, labels, names, bad)

    def _batch(
        self,
        images: list[NDArray[np.uint8]],
        pictures: list[KeptPicture | None],
        labels: list[int],
        names: list[str],
        bad: list[BadRow],
    ) -> RowBatch:
        pixels = np.stack(images) if images else np.zeros((0, *self._layout.image_shape), dtype=np.uint8)
        kept = [owners_columns({FILE_NAME: name}, self._layout) for name in names] if self._layout.owner_id else None
        known = labels if self._layout.label else None
        shown = pictures if self._keeps else None
        return RowBatch(len(images), labels=known, pixels=pixels, pictures=shown, metadata=kept, bad=bad)

    def _read_image(self, entry: zipfile.ZipInfo) -> tuple[NDArray[np.uint8], KeptPicture | None]:
        name = PureWindowsPath(entry.filename)  # reads both kinds of slash
        if name.anchor or ".." in name.parts:
            raise BadCell(BAD_NAME)
        if entry.flag_bits & 1:
            raise BadCell(ENCRYPTED)
        try:
            with self._archive.open(entry) as stream:
                data = stream.read(MAXIMUM_IMAGE_BYTES + 1)  # the size in the directory may lie
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError):
            raise BadCell(NOT_AN_IMAGE) from None
        if len(data) > MAXIMUM_IMAGE_BYTES:
            raise BadCell(as_message("is larger than {most:,} bytes", most=MAXIMUM_IMAGE_BYTES))
        size = {"height": self._layout.height, "width": self._layout.width}
        return read_image(data, **size, colour=self._layout.colour, keep_picture=self._keeps)


def owner_name(name: str, layout: Layout) -> str:
    """Return what an image is called; without its folders where they name its class, which is not shown beside it."""
    return PureWindowsPath(name).name if layout.label else name


def directory_bytes(file: BinaryIO) -> int:
    """Return how long the archive says its list of entries is; 0 where it says nothing that can be read."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LAST_BYTES))
    last = file.read()
    file.seek(0)
    place = last.rfind(END_OF_DIRECTORY)
    if place < 0 or len(last) < place + 16:
        return 0
    (length,) = struct.unpack("<L", last[place + 12 : place + 16])
    if length < 0xFFFFFFFF:
        return int(length)
    wide = last.rfind(END_OF_WIDE_DIRECTORY)
    if wide < 0 or len(last) < wide + 48:
        return 0
    return int(struct.unpack("<Q", last[wide + 40 : wide + 48])[0])


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
