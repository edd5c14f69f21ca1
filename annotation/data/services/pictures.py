"""Pictures of records, copied at upload and shown to those who may see them."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from django.db import connection

from annotation.data.pixels import png_of
from annotation.data.readers.rows import KeptPicture
from annotation.models import Dataset, Record
from annotation.work.services import attempts, files

PICTURE_COPY = "COPY annotation_picture (record_id, width, height, content) FROM STDIN (FORMAT BINARY)"
PICTURE_TYPES = ("int8", "int2", "int2", "bytea")


class PictureSpool:
    """Pictures in the order of the upload's rows, some of which have none; only one of them is in memory at a time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        # Of each row: width, height and length of its picture, zeros where it has none.
        self._sizes = array("l")

    def append(self, pictures: Sequence[KeptPicture | None]) -> None:
        """Keep the pictures of a batch of rows."""
        for picture in pictures:
            if picture is None:
                self._sizes.extend((0, 0, 0))
            else:
                self._sizes.extend((picture.width, picture.height, len(picture.content)))
                self._file.write(picture.content)

    def copy_beside(self, dataset: Dataset, lease: attempts.Lease) -> None:
        """Store them beside the upload's records, in the caller's transaction, which has stored those."""
        if not any(self._sizes):
            return
        rows = Record.objects.filter(dataset=dataset).order_by("row_number")
        ids = array("q", rows.values_list("pk", flat=True).iterator())
        with connection.cursor() as cursor, cursor.copy(PICTURE_COPY) as copy:
            copy.set_types(PICTURE_TYPES)
            for record_id, picture in zip(ids, self._kept(), strict=True):
                lease.check()
                if picture:
                    copy.write_row((record_id, picture.width, picture.height, picture.content))

    def _kept(self) -> Iterator[KeptPicture | None]:
        self._file.seek(0)
        sizes = iter(self._sizes)
        for width, height, length in zip(sizes, sizes, sizes, strict=True):
            yield KeptPicture(width, height, self._file.read(length)) if length else None


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
