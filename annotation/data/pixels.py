"""Images as files of values."""

from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# Bytes of a file: from where, and how many.
PixelReader = Callable[[int, int], bytes]
# More than the header that `PixelFile` writes.
HEAD_BYTES = 512


def mapped_images(path: Path) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    return pixels


def png_of(read: PixelReader, row_number: int) -> bytes:
    """Return one row of a uint8 `.npy` of shape (rows, height, width[, 3]) as a PNG; only that row is read."""
    head = BytesIO(read(0, HEAD_BYTES))
    version = np.lib.format.read_magic(head)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(head)
    if version != (1, 0) or by_columns or dtype != np.uint8 or shape[3:] not in ((), (3,)) or len(shape) < 3:
        raise ValueError(f"pixels must be uint8 of shape (rows, height, width), got {dtype} of shape {shape}")
    rows, *sides = shape
    if not 0 <= row_number < rows:
        raise IndexError(f"row must be in [0, {rows}), got {row_number}")
    size = prod(sides)
    image = np.frombuffer(read(head.tell() + row_number * size, size), dtype=np.uint8).reshape(sides)
    out = BytesIO()
    Image.fromarray(image).save(out, format="PNG")
    return out.getvalue()


MAGIC = b"\x93NUMPY\x01\x00"
HEADER_BYTES = 128


class PixelFile:
    """Write uint8 images of one shape as `.npy` 1.0; `close` fills in the number of rows the header must name."""

    def __init__(self, file: BinaryIO, *, shape: tuple[int, ...]) -> None:
        self._file = file
        self._shape = shape
        self.rows = 0
        file.write(bytes(HEADER_BYTES))

    def append(self, images: NDArray[np.uint8]) -> None:
        self._file.write(np.ascontiguousarray(images, dtype=np.uint8).tobytes())
        self.rows += len(images)

    def close(self) -> None:
        described = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {(self.rows, *self._shape)}, }}"
        length = HEADER_BYTES - len(MAGIC) - 2
        header = described.encode().ljust(length - 1) + b"\n"
        self._file.seek(0)
        self._file.write(MAGIC + length.to_bytes(2, "little") + header)
        self._file.seek(0)
