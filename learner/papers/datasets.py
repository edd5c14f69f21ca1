"""The real and the generated data sets of the papers as rows in the unit ball and labels -1 or +1."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from dpal.features.clipping import clip_rows

Rows32 = NDArray[np.float32]
KDD_FILE, MNIST_FILE = "kddcup.data_10_percent.gz", "mnist_0_9.npz"
# Columns from 0. Left out as the paper says: num_outbound_cmds and is_host_login, which never vary.
KDD_LEFT_OUT = (19, 20)
KDD_CATEGORIES = (1, 2, 3, 6, 11, 13, 21)
KDD_SHARES = (*range(24, 31), *range(33, 41))
# Public bounds of the counting columns; logarithms bring them to [0, 1].
KDD_BOUNDS = {0: 86_400.0, 4: 2.0**31, 5: 2.0**31, 22: 511.0, 23: 511.0, 31: 255.0, 32: 255.0}
KDD_OTHER_BOUND = 1_000.0
# A seeded draw of the file is enough for streams of some thousand records.
KDD_ROWS, KDD_TEST_ROWS = 50_000, 5_000
PROJECTED = 50
GENERATED_ROWS = 22_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of norm at most 1, shape (n, d), float32, and their labels -1 or +1, split once and for all."""

    X: Rows32
    signs: NDArray[np.float32]
    test_rows: Rows32
    test_signs: NDArray[np.float32]


def load_sample(name: str, folder: Path | None) -> Sample:
    """Return `kdd`, `mnist_pca` or, without a folder, `generated`."""
    if name == "generated":
        return _generated()
    if folder is None:
        raise FileNotFoundError(f"{name} needs a data folder")
    return _kdd(folder / KDD_FILE) if name == "kdd" else _mnist(folder / MNIST_FILE)


@functools.cache
def _generated() -> Sample:
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(GENERATED_ROWS) < 0.5, 1.0, -1.0)
    rows = rng.standard_normal((GENERATED_ROWS, 10))
    rows[:, 0] += 2 * signs
    return _split(rows / np.linalg.norm(rows, axis=1, keepdims=True), signs, test_rows=2_000)


@functools.cache
def _kdd(path: Path) -> Sample:
    """Attacks are +1; 32 numbers and 88 indicators."""
    table = pa.csv.read_csv(path, read_options=pa.csv.ReadOptions(autogenerate_column_names=True))
    chosen = np.random.default_rng(0).choice(table.num_rows, size=KDD_ROWS, replace=False)
    parts = []
    for place in range(41):
        if place in KDD_LEFT_OUT:
            continue
        column = table.column(place)
        values = column.take(chosen).to_numpy()
        if place in KDD_CATEGORIES:
            names = np.sort(column.unique().to_numpy(zero_copy_only=False))
            parts.append((values[:, None] == names).astype(np.float64))
        elif place in KDD_SHARES:
            parts.append(values[:, None])
        else:
            parts.append((np.log1p(values) / np.log1p(KDD_BOUNDS.get(place, KDD_OTHER_BOUND)))[:, None])
    attacks = table.column(41).take(chosen).to_numpy() != "normal."
    return _split(np.hstack(parts), np.where(attacks, 1.0, -1.0), test_rows=KDD_TEST_ROWS)


@functools.cache
def _mnist(path: Path) -> Sample:
    """Zeros are +1, nines -1; 50 columns by PCA of the pool."""
    with np.load(path, allow_pickle=False) as arrays:
        X, test_X = (arrays[key].reshape(len(arrays[key]), -1) / 255.0 for key in ("X_train", "X_test"))
        signs, test_signs = (np.where(arrays[key] == 0, 1.0, -1.0) for key in ("y_train", "y_test"))
    X, test_X = X - X.mean(axis=0), test_X - X.mean(axis=0)
    _, vectors = np.linalg.eigh(X.T @ X)
    projection = vectors[:, -PROJECTED:]
    order = np.random.default_rng(0).permutation(len(X))
    train, test = (clip_rows(part @ projection, norm_bound=1.0) for part in (X[order], test_X))
    return Sample(train, signs[order].astype(np.float32), test, test_signs.astype(np.float32))


def _split(rows: NDArray[np.float64], signs: NDArray[np.float64], *, test_rows: int) -> Sample:
    X, y = clip_rows(rows, norm_bound=1.0), signs.astype(np.float32)
    return Sample(X[test_rows:], y[test_rows:], X[:test_rows], y[:test_rows])
