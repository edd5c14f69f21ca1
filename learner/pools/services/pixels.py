"""The pixels of an image upload, block by block."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annotation.data.services import files
from annotation.models import Dataset

BATCH_IMAGES = 8192


def pixel_batches(dataset: Dataset) -> Iterator[NDArray[np.uint8]]:
    """Yield images in row order, shape (n, height, width), at constant memory."""
    pixels = files.open_stored(str(dataset.pixels.name), dataset.pixels_sha256, _mapped)
    for start in range(0, len(pixels), BATCH_IMAGES):
        yield pixels[start : start + BATCH_IMAGES]


def _mapped(path: Path) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    return pixels
