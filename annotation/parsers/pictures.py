"""One encoded image: the values that are learned from, grey or in colour, and a picture for people to look at."""

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from annotation.errors import InvalidUpload
from annotation.parsers.rows import KeptPicture
from annotation.tables.cells import BadCell
from annotation.work.limits import Answer
from privacy.wording import as_message

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
    """Return the grey values, shape (height, width), of an image of any size, and a picture where one is kept.

    Colours give their brightness, or with `colour` red, green and blue, shape (height, width, 3), what is transparent
    on white as in the picture. Another size is averaged over equal areas, whatever its proportions, after a
    camera's turn is undone. How many pixels there are is checked before one is unpacked. Of several frames the first
    is read. No picture is made of an image that these values show as it is.
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
    """Return in how many scans a JPEG file draws its picture; 0 for anything else.

    The library goes over all pixels for each of them, however few bytes it takes.
    """
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
    """Return how many pixels the header of a WebP file promises; 0 for anything else.

    The library makes room for all of them as soon as it opens the file.
    """
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
