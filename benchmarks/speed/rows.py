"""Rows with known labels that every side of a comparison draws alike; needs numpy alone."""

import numpy as np

EPSILON, REGULARIZATION = 1.0, 1.0
HELD_OUT, DIMENSION = 10_000, 16


def rows_and_labels(n: int, dimension: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows just inside the unit ball and labels of a noisy linear rule."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dimension))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-9)
    slopes = 2.0 * rng.normal(size=dimension)
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ slopes))).astype(int)
