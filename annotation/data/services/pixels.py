"""The image of a record, and the pixel files they lie in."""

from functools import partial

from annotation.data.images import png_of
from annotation.data.services import files
from annotation.models import Record


def image_of(record: Record) -> bytes:
    """Return a record's image as a PNG; of its file only that row is read."""
    dataset = record.dataset
    try:
        return png_of(partial(files.read_bytes, str(dataset.pixels.name)), record.row_number)
    except FileNotFoundError:
        # Rows were emptied between the two lines, and the file has another name now.
        dataset.refresh_from_db(fields=["pixels"])
        return png_of(partial(files.read_bytes, str(dataset.pixels.name)), record.row_number)
