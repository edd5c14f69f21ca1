"""Pictures of records, copied at upload and shown to those who may see them."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from annotation import selectors
from annotation.data.pixels import png_of
from annotation.models import Dataset, Record
from annotation.models.database import copied_into
from annotation.work.services import attempts, files
from dpal.reading.rows import KeptPicture

PICTURE_COLUMNS = ("record_id", "width", "height", "content")
PICTURE_TYPES = ("int8", "int2", "int2", "bytea")


class PictureSpool:
    """Pictures in the order of the upload's rows, some of which have none; one at a time is in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        # Of each row: width, height and length of its picture, zeros where it has none.
        self._sizes = array("l")

    def append(self, pictures: Sequence[KeptPicture | None]) -> None:
        for picture in pictures:
            if picture is None:
                self._sizes.extend((0, 0, 0))
            else:
                self._sizes.extend((picture.width, picture.height, len(picture.content)))
                self._file.write(picture.content)

    def copy_beside(self, dataset: Dataset, lease: attempts.Lease) -> None:
        if not any(self._sizes):
            return
        rows = Record.objects.filter(dataset=dataset).order_by("row_number")
        ids = array("q", rows.values_list("pk", flat=True).iterator())
        with copied_into("annotation_picture", PICTURE_COLUMNS, PICTURE_TYPES) as copy:
            for record_id, picture in zip(ids, self._kept(), strict=True):
                lease.check()
                if picture:
                    copy.write_row((record_id, picture.width, picture.height, picture.content))

    def _kept(self) -> Iterator[KeptPicture | None]:
        self._file.seek(0)
        sizes = iter(self._sizes)
        for width, height, length in zip(sizes, sizes, sizes, strict=True):
            yield KeptPicture(width, height, self._file.read(length)) if length else None


@dataclass(frozen=True, slots=True)
class ShownImage:
    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class ImageAhead:
    width: int
    height: int
    small: ShownImage | None


def shown_image(record: Record) -> ShownImage:
    picture = selectors.asked_picture(record)
    return ShownImage(image_of(record), "image/png") if picture is None else ShownImage(picture.content, "image/webp")


def image_ahead(record: Record, *, height: int, width: int, most_bytes: int) -> ImageAhead:
    picture = selectors.asked_picture(record, most_bytes=most_bytes)
    if picture is not None:
        small = ShownImage(picture.content, "image/webp") if picture.content else None
        return ImageAhead(picture.width, picture.height, small)
    content = image_of(record) if height * width <= most_bytes else b""
    # Noise in colour takes three bytes a pixel.
    is_small = 0 < len(content) <= most_bytes
    return ImageAhead(width, height, ShownImage(content, "image/png") if is_small else None)


def image_of(record: Record) -> bytes:
    dataset = record.dataset
    try:
        return png_of(partial(files.read_bytes, str(dataset.pixels.name)), record.row_number)
    except FileNotFoundError:
        # Rows were emptied between the two lines, and the file has another name now.
        dataset.refresh_from_db(fields=["pixels"])
        return png_of(partial(files.read_bytes, str(dataset.pixels.name)), record.row_number)
