from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from nltk.metrics.distance import masi_distance

from annotation.choices.label_types.class_sets import number_of, set_members
from annotation.choices.label_types.coefficient import MASI, masi_distances

sets = st.frozensets(st.integers(0, 4))


def masi(left, right):
    if left == right:
        return 0.0
    if not left & right:
        return 1.0
    monotone = 2 / 3 if left <= right or right <= left else 1 / 3
    return 1 - len(left & right) / len(left | right) * monotone


@given(st.lists(sets, min_size=1, max_size=8), st.lists(sets, min_size=1, max_size=8))
def test_distances_are_passonneaus(left, right):
    of = [set_members([number_of(each) for each in chosen], 5).astype(np.float32) for chosen in (left, right)]
    expected = [[masi(one, other) for other in right] for one in left]
    np.testing.assert_allclose(masi_distances(*of), expected, atol=1e-9)


@given(st.lists(st.lists(sets, min_size=2, max_size=4), min_size=1, max_size=8))
def test_alpha_by_its_definition(questions):
    pairs = [(one, other, 1 / (len(q) - 1)) for q in questions for one, other in permutations(q, 2)]
    everything = [each for q in questions for each in q]
    n = len(everything)
    observed = sum(weight * masi(one, other) for one, other, weight in pairs) / n
    expected = sum(masi(one, other) for one, other in permutations(everything, 2)) / (n * (n - 1))
    found = MASI.of([[number_of(each) for each in q] for q in questions])
    assert found == pytest.approx(1 - observed / expected if expected else 1.0)


def test_as_another_library_has_it():
    """Two answers to each question, since the library weighs questions by their pairs; its MASI rounds thirds."""
    rng = np.random.default_rng(4)
    questions = [[frozenset(np.flatnonzero(rng.random(5) < 0.4).tolist()) for _ in range(2)] for _ in range(60)]
    questions = [[each or frozenset({9}) for each in q] for q in questions]
    data = [(person, task, each) for task, q in enumerate(questions) for person, each in enumerate(q)]
    other = AnnotationTask(data=data, distance=masi_distance).alpha()
    assert MASI.of([[number_of(each) for each in q] for q in questions]) == pytest.approx(other, abs=0.01)
