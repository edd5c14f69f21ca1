"""Featuriser that counts letters: a mechanism, and the choice of it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from learner.features.base import Featurizer
from learner.features.choice import FeaturesChoice, RecordShape
from privacy.choices import Sound, parameter

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters(Featurizer):
    """How often a text has each of the first letters of the alphabet."""

    kind = "letters_of_a_test"
    reads = "text"
    is_quick = True
    norm_bound = 1.0

    def __init__(self, most: int) -> None:
        self.most = most

    @property
    def dimension(self) -> int:
        return self.most

    def parameters(self) -> dict[str, Any]:
        return {"most": self.most}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        return cls(parameters["most"])

    def raw_rows(self, batch: Any) -> NDArray[np.float64]:
        texts = [str(text).lower() for text in batch]
        counts = np.array([[text.count(letter) for letter in LETTERS[: self.most]] for text in texts], dtype=float)
        counts = counts.reshape(-1, self.most)
        rows: NDArray[np.float64] = counts / np.maximum(1.0, np.linalg.norm(counts, axis=1))[:, None]
        return rows


@dataclass(frozen=True)
class CountsLetters(FeaturesChoice):
    name: ClassVar[str] = "letters"
    label: ClassVar[str] = "how often each letter stands in a text"
    sound: ClassVar[Sound] = Sound(data_kinds=("text",))

    alphabet: int = parameter(
        26, at_least=2, at_most=26, label="Letters that count", help="From a on.", rule="From 2 to 26, not {got}."
    )

    def featurizer(self, shape: RecordShape) -> Letters:
        return Letters(self.alphabet)
