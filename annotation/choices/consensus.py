"""Consensus of several answers to one question."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from privacy.mechanisms.randomness import RandomSource


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreed answer of a question: `agreeing` of `votes` answers name `choice`, or share the class most disputed in a
    set.
    """

    choice: int
    votes: int
    agreeing: int


def majority(choices: Sequence[int]) -> Agreement | None:
    # A plurality is not enough: two of five answers would make a label that most annotators contradict.
    if not choices:
        raise ValueError("choices must hold at least one answer, got none")
    choice, agreeing = Counter(choices).most_common(1)[0]
    if 2 * agreeing <= len(choices):
        return None
    return Agreement(choice=choice, votes=len(choices), agreeing=agreeing)


def most_said(choices: Sequence[int]) -> tuple[int, float]:
    counted = Counter(choices)
    best = max(counted, key=lambda choice: (counted[choice], -choice))
    return best, counted[best] / len(choices)


def plurality(choices: Sequence[int], *, rng: RandomSource) -> int:
    """Return the class that most answers name, by a coin where several are named equally often.

    A function of this question's answers and of coins alone: what a randomised response needs, since a question that
    asked for another opinion would tell outsiders that its first answers differ.
    """
    if not choices:
        raise ValueError("choices must hold at least one answer, got none")
    votes = Counter(choices)
    most = max(votes.values())
    leaders = sorted(choice for choice, count in votes.items() if count == most)
    return leaders[rng.integers(len(leaders))]


def median(choices: Sequence[int]) -> Agreement | None:
    low, high = _middle(choices)
    return Agreement(choice=low, votes=len(choices), agreeing=list(choices).count(low)) if low == high else None


def median_by_coin(choices: Sequence[int], *, rng: RandomSource) -> int:
    middle = _middle(choices)
    return middle[rng.integers(2)] if middle[0] != middle[1] else middle[0]


def _middle(choices: Sequence[int]) -> tuple[int, int]:
    if not choices:
        raise ValueError("choices must hold at least one answer, got none")
    ordered = sorted(choices)
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
