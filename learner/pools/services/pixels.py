"""The pixels of an image upload, block by block."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from annotation.files import services as files
from annotation.models import Dataset
from annotation.pictures.images import mapped_images

BATCH_IMAGES = 8192


def pixel_batches(dataset: Dataset) -> Iterator[NDArray[np.uint8]]:
    """Yield images in row order, shape (n, height, width), at constant memory."""
    pixels = files.open_stored(str(dataset.pixels.name), dataset.pixels_sha256, mapped_images)
    for start in range(0, len(pixels), BATCH_IMAGES):
        yield pixels[start : start + BATCH_IMAGES]
