"""Keyed digests of rows: equal for rows that say the same, whatever their label, contributor or spelling."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy.gate.hashing import hash_texts
from privacy.gate.normalizers import fold_texts

Digests = NDArray[np.uint64]
# Of a row that says nothing; it is equal to no other.
BLANK = np.uint64(0)
CELL_END = "\x1f"


def text_digests(texts: Sequence[str | None], *, key: bytes) -> Digests:
    return _hashed(fold_texts(pa.array(texts, pa.large_string())), key=key)


def payload_digests(payloads: Sequence[Mapping[str, Any] | None], *, names: Sequence[str], key: bytes) -> Digests:
    """Return the digest of each row of a table with these columns, `BLANK` for one that is empty."""
    cells = [[_cell((payload or {}).get(name)) for payload in payloads] for name in sorted(names)]
    columns = [pa.array(column, pa.large_string()) for column in cells]
    digests = _hashed(pc.binary_join_element_wise(*columns, pa.scalar(CELL_END, pa.large_string())), key=key)
    digests[np.array([not payload for payload in payloads], dtype=np.bool_)] = BLANK
    return digests


def image_digests(pixels: NDArray[np.uint8], *, key: bytes) -> Digests:
    """Return the digest of each image, shape (n, height, width), `BLANK` for one that is black all over."""
    flat = np.ascontiguousarray(pixels).reshape(len(pixels), -1)
    offsets = np.arange(len(flat) + 1, dtype=np.int64) * flat.shape[1]
    rows = pa.Array.from_buffers(pa.large_binary(), len(flat), [None, pa.py_buffer(offsets), pa.py_buffer(flat)])
    digests = hash_texts(rows, key=key)
    digests[~flat.any(axis=1)] = BLANK
    return digests


def known_digests(parts: Sequence[Digests]) -> Digests:
    distinct: Digests = np.unique(np.concatenate([np.empty(0, dtype=np.uint64), *parts]))
    said: Digests = distinct[distinct != BLANK]
    return said


def rows_among(digests: Digests, known: Digests) -> NDArray[np.int64]:
    if not len(known):
        return np.empty(0, dtype=np.int64)
    places = np.minimum(np.searchsorted(known, digests), len(known) - 1)
    return np.flatnonzero(known[places] == digests)


def _hashed(texts: pa.Array, *, key: bytes) -> Digests:
    texts = pc.fill_null(texts, "")
    digests = hash_texts(texts, key=key)
    digests[np.asarray(pc.equal(texts, ""))] = BLANK
    return digests


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return " ".join(value.casefold().split())
    return f"{float(value) + 0.0:.9g}"
