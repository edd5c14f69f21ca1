"""Readers of pictures: one file, or an archive of them."""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from math import prod
from pathlib import PurePosixPath, PureWindowsPath
from time import process_time
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from annotation.data.readers.checks import label_rule, owners_columns, read_owner_cell
from annotation.errors import InvalidUpload
from annotation.work.limits import LOOK, WHOLE, Answer, LimitReached, Rule, run
from dpal.reading.archives import is_litter
from dpal.reading.cells import BadCell
from dpal.reading.rows import BadRow, FirstRows, KeptPicture, Layout, RowBatch
from privacy.wording import as_message, message_from, message_of

FORMATS = ("PNG", "JPEG", "WEBP")
# One image in memory is 64 MiB then, and another quarter as grey values or three as colours.
MAXIMUM_PIXELS = 2**24
# The others hold more than eight bits and would be cut off, not scaled.
EIGHT_BIT_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")
GREY_MODES = ("1", "L")
# As sharp as the largest screens show it whole, and five times larger than a phone does.
PICTURE_SIDE = 2048
PICTURE_BYTES = 1024 * 1024
# Losses would show where each pixel is seen, and a picture this small needs none: 192 KiB at most.
LOSSLESS_PIXELS = 2**16
QUALITIES = (80, 60, 40)
# Three times as fast as the library's own choice, for a sixth more bytes.
EFFORT = 1
# Libraries write a progressive JPEG in 10, and one of four colours in 18.
MOST_SCANS = 32
# A marker is no escaped byte of a scan, none that restarts one, and no filling before a marker.
MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])", re.DOTALL)
START_OF_SCAN, END_OF_IMAGE = 0xDA, 0xD9
WITHOUT_LENGTH = (0x01, 0xD8)
NOT_AN_IMAGE = as_message("is not a readable PNG, JPEG or WebP image")
TOO_MANY_SCANS = as_message("is a JPEG of more than {most:,} scans", most=MOST_SCANS)
TOO_LARGE = as_message("has more than {most:,} pixels", most=MAXIMUM_PIXELS)
NOT_EIGHT_BIT = as_message("has more than eight bits a colour")


def read_image(
    data: bytes, *, height: int, width: int, colour: bool = False, keep_picture: bool = False
) -> tuple[NDArray[np.uint8], KeptPicture | None]:
    """Return the grey values of an image, shape (height, width), and a picture where one is kept.

    With `colour` the shape is (height, width, 3), transparency on white. Images are turned upright and averaged over
    equal areas; the first frame is read. The number of pixels is checked before unpacking.
    """
    with upright_image(data) as image:
        plain = on_white(image) if colour else image.convert("L")
        fitting = plain if plain.size == (width, height) else plain.resize((width, height), Image.Resampling.BOX)
        pixels: NDArray[np.uint8] = np.asarray(fitting, dtype=np.uint8)
        is_shown = (colour or image.mode in GREY_MODES) and image.size == (width, height)
        return pixels, picture_of(image) if keep_picture and not is_shown else None


@contextmanager
def upright_image(data: bytes) -> Iterator[Image.Image]:
    """Open an image as its camera was held, once its size is known to be bearable; what is wrong with it is named."""
    try:
        if webp_pixels(data) > MAXIMUM_PIXELS:
            raise BadCell(TOO_LARGE)
        if jpeg_scans(data) > MOST_SCANS:
            raise BadCell(TOO_MANY_SCANS)
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            if image.size[0] * image.size[1] > MAXIMUM_PIXELS:
                raise BadCell(TOO_LARGE)
            if image.mode not in EIGHT_BIT_MODES:
                raise BadCell(NOT_EIGHT_BIT)
            ImageOps.exif_transpose(image, in_place=True)
            yield image
    except BadCell:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BadCell(TOO_LARGE) from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, zlib.error):
        raise BadCell(NOT_AN_IMAGE) from None


def read_picture(file: BinaryIO) -> Iterator[Answer]:
    """Yield a picture to show of an encoded image; a job of a limited process."""
    try:
        with upright_image(file.read()) as image:
            made = picture_of(image)
    except BadCell as bad:
        raise InvalidUpload(as_message("file: {reason}", reason=bad.args[0])) from None
    yield {"width": made.width, "height": made.height}, made.content


def picture_of(image: Image.Image) -> KeptPicture:
    """Return a picture of an image that stands upright: made anew of its pixels alone, what is transparent on white."""
    plain = on_white(image)
    largest = max(plain.size)
    if largest > PICTURE_SIDE:
        width, height = (max(1, round(side * PICTURE_SIDE / largest)) for side in plain.size)
        plain = plain.resize((width, height), Image.Resampling.HAMMING)
    lossless = plain.width * plain.height <= LOSSLESS_PIXELS
    content = as_webp(plain, lossless=lossless)
    for quality in QUALITIES[1:]:
        if len(content) > PICTURE_BYTES:
            content = as_webp(plain, quality=quality)
    while len(content) > PICTURE_BYTES:
        plain = plain.reduce(2)
        content = as_webp(plain, quality=QUALITIES[-1])
    return KeptPicture(*plain.size, content)


