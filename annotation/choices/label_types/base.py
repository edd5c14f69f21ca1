"""Base class of label types: how a record is asked about, and how answers are agreed on, learned and written."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from annotation.choices.consensus import Agreement, majority
from annotation.choices.label_types.coefficient import NOMINAL, Coefficient
from privacy.choices import FreeChoice, Kind
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

# Keys of the first ten answers; a scale has one more.
DIGITS: Final = "1234567890"
LAST_STEP: Final = "-"


class Teaching(StrEnum):
    CLASSES = "classes"
    SETS = "sets"
    CONFIRMATIONS = "confirmations"
    SPANS = "spans"


@dataclass(frozen=True)
class LabelType(FreeChoice):
    """Question annotators are asked about a record: storage of an answer, and agreement of several.

    An answer is one whole number; two answers are the same if and only if their numbers are. `widget` is the template
    in which it is given, `measure` the name of what models are measured by. Where a type `lists_classes`, further ones
    may come and many are found by typing; `classes.sql` has the same rule.
    """

    kind: ClassVar[Kind] = Kind.LABEL_TYPE
    widget: ClassVar[str]
    lists_classes: ClassVar[bool] = False
    coefficient: ClassVar[Coefficient] = NOMINAL
    teaches: ClassVar[Teaching] = Teaching.CLASSES
    measure: ClassVar[str] = _("Accuracy")

    @abstractmethod
    def possible(self, n_classes: int) -> int:
        """Return how many answers there are; unless several classes are named, they are stored as 0 to one less."""

    @abstractmethod
    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> str | list[str]:
        """Return the name of an answer in files, or a list of names where it may have several."""

    def agreed(self, votes: Sequence[int]) -> Agreement | None:
        return majority(votes)

    def targets(
        self, choices: NDArray[np.int64], guesses: NDArray[np.int64] | None, *, n_classes: int
    ) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Return which answers teach a model anything, shape (n,), and the places of the classes they teach.

        `guesses` are the places of the classes that were asked about, None where none were.
        """
        return np.ones(len(choices), dtype=np.bool_), choices

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if not settings.get(Kind.RANDOMIZER.key) or isinstance(self, Settles):
            return {}
        return {Kind.RANDOMIZER.key: _("Randomising has no proof for such answers.")}


@runtime_checkable
class Settles(Protocol):
    """A label type whose answers may be randomised: each names one class, and every question settles at once."""

    def settled(self, votes: Sequence[int], *, rng: RandomSource) -> int:
        """Return the class that the answers come to, a coin deciding ties."""


@runtime_checkable
class OwnWords(Protocol):
    """A label type whose answers are not called as the classes are, with the letter that gives each."""

    words: ClassVar[Sequence[str]]
    letters: ClassVar[Sequence[str]]


@runtime_checkable
class OwnKeys(Protocol):
    """A label type whose answers have other keys than the digits of their places."""

    def keys(self, names: Sequence[str]) -> list[str]: ...


@runtime_checkable
class NamesSeveral(Protocol):
    """A label type whose answer names several classes, or none, and is the number of their set."""

    @property
    def most_classes(self) -> int: ...

    @property
    def names_none(self) -> bool: ...

    def places(self, choice: int) -> tuple[int, ...]:
        """Return the positions of the set's classes, in increasing order."""

    def stored(self, places: Iterable[int]) -> int:
        """Return the number of the set; `ValueError` where it has none."""

    def refusal(self, choice: int, n_classes: int) -> str:
        """Say why a number is no answer, empty where it is one."""

    def opinion(self, votes: Sequence[int]) -> tuple[int, float]:
        """Return what most answers to a question say, and the share of those who do."""


def refusal_of(kind: LabelType, choice: int, n_classes: int) -> str:
    if isinstance(kind, NamesSeveral):
        return kind.refusal(choice, n_classes)
    possible = kind.possible(n_classes)
    if 0 <= choice < possible:
        return ""
    return as_message("There are {possible} answers to choose from.", possible=possible)


def places_of_answer(kind: LabelType, choice: int) -> tuple[int, ...]:
    return kind.places(choice) if isinstance(kind, NamesSeveral) else (choice,)
