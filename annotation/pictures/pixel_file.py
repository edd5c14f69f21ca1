"""An .npy file of images, written batch by batch before anybody knows how many there will be."""

from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x93NUMPY\x01\x00"
HEADER_BYTES = 128


class PixelFile:
    """Write uint8 images of one shape; `close` fills in the number of rows the header must name.

    References
    ----------
    .. [1] numpy.lib.format, version 1.0 of the .npy format.
    """

    def __init__(self, file: BinaryIO, *, shape: tuple[int, ...]) -> None:
        self._file = file
        self._shape = shape
        self.rows = 0
        file.write(bytes(HEADER_BYTES))

    def append(self, images: NDArray[np.uint8]) -> None:
        """Add images, an array of shape (n, *shape)."""
        self._file.write(np.ascontiguousarray(images, dtype=np.uint8).tobytes())
        self.rows += len(images)

    def close(self) -> None:
        """Write the header; the file stays open."""
        described = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {(self.rows, *self._shape)}, }}"
        length = HEADER_BYTES - len(MAGIC) - 2
        header = described.encode().ljust(length - 1) + b"\n"
        self._file.seek(0)
        self._file.write(MAGIC + length.to_bytes(2, "little") + header)
        self._file.seek(0)
