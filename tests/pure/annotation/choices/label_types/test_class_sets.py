import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.choices.label_types.class_sets import (
    MARK,
    MOST_CLASSES,
    MOST_FAR,
    NEAR,
    number_of,
    places_of,
    set_members,
)

near = st.frozensets(st.integers(0, NEAR - 1))
far = st.frozensets(st.integers(0, MOST_CLASSES - 1), max_size=MOST_FAR)


@given(near | far)
def test_there_and_back_within_what_the_database_stores(places):
    number = number_of(places)
    assert 0 <= number < 2**63
    assert places_of(number) == tuple(sorted(places))


@given(st.lists(st.frozensets(st.integers(0, 11), max_size=5), max_size=30))
def test_members(sets):
    numbers = [number_of(places) for places in sets]
    members = set_members(numbers, 12)
    assert [set(np.flatnonzero(row)) for row in members] == [set(places) for places in sets]


def test_what_is_no_set():
    for wrong in (-1, MARK, MARK + 5, 2**63 - 1, MARK + (70 << 10)):
        with pytest.raises(ValueError, match="no set of classes"):
            places_of(wrong)
    with pytest.raises(ValueError, match="at most 6 members"):
        number_of([*range(6), NEAR])
    with pytest.raises(ValueError, match="must lie in"):
        number_of([MOST_CLASSES])
    with pytest.raises(ValueError, match="of 3 there are"):
        set_members([number_of([3])], 3)
