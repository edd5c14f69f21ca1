"""Pools with known labels: MNIST and KDD from a folder, scikit-learn's digits without one."""

import csv
import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpal.features.clipping import clip_rows

POOL_ROWS = 20_000
KDD_LOGARITHMIC = (0, 4, 5, 9, 12, 15)
KDD_WORDS = {1: ("tcp", "udp", "icmp"), 3: ("SF", "S0", "REJ", "RSTR", "RSTO", "SH", "S1", "S2", "S3", "OTH", "RSTOS0")}
KDD_SERVICE_SLOTS = 24


@dataclass(frozen=True)
class Task:
    """A pool with known labels and a test set that no recipe sees."""

    name: str
    X: np.ndarray
    y: np.ndarray
    test_rows: np.ndarray
    test_labels: np.ndarray


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Scale every row to norm one by itself, rounding outward."""
    return clip_rows(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), norm_bound=1.0)


def kdd_task(folder: Path) -> Task:
    """Tell attacks from normal connections by declared bounds, on every 12th row."""
    rows, labels = [], []
    with gzip.open(folder / "kddcup.data_10_percent.gz", "rt") as lines:
        for number, fields in enumerate(csv.reader(lines)):
            if number % 12 == 0:
                rows.append(kdd_row(fields))
                labels.append(int(fields[41] != "normal."))
    X, y = unit_rows(np.array(rows)), np.array(labels)
    order = np.random.default_rng(0).permutation(len(X))
    pool, test = order[:POOL_ROWS], order[POOL_ROWS:]
    return Task("KDD", X[pool], y[pool], X[test], y[test])


def kdd_row(fields: list[str]) -> list[float]:
    """Encode one connection: sizes by their logarithm, counts by bounds of 512, words by slots of their own."""
    row = []
    for place, field in enumerate(fields[:41]):
        if place == 2:
            slot = zlib.crc32(field.encode()) % KDD_SERVICE_SLOTS
            row += [float(slot == k) for k in range(KDD_SERVICE_SLOTS)]
        elif place in KDD_WORDS:
            row += [float(field == word) for word in KDD_WORDS[place]]
        elif place in KDD_LOGARITHMIC:
            row.append(min(1.0, math.log1p(float(field)) / 21))
        else:
            value = float(field)
            row.append(value if value <= 1 else min(1.0, value / 512))
    return row
