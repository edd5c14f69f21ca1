"""What a type of label must say of itself: how it is asked and answered, agreed on, randomised, learned and written."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from annotation.choices.consensus import Agreement, majority, plurality
from annotation.choices.label_types.coefficient import Differences, krippendorff_alpha, nominal
from privacy.choices import Choice, Kind
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

# So many answers have a key by themselves; a scale has one more.
DIGITS: Final = "1234567890"
LAST_STEP: Final = "-"


class Teaching(StrEnum):
    """What answers say to a model, which an estimator must be made for."""

    CLASSES = "classes"
    SETS = "sets"
    CONFIRMATIONS = "confirmations"


@dataclass(frozen=True)
class LabelType(Choice):
    """What annotators are asked about a record, how their answer is stored, and what several people agree on.

    An answer is stored as one whole number. Two answers are the same if and only if their numbers are.

    Attributes
    ----------
    widget, keys_page : str
        Templates of the part of the label page in which the answer is given, and of the list of its keys.
    finds_classes : bool
        Whether many classes are found by typing and listed beside the question.
    takes_several : bool
        Whether an answer may name several classes, or none, and is the number of their set.
    about_guess : bool
        Whether a question comes with the class that a model guesses.
    words, letters : sequence of str
        What the answers are called where they are not called as the classes are, and the letter that gives each.
    grows, merges : bool
        Whether people who were asked may be asked with a further class, or one may count as another. The database has
        the same rule (`classes.sql`).
    coefficient : str
        What is said beside its alpha.
    randomizers : collection of str or None
        What may say by chance what people answer: nothing unless a type says so, and None where an answer is one of the
        classes, as every randomiser takes it.
    teaches : Teaching
        What a model learns from; whoever learns from it, `LearnsLabels` says.
    not_learned : str
        What is said to a model that does not; {wanted} stands for the names of those that do.
    """

    kind: ClassVar[Kind] = Kind.LABEL_TYPE
    widget: ClassVar[str]
    keys_page: ClassVar[str] = "annotation/choices/_keys_choose.html"
    finds_classes: ClassVar[bool] = False
    takes_several: ClassVar[bool] = False
    about_guess: ClassVar[bool] = False
    words: ClassVar[Sequence[str]] = ()
    letters: ClassVar[Sequence[str]] = ()
    grows: ClassVar[bool] = False
    merges: ClassVar[bool] = False
    coefficient: ClassVar[str]
    differences: ClassVar[Differences] = staticmethod(nominal)
    randomizers: ClassVar[Collection[str] | None] = ()
    teaches: ClassVar[Teaching] = Teaching.CLASSES
    not_learned: ClassVar[str] = _("This model learns nothing from such answers.")

    def event(self, *args: Any, **circumstances: Any) -> None:
        """Return nothing: asking is paid for by what chooses the question, and learning by what learns."""

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """Return also what its answers teach."""
        return {**super().facts(), "teaches": str(cls.teaches)}

    @abstractmethod
    def possible(self, n_classes: int) -> int:
        """Return how many answers there are; they are stored as 0 to one less, unless `refusal` says otherwise."""

    def refusal(self, choice: int, n_classes: int) -> str:
        """Say why a number is no answer, empty where it is one."""
        possible = self.possible(n_classes)
        if 0 <= choice < possible:
            return ""
        return as_message("There are {possible} answers to choose from.", possible=possible)

    @property
    def most_classes(self) -> int | None:
        """How many classes an answer may name, None where it names one."""
        return None

    @property
    def names_none(self) -> bool:
        """Whether an answer may name no class."""
        return False

    def places(self, choice: int) -> tuple[int, ...]:
        """Return the positions of the classes that an answer names."""
        return (choice,)

    def stored(self, places: Iterable[int]) -> int:
        """Return the answer that names these classes."""
        (place,) = places
        return place

    def keys(self, names: Sequence[str]) -> list[str]:
        """Return the key of each answer that has none of its own: the digit of its place."""
        return list((DIGITS + LAST_STEP)[: len(names)])

    @abstractmethod
    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> str | list[str]:
        """Return the name that stands for an answer in files, or a list of names where it may have several."""

    def agreed(self, votes: Sequence[int]) -> Agreement | None:
        """Return what the answers to one question agree on, None where they do not."""
        return majority(votes)

    def opinion(self, votes: Sequence[int]) -> tuple[int, float]:
        """Return what most answers to a question say, the smaller one at a tie, and the share of those who do."""
        counted = Counter(votes)
        best = max(counted, key=lambda choice: (counted[choice], -choice))
        return best, counted[best] / len(votes)

    def settled(self, votes: Sequence[int], *, rng: RandomSource) -> int:
        """Return what the answers come to where coins decide ties, so that every question settles at once."""
        return plurality(votes, rng=rng)

    def alpha(self, questions: Mapping[int, Sequence[int]]) -> float | None:
        """Return Krippendorff's alpha over the answers to each question, None where no question has two."""
        return krippendorff_alpha(list(questions.values()), type(self).differences)

    def targets(
        self, choices: NDArray[np.int64], guesses: NDArray[np.int64] | None, *, n_classes: int
    ) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Return which answers teach a model anything, shape (n,), and what these teach it: the places of classes.

        Parameters
        ----------
        choices : ndarray of shape (n,)
            Answers as they are stored.
        guesses : ndarray of shape (n,) or None
            Places of the classes that were asked about, None where none were.
        """
        return np.ones(len(choices), dtype=np.bool_), choices

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse what would say by chance what has no proof for these answers."""
        randomizer = settings.get(Kind.RANDOMIZER.key)
        if not randomizer or self.randomizers is None or randomizer in self.randomizers:
            return {}
        return {Kind.RANDOMIZER.key: _("Randomising has no proof for such answers.")}
