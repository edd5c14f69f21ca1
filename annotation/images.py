"""One image of a dataset's pixel file, as a browser can show it."""

from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image


def png_of(pixels: Path, row_number: int) -> bytes:
    """Return one row of a uint8 `.npy` of shape (rows, height, width) as a grey PNG; only that row is read."""
    image = np.load(pixels, mmap_mode="r", allow_pickle=False)[row_number]
    out = BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(out, format="PNG")
    return out.getvalue()
