"""Pictures of an upload's images: kept in a file of their own while it is read, then copied in beside their records."""

from array import array
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from django.db import connection

from annotation.models import Dataset, Record
from annotation.parsers.rows import KeptPicture
from annotation.work.services import attempts

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
