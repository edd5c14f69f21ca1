"""What several answers to one question agree on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """The class most answers name.

    Attributes
    ----------
    choice : int
        Position of the class in the project's list, >= 0.
    votes : int
        Number of answers counted, >= 1.
    agreeing : int
        Number of answers that name `choice`, more than half of `votes`.
    """

    choice: int
    votes: int
    agreeing: int


def majority(choices: Sequence[int]) -> Agreement | None:
    """Return what more than half of the answers say, or None if no class has that many.

    A plurality is not enough: two of five answers would make a label that most annotators contradict.

    Parameters
    ----------
    choices : sequence of int
        One class position per person, shape (n_answers,).

    Raises
    ------
    ValueError
        If there is no answer at all.
    """
    if not choices:
        raise ValueError("choices must hold at least one answer, got none")
    choice, agreeing = Counter(choices).most_common(1)[0]
    if 2 * agreeing <= len(choices):
        return None
    return Agreement(choice=choice, votes=len(choices), agreeing=agreeing)
