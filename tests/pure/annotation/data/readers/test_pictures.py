"""Pictures to show: in colour, upright, nothing but pixels, bounded in sides and bytes."""

import io
import struct

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from annotation.data.readers import images
from annotation.data.readers.images import read_image
from dpal.reading.cells import BadCell

RED, BLUE = (230, 20, 20), (20, 20, 230)


def saved(image, kind, **options):
    sink = io.BytesIO()
    image.save(sink, kind, **options)
    return sink.getvalue()


def halves(width, height):
    """Return a picture whose left half is red and whose right half is blue."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (width // 2, 0, width, height))
    return image


def opened(picture):
    image = Image.open(io.BytesIO(picture.content))
    image.load()
    return image


def near(colour, wanted, most=12):
    return max(abs(a - b) for a, b in zip(colour[:3], wanted, strict=True)) <= most


@pytest.mark.parametrize(("kind", "options"), [("PNG", {}), ("JPEG", {"quality": 95}), ("WEBP", {"lossless": True})])
def test_a_picture_keeps_its_colours_whatever_wrote_it(kind, options):
    grey, picture = read_image(saved(halves(400, 300), kind, **options), height=2, width=4, keep_picture=True)
    shown = opened(picture)
    assert (shown.format, shown.size, (picture.width, picture.height)) == ("WEBP", (400, 300), (400, 300))
    assert near(shown.getpixel((100, 150)), RED)
    assert near(shown.getpixel((300, 150)), BLUE)
    assert grey.shape == (2, 4)
    assert np.abs(grey[:, 0].astype(int) - (230 * 299 + 20 * 587 + 20 * 114) // 1000).max() <= 2


def test_every_kind_of_image_has_colours():
    grey = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    hidden = Image.new("RGBA", (3, 2), (*RED, 0))
    for image in (grey, grey.convert("1"), grey.convert("LA"), grey.convert("P"), hidden):
        colours, _none = read_image(saved(image, "PNG"), height=2, width=3, colour=True)
        assert colours.shape == (2, 3, 3)
    # What is transparent is on white, as people see it.
    assert (colours == 255).all()
    printed, _none = read_image(saved(halves(8, 8).convert("CMYK"), "JPEG"), height=1, width=2, colour=True)
    assert (printed.argmax(axis=2) == [[0, 2]]).all()


def test_a_cameras_turn_is_undone_in_both():
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    data = saved(halves(80, 40), "JPEG", quality=95, exif=exif)
    grey, picture = read_image(data, height=4, width=2, keep_picture=True)
    shown = opened(picture)
    assert shown.size == (40, 80)
    assert near(shown.getpixel((20, 15)), RED)
    assert near(shown.getpixel((20, 65)), BLUE)
    assert grey[0, 0] > grey[3, 0]
    assert grey[0, 0] == pytest.approx(grey[0, 1], abs=2)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("side", [40, 600])
def test_nothing_but_pixels_comes_along(kind, side):
    exif = Image.Exif()
    exif[0x010F] = "SECRET-CAMERA"
    exif.get_ifd(0x8825)[2] = (48.0, 24.0, 0.0)
    options = {"exif": exif, "icc_profile": b"SECRET-PROFILE" + bytes(120)}
    if kind == "PNG":
        options["pnginfo"] = PngImagePlugin.PngInfo()
        options["pnginfo"].add_text("Comment", "SECRET-WORDS")
    elif kind == "JPEG":
        options["comment"] = b"SECRET-WORDS"
    if kind != "PNG":
        options["xmp"] = b"<x>SECRET-XMP</x>"
    data = saved(halves(side, side), kind, **options)
    assert b"SECRET" in data
    _grey, picture = read_image(data, height=2, width=2, keep_picture=True)
    assert b"SECRET" not in picture.content
    for chunk in (b"EXIF", b"XMP ", b"ICCP"):
        assert chunk not in picture.content
    assert dict(opened(picture).getexif()) == {}


def test_what_is_hidden_under_transparency_stays_hidden():
    image = halves(60, 40).convert("RGBA")
    image.putalpha(0)
    _grey, picture = read_image(saved(image, "PNG"), height=2, width=2, keep_picture=True)
    assert opened(picture).convert("RGB").getextrema() == ((255, 255),) * 3
    palette = Image.new("P", (60, 40), 1)
    palette.putpalette([0, 0, 0, *RED])
    _grey, picture = read_image(saved(palette, "PNG", transparency=1), height=2, width=2, keep_picture=True)
    assert opened(picture).convert("RGB").getextrema() == ((255, 255),) * 3


@pytest.mark.parametrize("kind", [b"VP8X", b"VP8L", b"VP8 "])
def test_a_webp_that_promises_too_many_pixels_is_not_even_opened(kind, monkeypatch):
    def opens(*args, **options):
        raise AssertionError("opened")

    monkeypatch.setattr(images.Image, "open", opens)
    sides = 16_383
    heads = {
        b"VP8X": bytes(4) + (sides - 1).to_bytes(3, "little") * 2,
        b"VP8L": b"\x2f" + ((sides - 1) | (sides - 1) << 14).to_bytes(4, "little") + bytes(5),
        b"VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", sides, sides),
    }
    data = b"RIFF" + struct.pack("<I", 100) + b"WEBP" + kind + struct.pack("<I", 10) + heads[kind] + bytes(100)
    with pytest.raises(BadCell, match="has more than 16,777,216 pixels"):
        read_image(data, height=2, width=2)
