"""Two of scikit-learn's handwritten digits, split into a private pool and a public test set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

QUESTION = "Which digit is this?"
CLASSES = ("0", "9")
SIDE = 8


@dataclass(frozen=True, slots=True)
class DigitSplit:
    """Images of shape (n, 8, 8), uint8, and the position of each one's class in `CLASSES`, shape (n,)."""

    pool: NDArray[np.uint8]
    pool_classes: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_classes: NDArray[np.int64]


def split_digits(*, test_share: float = 1 / 3, rng: np.random.Generator) -> DigitSplit:
    """Return all zeros and nines; which of them are called public is drawn without looking at them.

    Parameters
    ----------
    test_share : float
        Part that becomes the public test set, 0 < test_share < 1.
    rng : numpy.random.Generator
        A seeded generator: the data are public to begin with.
    """
    digits = load_digits()
    names = digits.target.astype(str)
    wanted = np.isin(names, CLASSES)
    # Sixteen grey levels in the source, 0 to 240 in a byte.
    images = np.minimum(digits.images[wanted] * 15, 255).astype(np.uint8)
    classes = np.searchsorted(CLASSES, names[wanted]).astype(np.int64)
    order = rng.permutation(len(images))
    images, classes = images[order], classes[order]
    tested = round(test_share * len(images))
    return DigitSplit(images[tested:], classes[tested:], images[:tested], classes[:tested])
