"""Label type: one of two classes, or that it is hard to say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from annotation.choices.consensus import Agreement
from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.coefficient import ORDINAL, Coefficient
from privacy.choices import Sound
from privacy.mechanisms.randomness import RandomSource

SHY = 2


@dataclass(frozen=True)
class Shyly(LabelType):
    """One of two classes, or that it is hard to say; an answer is stored as the position of its class, or as 2."""

    name: ClassVar[str] = "shyly"
    label: ClassVar[str] = "choose a class or say that it is hard"
    help: ClassVar[str] = "What is hard to say teaches nothing."
    sound: ClassVar[Sound] = Sound(arrivals=("pool",), why_not={"stream": "A stream cannot wait for the shy."})
    widget: ClassVar[str] = "annotation/choices/_label_choose.html"
    words: ClassVar[tuple[str, ...]] = ("surely the first", "surely the second", "hard to say")
    letters: ClassVar[tuple[str, ...]] = ("P", "Q", "H")
    coefficient: ClassVar[Coefficient] = Coefficient("alpha of the shy", ORDINAL.of)

    def possible(self, n_classes: int) -> int:
        return 3

    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> str:
        return "?" if choice == SHY else classes[choice]

    def agreed(self, votes: Sequence[int]) -> Agreement:
        # Whoever dares outvotes the shy.
        bold = [vote for vote in votes if vote != SHY] or [SHY]
        best = max(bold, key=bold.count)
        return Agreement(choice=best, votes=len(votes), agreeing=list(votes).count(best))

    def settled(self, votes: Sequence[int], *, rng: RandomSource) -> int:
        found = self.agreed(votes).choice
        return int(rng.integers(2)) if found == SHY else found

    def targets(
        self, choices: NDArray[np.int64], guesses: NDArray[np.int64] | None, *, n_classes: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        taught = choices != SHY
        return taught, choices[taught]
