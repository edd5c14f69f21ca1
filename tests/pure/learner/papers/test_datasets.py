import gzip
from pathlib import Path

import numpy as np
import pytest

from learner.papers import datasets
from learner.papers.datasets import KDD_FILE, MNIST_FILE, load_sample


def test_a_connection_log_loses_two_columns_and_spreads_its_categories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "KDD_ROWS", 40)
    monkeypatch.setattr(datasets, "KDD_TEST_ROWS", 10)
    rng = np.random.default_rng(1)
    rows = []
    for number in range(40):
        fields = [str(int(value)) for value in rng.integers(0, 2, size=41)]
        fields[1], fields[2], fields[3] = ("tcp", "udp")[number % 2], ("http", "smtp", "ftp")[number % 3], "SF"
        fields[19] = fields[20] = "0"
        rows.append(",".join([*fields, "normal." if number % 4 else "smurf."]))
    (tmp_path / KDD_FILE).write_bytes(gzip.compress(("\n".join(rows) + "\n").encode()))
    sample = load_sample("kdd", tmp_path)
    # 32 numbers, and 2 + 3 + 1 + 4 times 2 indicators.
    assert sample.X.shape == (30, 32 + 14)
    assert sample.test_rows.shape == (10, 46)
    assert np.linalg.norm(sample.X.astype(np.float64), axis=1).max() <= 1
    assert sorted(np.concatenate([sample.signs, sample.test_signs]).tolist()) == [-1.0] * 30 + [1.0] * 10


def test_digits_are_projected_to_fifty_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, size=(80, 28, 28), dtype=np.uint8)
    labels = np.where(np.arange(80) % 2, 9, 0).astype(np.uint8)
    np.savez(tmp_path / MNIST_FILE, X_train=images[:60], y_train=labels[:60], X_test=images[60:], y_test=labels[60:])
    sample = load_sample("mnist_pca", tmp_path)
    assert sample.X.shape == (60, 50)
    assert np.linalg.norm(sample.X.astype(np.float64), axis=1).max() <= 1
    assert set(sample.test_signs) == {-1.0, 1.0}


def test_generated_rows_need_no_folder_and_real_ones_do() -> None:
    assert load_sample("generated", None).X.shape == (20_000, 10)
    with pytest.raises(FileNotFoundError):
        load_sample("kdd", None)
