"""The pixels of an image upload, block by block."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from django.core.files.storage import default_storage
from numpy.typing import NDArray

from annotation.models import Dataset

BATCH_IMAGES = 8192


def pixel_batches(dataset: Dataset) -> Iterator[NDArray[np.uint8]]:
    """Yield images in row order, shape (n, height, width), at constant memory."""
    pixels = np.load(Path(default_storage.path(dataset.pixels.name or "")), mmap_mode="r", allow_pickle=False)
    for start in range(0, len(pixels), BATCH_IMAGES):
        yield pixels[start : start + BATCH_IMAGES]
