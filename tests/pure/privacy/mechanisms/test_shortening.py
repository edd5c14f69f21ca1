import numpy as np
import pytest

from privacy.mechanisms.shortening import shortened_rows

STEPS = 2**10


def test_shortening_never_lengthens_and_long_rows_are_refused():
    rows = np.random.default_rng(4).normal(size=(1_000, 5))
    rows[::4] = np.eye(5)[0]
    rows[1::4] = 1.0
    rows *= 0.3 * (1 - 1e-12) / np.linalg.norm(rows, axis=1, keepdims=True)
    steps = shortened_rows(rows, norm_bound=0.3, steps=STEPS)
    assert (np.abs(steps) <= np.abs(rows) * STEPS / 0.3).all()
    for bad in ([1.01, 0.0], [np.nan, 0.0], [np.inf, 0.0]):
        with pytest.raises(ValueError, match="clip them first"):
            shortened_rows(np.array([bad]), norm_bound=1.0, steps=STEPS)
