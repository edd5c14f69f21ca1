"""scikit-learn's handwritten digits, split into a private pool and a public test set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

QUESTION = "Which digit is this?"
CLASSES = tuple("0123456789")
SIDE = 8
TESTED = 360


@dataclass(frozen=True, slots=True)
class DigitSplit:
    pool: NDArray[np.uint8]
    pool_classes: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_classes: NDArray[np.int64]


def split_digits(*, rng: np.random.Generator) -> DigitSplit:
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    # Sixteen grey levels in the source, 0 to 240 in a byte.
    images = np.minimum(digits.images[order] * 15, 255).astype(np.uint8)
    classes = digits.target[order].astype(np.int64)
    return DigitSplit(images[TESTED:], classes[TESTED:], images[:TESTED], classes[:TESTED])
