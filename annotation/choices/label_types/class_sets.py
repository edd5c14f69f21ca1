"""Sets of classes as whole numbers, which stay the same when a project gets further classes."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

# Sets of classes below this have a bit for each; others at most `MOST_FAR` members of ten bits each, behind a mark.
NEAR: Final = 61
MOST_FAR: Final = 6
FAR_BITS: Final = 10
MARK: Final = 1 << NEAR
MOST_CLASSES: Final = (1 << FAR_BITS) - 1
_MEMBER: Final = (1 << FAR_BITS) - 1


def number_of(places: Iterable[int]) -> int:
    """Return the number of a set of class positions, 0 for no class; `ValueError` where it has none."""
    chosen = sorted(set(places))
    if chosen and not (chosen[0] >= 0 and chosen[-1] < MOST_CLASSES):
        raise ValueError(f"positions must lie in [0, {MOST_CLASSES}), got {chosen[0]} to {chosen[-1]}")
    if not chosen or chosen[-1] < NEAR:
        return sum(1 << place for place in chosen)
    if len(chosen) > MOST_FAR:
        raise ValueError(f"a set with a position of {NEAR} or more has at most {MOST_FAR} members, got {len(chosen)}")
    # A member is one more than its position, so that nothing stands for no member.
    return MARK + sum((place + 1) << (FAR_BITS * order) for order, place in enumerate(chosen))


def places_of(number: int) -> tuple[int, ...]:
    """Return the class positions of a set, in increasing order; `ValueError` if no set has that number."""
    if 0 <= number < MARK:
        return tuple(place for place in range(number.bit_length()) if number >> place & 1)
    rest = number - MARK
    members = tuple((rest >> (FAR_BITS * order) & _MEMBER) - 1 for order in range(MOST_FAR))
    places = tuple(place for place in members if place >= 0)
    if rest < 0 or number_of(places) != number:
        raise ValueError(f"no set of classes has the number {number}")
    return places


def set_members(numbers: Sequence[int] | NDArray[np.int64], n_classes: int) -> NDArray[np.bool_]:
    """Return which classes each set holds, shape (n, n_classes); `ValueError` for a class beyond `n_classes`."""
    members = np.zeros((len(numbers), n_classes), dtype=np.bool_)
    for row, number in enumerate(numbers):
        places = places_of(int(number))
        if places and places[-1] >= n_classes:
            raise ValueError(f"a set holds class {places[-1]}, of {n_classes} there are")
        members[row, list(places)] = True
    return members
