"""The image of a record as people see it: the picture kept beside it, else the values that are learned from."""

from dataclasses import dataclass
from functools import partial

from django.db import connection

from annotation.models import Record
from annotation.pictures.images import png_of
from annotation.work.services import files

# Of a question that was asked alone, as the process of the label pages may read it.
PICTURE = "SELECT content FROM annotation_asked_picture(%s)"
SMALL_PICTURE = """
SELECT width, height, CASE WHEN octet_length(content) <= %s THEN content END FROM annotation_asked_picture(%s)
"""


@dataclass(frozen=True, slots=True)
class ShownImage:
    """An image as a browser shows it."""

    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class ImageAhead:
    """How large an image is, and the image itself where it is small enough to come with its page."""

    width: int
    height: int
    small: ShownImage | None


def shown_image(record: Record) -> ShownImage:
    """Return what is shown of a record somebody was asked about."""
    with connection.cursor() as cursor:
        cursor.execute(PICTURE, [record.pk])
        row = cursor.fetchone()
    return ShownImage(image_of(record), "image/png") if row is None else ShownImage(bytes(row[0]), "image/webp")


def image_ahead(record: Record, *, height: int, width: int, most_bytes: int) -> ImageAhead:
    """Return what a page needs to know of a record's image before it is there; those have the declared size."""
    with connection.cursor() as cursor:
        cursor.execute(SMALL_PICTURE, [most_bytes, record.pk])
        row = cursor.fetchone()
    if row is not None:
        return ImageAhead(row[0], row[1], row[2] and ShownImage(bytes(row[2]), "image/webp"))
    content = image_of(record) if height * width <= most_bytes else b""
    # Noise in colour takes three bytes a pixel.
    is_small = 0 < len(content) <= most_bytes
    return ImageAhead(width, height, ShownImage(content, "image/png") if is_small else None)


def image_of(record: Record) -> bytes:
    """Return what is learned from of a record as a PNG; of their file only that row is read."""
    dataset = record.dataset
    try:
        return png_of(partial(files.read_bytes, str(dataset.pixels.name)), record.row_number)
    except FileNotFoundError:
        # Rows were emptied between the two lines, and the file has another name now.
        dataset.refresh_from_db(fields=["pixels"])
        return png_of(partial(files.read_bytes, str(dataset.pixels.name)), record.row_number)
