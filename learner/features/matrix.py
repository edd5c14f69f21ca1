"""One float32 `.npy` file for the features of a data set, written in a stream and read as a memory map."""

import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from learner.errors import ArtifactCorrupt

HEADER_BYTES = 128
MAGIC = b"\x93NUMPY\x01\x00"


@dataclass(frozen=True, slots=True)
class MatrixFile:
    path: Path
    rows: int
    dimension: int
    sha256: str


class MatrixWriter:
    """Append batches of rows to a new `.npy` file that appears under its name only when complete.

    Memory stays at one batch. Used as a context manager; an error inside leaves no file behind.
    """

    def __init__(self, path: Path, *, dimension: int) -> None:
        if dimension < 1:
            raise ValueError(f"dimension must be >= 1, got {dimension}")
        self.path = path
        self.dimension = dimension
        self.rows = 0
        self.finished: MatrixFile | None = None
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")

    def __enter__(self) -> Self:
        self._file = self._partial.open("w+b")
        # Buffered: what it meets of a full disk shows when the file is closed.
        self._file.write(npy_header(0, self.dimension))
        return self

    def append(self, batch: NDArray[np.float32]) -> int:
        """Write rows, shape (n, dimension), and return the row number of the first."""
        if batch.dtype != np.float32 or batch.ndim != 2 or batch.shape[1] != self.dimension:
            raise ValueError(
                f"batch must be float32 of shape (n, {self.dimension}), got {batch.dtype} of shape {batch.shape}"
            )
        first = self.rows
        self._file.write(np.ascontiguousarray(batch, dtype="<f4").data)
        self.rows += len(batch)
        return first

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            # Closing writes what is still buffered, and fails as well where the disk is full.
            with self._file:
                if kind is None:
                    self._file.seek(0)
                    self._file.write(npy_header(self.rows, self.dimension))
                    self._file.flush()
                    os.fsync(self._file.fileno())
            if kind is None:
                digest = file_sha256(self._partial)
                self._partial.replace(self.path)
                self.finished = MatrixFile(path=self.path, rows=self.rows, dimension=self.dimension, sha256=digest)
        finally:
            self._partial.unlink(missing_ok=True)


def zeroed(batches: Iterable[NDArray[np.float32]], empty: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
    """Yield the batches with zeros in the rows of empty slots, whatever a featuriser makes of nothing."""
    first = 0
    for batch in batches:
        inside = empty[(empty >= first) & (empty < first + len(batch))] - first
        if inside.size:
            batch = np.array(batch)
            batch[inside] = 0
        first += len(batch)
        yield batch


def write_matrix(path: Path, batches: Iterable[NDArray[np.float32]], *, dimension: int) -> MatrixFile:
    """Stream batches, each of shape (n, dimension), into one file at constant memory."""
    writer = MatrixWriter(path, dimension=dimension)
    with writer:
        for batch in batches:
            writer.append(batch)
    if writer.finished is None:
        raise RuntimeError("the writer closed without finishing its file")
    return writer.finished


def open_matrix(path: Path, *, sha256: str | None = None) -> NDArray[np.float32]:
    """Map a feature file read-only, shape (rows, dimension); a digest is verified first, which reads it once.

    `ArtifactCorrupt` if the digest differs, or the file is no float32 matrix.
    """
    if sha256 is not None and file_sha256(path) != sha256:
        raise ArtifactCorrupt(f"{path.name} does not match its digest")
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
            start = file.tell()
        size = path.stat().st_size
    except ValueError as error:
        raise ArtifactCorrupt(f"{path.name} has no readable npy header") from error
    if dtype != np.dtype("<f4") or fortran_order or len(shape) != 2 or size != start + 4 * shape[0] * shape[1]:
        raise ArtifactCorrupt(f"{path.name} is not a complete float32 matrix in row order")
    if shape[0] == 0:
        return np.empty(shape, dtype=np.float32)
    return np.memmap(path, dtype="<f4", mode="r", offset=start, shape=shape)


@lru_cache(maxsize=64)
def open_verified(path: Path, sha256: str) -> NDArray[np.float32]:
    """Map a feature file as `open_matrix` does, verified once in the life of a process, since rounds reuse it."""
    return open_matrix(path, sha256=sha256)


def let_go(X: NDArray[np.float32]) -> None:
    """Give back the pages that were read of a mapped feature file; whoever reads them again finds them on the disk."""
    if isinstance(X, np.memmap) and isinstance(X.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        X.base.madvise(mmap.MADV_DONTNEED)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def npy_header(rows: int, dimension: int) -> bytes:
    """Return an npy version 1 header of fixed length, so that the row count can be filled in last."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dimension}), }}".encode()
    room = HEADER_BYTES - len(MAGIC) - 2
    return MAGIC + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"
