"""Images to rows: averages over equal areas and edges, or a public projection."""

import hashlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpal.errors import NotFitting
from dpal.features.base import Featurizer, Rows, scaled_to

EVEN = 1e-12
# Brightness, and the two differences that make a hue.
OPPONENT = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[3.0], [2.0], [6.0]])
BLOCK_NUMBERS = 2**20
# Edges are counted by their four directions: across, down and both diagonals.
EDGES = np.array([[1.0, 0.0], [0.0, 1.0], [0.5**0.5, 0.5**0.5], [0.5**0.5, -(0.5**0.5)]])
# Length of the counts beside that of the averages: found on ten digits.
EDGES_LENGTH = 0.7


class Images(Featurizer):
    records = "images"

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.height, self.width = int(parameters["height"]), int(parameters["width"])
        self.norm_bound = float(parameters["norm_bound"])
        self._is_unit = parameters["row_scaling"] == "unit"
        self._centered = bool(parameters["centered"])
        self._pooling: tuple[Rows, Rows] | None = None
        cells = self.height, self.width
        if parameters["pooled"] is not None:
            cells = int(parameters["pooled"][0]), int(parameters["pooled"][1])
            self._pooling = pooling_weights(self.height, cells[0]), pooling_weights(self.width, cells[1])
        self._cells = values = cells[0] * cells[1]
        self._hues: tuple[Rows, Rows] | None = None
        if parameters.get("hues") is not None:
            hues = int(parameters["hues"][0]), int(parameters["hues"][1])
            self._hues = pooling_weights(self.height, hues[0]), pooling_weights(self.width, hues[1])
            values += 2 * hues[0] * hues[1]
        self._edges: tuple[Rows, Rows] | None = None
        if parameters.get("edges") is not None:
            down, across = parameters["edges"]
            self._edges = pooling_weights(self.height, int(down)), pooling_weights(self.width, int(across))
        self._signs: Rows | None = None
        if parameters["projection"] is not None:
            columns, seed = parameters["projection"]
            self._signs = sign_matrix(values, int(columns), seed=int(seed))

    @classmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "Images":
        return cls(parameters)

    def raw_rows(self, records: ArrayLike) -> Iterator[Rows]:
        images = self.checked(records)
        step = max(1, BLOCK_NUMBERS // (self.height * self.width))
        for start in range(0, len(images), step):
            yield self.rows(images[start : start + step])

    def checked(self, records: ArrayLike) -> NDArray[np.uint8]:
        """Return images as an array; `NotFitting` where they are of another size or no uint8."""
        images = np.asarray(records)
        shape = (self.height, self.width) if self._hues is None else (self.height, self.width, 3)
        if images.dtype != np.uint8 or images.shape[1:] != shape:
            raise NotFitting(
                f"This model reads images as uint8 of shape (n, {', '.join(map(str, shape))}), "
                f"got {images.dtype} of shape {images.shape}."
            )
        return images

    def rows(self, images: NDArray[np.uint8]) -> Rows:
        values: Rows = images.astype(np.float64) / 255.0
        planes = [values] if self._hues is None else list(np.moveaxis(values @ OPPONENT.T, 3, 0))
        edges = None if self._edges is None else edge_counts(planes[0], *self._edges)
        if self._pooling is not None:
            planes[0] = self._pooling[0] @ planes[0] @ self._pooling[1].T
        rows = planes[0].reshape(len(images), self._cells)
        if self._centered:
            rows = rows - rows.mean(axis=1, keepdims=True)
        if self._hues is not None:
            down, across = self._hues
            weight = math.sqrt(self._cells / (len(down) * len(across)))
            differences = [
                (down @ plane @ across.T).reshape(len(images), len(down) * len(across)) * weight for plane in planes[1:]
            ]
            rows = np.hstack([rows, *differences])
        if self._centered:
            # What rounding leaves of an even surface must not be stretched to full length.
            rows[np.abs(rows) < EVEN] = 0.0
        if edges is not None:
            rows = np.hstack([scaled_to(rows, 1.0), scaled_to(edges, EDGES_LENGTH)])
        if self._signs is not None:
            rows = rows @ self._signs / math.sqrt(self._signs.shape[1])
        return (
            scaled_to(rows, self.norm_bound)
            if self._is_unit
            else rows * (self.norm_bound / math.sqrt(self._cells * (1 if self._hues is None else 3)))
        )


def edge_counts(planes: Rows, down: Rows, across: Rows) -> Rows:
    """Return how strong the edges of each direction are in each cell, about their mean, shape (n, 4 * cells).

    Gradients are differences of both neighbours; one counts for a direction by the fourth power of its cosine.

    References
    ----------
    .. [1] Dalal, Triggs, "Histograms of oriented gradients for human detection", CVPR 2005.
    """
    slopes = np.zeros((2, *planes.shape))
    slopes[0, :, :, 1:-1] = planes[:, :, 2:] - planes[:, :, :-2]
    slopes[1, :, 1:-1] = planes[:, 2:] - planes[:, :-2]
    strength = np.sqrt(slopes[0] ** 2 + slopes[1] ** 2)
    slopes /= np.where(strength > 0, strength, 1.0)
    counts = np.stack([down @ ((x * slopes[0] + y * slopes[1]) ** 4 * strength) @ across.T for x, y in EDGES], axis=1)
    rows = counts.reshape(len(planes), -1)
    rows -= rows.mean(axis=1, keepdims=True)
    rows[np.abs(rows) < EVEN] = 0.0
    return rows


def pooling_weights(size: int, pooled: int) -> Rows:
    """Return the matrix, shape (pooled, size), that averages `size` pixels over `pooled` equal lengths."""
    edges = np.arange(pooled + 1) * (size / pooled)
    pixels = np.arange(size)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    weights: Rows = np.maximum(overlap, 0.0) * (pooled / size)
    return weights


def sign_matrix(rows: int, columns: int, *, seed: int) -> Rows:
    """Return a matrix of +1 and -1 from a public seed, by SHAKE-256."""
    header = b"dpal sign matrix v1" + seed.to_bytes(8, "big") + rows.to_bytes(8, "big") + columns.to_bytes(8, "big")
    digest = hashlib.shake_256(header).digest((rows * columns + 7) // 8)
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8), count=rows * columns)
    signs: Rows = np.where(bits, 1.0, -1.0).reshape(rows, columns)
    return signs
