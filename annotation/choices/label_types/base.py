"""What a type of label must say of itself: which answers there are, and what becomes of several."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from annotation.choices.consensus import Agreement, majority, plurality
from annotation.choices.label_types.coefficient import Differences, krippendorff_alpha, nominal
from privacy.choices import Choice, Kind
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import as_message


@dataclass(frozen=True)
class LabelType(Choice):
    """What annotators are asked about a record, how their answer is stored, and what several people agree on.

    An answer is stored as one whole number. Two answers are the same if and only if their numbers are.

    Attributes
    ----------
    widget : str
        Template of the part of the label page in which the answer is given.
    finds_classes : bool
        Whether many classes are found by typing and listed beside the question.
    takes_several : bool
        Whether an answer may name several classes, or none, and is the number of their set.
    coefficient : str
        What is said beside its alpha.
    """

    kind: ClassVar[Kind] = Kind.LABEL_TYPE
    widget: ClassVar[str]
    finds_classes: ClassVar[bool] = False
    takes_several: ClassVar[bool] = False
    coefficient: ClassVar[str]
    differences: ClassVar[Differences] = staticmethod(nominal)

    def event(self, *args: Any, **circumstances: Any) -> None:
        """Return nothing: asking is paid for by what chooses the question, and learning by what learns."""
        return

    @abstractmethod
    def possible(self, n_classes: int) -> int:
        """Return how many answers there are; they are stored as 0 to one less, unless `refusal` says otherwise."""

    def refusal(self, choice: int, n_classes: int) -> str:
        """Say why a number is no answer, empty where it is one."""
        possible = self.possible(n_classes)
        if 0 <= choice < possible:
            return ""
        return as_message("There are {possible} answers to choose from.", possible=possible)

    @abstractmethod
    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> list[str]:
        """Return the names that stand for an answer in files."""

    def cell(self, choice: int, classes: Sequence[str], guess: int | None) -> str:
        """Return an answer as one cell of a table."""
        (name,) = self.exported(choice, classes, guess)
        return name

    def agreed(self, votes: Sequence[int]) -> Agreement | None:
        """Return what the answers to one question agree on, None where they do not."""
        return majority(votes)

    def settled(self, votes: Sequence[int], *, rng: RandomSource) -> int:
        """Return what the answers come to where coins decide ties, so that every question settles at once."""
        return plurality(votes, rng=rng)

    def alpha(self, questions: Mapping[int, Sequence[int]]) -> float | None:
        """Return Krippendorff's alpha over the answers to each question, None where no question has two."""
        return krippendorff_alpha(list(questions.values()), type(self).differences)