def on_white(image: Image.Image) -> Image.Image:
    """Return the colours alone; nothing that was hidden under transparency comes along."""
    if not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    over = image.convert("RGBA")
    plain = Image.new("RGB", over.size, "white")
    plain.paste(over, mask=over.getchannel("A"))
    return plain


def as_webp(image: Image.Image, *, quality: int = QUALITIES[0], lossless: bool = False) -> bytes:
    """Return pixels as WebP; profiles, times, places and comments are left behind."""
    out = BytesIO()
    image.save(out, "WEBP", quality=quality, lossless=lossless, method=EFFORT, exif=b"", xmp=b"", icc_profile=b"")
    return out.getvalue()


def jpeg_scans(data: bytes) -> int:
    """Return in how many scans a JPEG draws its picture, since each costs all pixels; 0 for anything else."""
    scans, place = 0, 2
    while data[:2] == b"\xff\xd8" and (found := MARKER.search(data, place)):
        kind, place = found[1][0], found.end()
        if kind == END_OF_IMAGE:
            break
        scans += kind == START_OF_SCAN
        if kind not in WITHOUT_LENGTH:
            place += int.from_bytes(data[place : place + 2], "big")
    return scans


def webp_pixels(data: bytes) -> int:
    """Return how many pixels a WebP promises, since room is made for all of them; 0 for anything else."""
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return 0
    kind = data[12:16]
    if kind == b"VP8X":
        return (int.from_bytes(data[24:27], "little") + 1) * (int.from_bytes(data[27:30], "little") + 1)
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return ((bits & 0x3FFF) + 1) * ((bits >> 14 & 0x3FFF) + 1)
    sides = data[26:28], data[28:30]
    width, height = (int.from_bytes(side, "little") & 0x3FFF for side in sides)
    return width * height


BATCH_IMAGES = 512
# Images are handed on after so many bytes, however few they are.
BATCH_BYTES = 8 * 1024 * 1024
# Images of one archive that may reach a limit of their process.
MOST_REACHED = 10
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

    In a test set the folder is the label. An image whose reading reaches a limit is bad; another process goes on.
    """

    def __init__(self, file: BinaryIO, layout: Layout, *, maximum_bytes: int, look: FirstRows | None = None) -> None:
        self._file = file
        self._layout = layout
        self._keeps = layout.pictures and look is None
        self._limits = WHOLE if look is None else LOOK
        self._most_reached = MOST_REACHED if look is None else 1
        if layout.contributor:
            raise InvalidUpload("contributor: a zip of images names none; use a Parquet file")
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
        asked = {"after": after, "skipped": list(skipped), "careful": careful}
        return run(read_images, self._file, self._limits, **asked, **self._arguments)

    def batches(self) -> Iterator[RowBatch]:
        rule = label_rule(self._layout)
        skipped: dict[int, str] = {}
        whole = line = reached = 0
        careful = False
        while True:
            try:
                for found, content in self._answers:
                    line = found["line"]
                    if "images" in found:
                        yield self._batch(found, content, rule, skipped)
                        whole, skipped = line, {}
                return
            except LimitReached as limit:
                if limit.rule is Rule.TIME and self._limits is LOOK:
                    raise
                # Which image it was is known where each was named before it was read.
                if careful:
                    reached += 1
                    skipped[line] = limit.reason
                if reached > self._most_reached:
                    raise
                careful = True
                self._answers = self._begin(whole, skipped, careful=True)

    def _batch(
        self, found: dict[str, Any], content: bytes, rule: Callable[[str], int], skipped: dict[int, str]
    ) -> RowBatch:
        bad = [BadRow(line, "", message_from(reason)) for line, reason in found["bad"]]
        bad += [BadRow(line, "", reason) for line, reason in skipped.items()]
        labels: list[int] = []
        kept: list[dict[str, Any]] = []
        good: list[int] = []
        for place, (line, name, *_) in enumerate(found["images"]):
            try:
                label = read_folder_label(name, rule) if self._layout.label else 0
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
                image_content(archive, entry), height=height, width=width, colour=colour, keep_picture=keeps
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


def image_content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
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
    return bool(entry.filename) and not entry.is_dir() and not is_litter(entry.filename)


def read_folder_label(filename: str, rule: Callable[[str], int]) -> int:
    """Return the class whose name is the image's folder; of sets the names may stand beside one another."""
    try:
        return rule(PurePosixPath(filename).parent.name)
    except BadCell:
        raise BadCell(NO_FOLDER) from None
