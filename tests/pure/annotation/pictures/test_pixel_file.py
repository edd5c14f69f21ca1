import numpy as np
import pytest

from annotation.data.pixels import PixelFile


@pytest.mark.parametrize("sizes", [[], [0], [1], [3, 0, 4]])
def test_a_pixel_file_is_an_ordinary_npy_however_it_grew(sizes, tmp_path):
    rng = np.random.default_rng(5)
    parts = [rng.integers(0, 256, (size, 2, 3), dtype=np.uint8) for size in sizes]
    path = tmp_path / "pixels.npy"
    with path.open("wb") as file:
        pixels = PixelFile(file, shape=(2, 3))
        for part in parts:
            pixels.append(part)
        pixels.close()
    wanted = np.concatenate([np.zeros((0, 2, 3), np.uint8), *parts])
    stored = np.load(path, mmap_mode="r" if len(wanted) else None)
    assert (stored.shape, stored.dtype, pixels.rows) == (wanted.shape, np.uint8, len(wanted))
    assert (stored == wanted).all()
